"""Every Python and shell block of README and docs runs, in order, in a copy of the checkout's examples.

Training is shortened: ``--minutes N`` becomes a quarter of one, or what SLOW says. Blocks that set up the environment
(``make …``) are left out: they are what runs these tests.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(PAGES.glob("*.md")), *sorted((PAGES / "tasks").glob("*.md"))]

SLOW = {"seeing.md": 1.25}
"""Minutes for pages whose model has to write something: machine code is made within them where none is kept."""


def blocks(path: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(path.read_text(encoding="utf-8")) if name == language]


def environment() -> dict[str, str]:
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_blocks_of_a_document_run(path: Path, tmp_path: Path) -> None:
    shell = [text for text in blocks(path, "sh") if not re.match(r"\s*(make|pip)\b", text)]
    python = blocks(path, "python")
    if not shell and not python:
        pytest.skip("no blocks to run")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    minutes = SLOW.get(path.name, 0.25)
    script = "set -euo pipefail\n" + re.sub(r"--minutes [\d.]+", f"--minutes {minutes}", "\n".join(shell))
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert ran.returncode == 0, f"{script}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
    (tmp_path / "blocks.py").write_text("\n".join(python), encoding="utf-8")
    ran = subprocess.run([sys.executable, "blocks.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
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
