"""Every Python and shell block of README and docs runs, in order, in a copy of the checkout's examples.

Training is shortened: ``--minutes N`` becomes a number of small updates, so that no page hangs on the machine's speed.
Blocks that set up the environment (``make …``) are left out: they are what runs these tests.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `preloaded`
import preloaded

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(PAGES.glob("*.md")), *sorted((PAGES / "tasks").glob("*.md"))]

TOKENS = 600
STEPS = 30
MORE = {"seeing.md": 300, "letters.md": 60}
"""Updates of every model, and of those that have to write something."""


def blocks(path: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(path.read_text(encoding="utf-8")) if name == language]


ENVIRONMENT = os.environ | {"COLUMNS": "100", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def commands() -> Iterator[dict[str, str]]:
    """An environment whose ``unrolled`` is one that is loaded already."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # short: the name of a socket has about a hundred letters
    place = str(folder / "calls")
    preloaded.client(folder, place)
    words = [sys.executable, preloaded.__file__, place]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        paths = [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
        yield ENVIRONMENT | {"PATH": os.pathsep.join(paths)}
        server.kill()
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_blocks_of_a_document_run(path: Path, tmp_path: Path, commands: dict[str, str]) -> None:
    shell = [text for text in blocks(path, "sh") if not re.match(r"\s*(make|pip)\b", text)]
    python = blocks(path, "python")
    if not shell and not python:
        pytest.skip("no blocks to run")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    steps = f"--set train.steps={MORE.get(path.name, STEPS)} --set train.batch_tokens={TOKENS}"
    script = "set -euo pipefail\n" + re.sub(r"--minutes [\d.]+", steps, "\n".join(shell))
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=commands, capture_output=True, text=True)
    assert ran.returncode == 0, f"{script}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
    (tmp_path / "blocks.py").write_text("\n".join(python), encoding="utf-8")
    ran = subprocess.run(["python", "blocks.py"], cwd=tmp_path, env=commands, capture_output=True, text=True)
    assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"


def test_the_reference_is_what_the_registries_say() -> None:
    ran = subprocess.run([sys.executable, ROOT / "docs" / "build.py", "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_inside_the_project_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)|src=\"([^\":]+)\"", text):
        name = target[0] or target[1]
        assert (path.parent / name).exists(), f"{path.name} points to {name}, which is not there"
