"""The import table of ARCHITECTURE.md, held: rooms import one way, and light rooms stay light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unrolled"

MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "text": {"base"},
    "data": {"base", "text"},
    "layers": {"base"},
    "models": {"base", "layers"},
    "search": {"base"},
    "tasks": {"base", "text", "data", "layers", "models", "search"},
    "train": {"base", "data"},
    "explain": {"base", "layers", "models"},
    "ship": {"base", "layers", "models", "text", "search"},
}
ROOMS = set(MAY_IMPORT)
MAY_IMPORT["workshop"] = set(ROOMS)
MAY_IMPORT["progress"] = set()
MAY_IMPORT["pipeline"] = ROOMS | {"workshop"}
MAY_IMPORT["runs"] = MAY_IMPORT["pipeline"] | {"pipeline", "progress"}
MAY_IMPORT["cli"] = MAY_IMPORT["runs"] | {"runs"}
MAY_IMPORT["__init__"] = {"runs", "pipeline", "workshop", "layers", "explain", "base"}
MAY_IMPORT["__main__"] = {"cli"}


def modules() -> list[tuple[str, Path]]:
    """Each module with the room it stands in; a file at the top is a room of its own."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found.append((parts[0], path))
    return found


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= (
                {f"{node.module}.{alias.name}" for alias in node.names}
                if node.module == "unrolled"
                else {node.module or ""}
            )
            if node.level:
                pytest.fail(f"{path}:{node.lineno}: a relative import; write the whole name")
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("unrolled.")}


@pytest.mark.parametrize("room, path", modules(), ids=lambda value: str(value).removeprefix(str(SOURCE)))
def test_a_room_imports_only_what_the_table_allows(room: str, path: Path) -> None:
    assert room in MAY_IMPORT, f"{room} is a new room: add it to the table here and in ARCHITECTURE.md"
    forbidden = imported_rooms(path) - MAY_IMPORT[room] - {room}
    assert not forbidden, f"{path.relative_to(ROOT)} imports {sorted(forbidden)}"


def test_the_table_has_no_cycle() -> None:
    order: list[str] = []
    left = {room: set(allowed) for room, allowed in MAY_IMPORT.items()}
    while left:
        free = [room for room, allowed in left.items() if allowed <= set(order)]
        assert free, f"a cycle among {sorted(left)}"
        order += free
        for room in free:
            del left[room]


@pytest.mark.parametrize("light", ["base", "search", "cli.main", "cli.check", "data.readers", "data.doctor"])
def test_light_rooms_do_not_import_torch(light: str) -> None:
    code = f"import sys, unrolled.{light}; sys.exit('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr or f"unrolled.{light} imports torch"


def test_no_catch_all_rooms_and_no_copied_signatures() -> None:
    for _, path in modules():
        assert path.stem not in {"utils", "util", "common", "helpers", "misc"}, path
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.args.kwarg is None, f"{path}:{node.lineno} **{node.args.kwarg.arg}"
            assert not isinstance(node, ast.Assert), f"{path}:{node.lineno} assert in shipped code"


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of one machine in a tracked file."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    foreign = re.compile("|".join(re.escape(f"{p}/") for p in {str(ROOT), str(Path.home())} if len(p) > 1))
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".yaml", ".toml", ".json", ".lock", ""} and path.is_file():
            assert not foreign.search(path.read_text(encoding="utf-8", errors="replace")), name
