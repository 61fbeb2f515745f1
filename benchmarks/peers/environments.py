"""The environments of the peers, below `.peers`: each its own, all of them with one torch, that of this project.

torch lies in a folder that every environment reads, so that it is there once and no peer brings another.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / ".peers"
TORCH = FOLDER / "torch"

PACKAGES: dict[str, tuple[str, ...]] = {
    "eole": (
        *("eole==0.6.4", "configargparse", "pyyaml", "six", "safetensors", "pydantic", "pyonmttok>=1.38.1,<2"),
        *("ctranslate2>=4,<5", "tokenizers", "huggingface_hub", "torch-optimi", "sentencepiece", "subword-nmt"),
        *("sacrebleu", "rich"),
    ),
    "joeynmt": (
        *("joeynmt==2.3.0", "pyyaml", "subword-nmt", "sentencepiece", "sacremoses", "sacrebleu", "packaging"),
        *("importlib-metadata", "matplotlib", "tensorboard", "six", "wrapt"),
    ),
    "yoyodyne": (
        *("yoyodyne==0.5.27", "maxwell>=0.2.6", "pyyaml", "jsonargparse[signatures]>=4.40,<5", "lightning>=2.6,<3"),
        *("omegaconf>=2.3", "torchmetrics>=1.8.2,<2", "wandb>=0.18.7,<1", "rich"),
    ),
    "gensim": ("gensim==4.4.0", "scipy", "smart-open"),
    "keras": ("keras==3.15.1", "jax==0.10.2", "absl-py", "rich", "namex", "h5py", "optree", "ml-dtypes", "packaging"),
}
"""For each the peer, which is installed alone (its own list may ask for another torch), and what its models need."""


class Environment(NamedTuple):
    """Where a peer's interpreter is, or why there is none."""

    python: Path | None
    reason: str


def find(name: str) -> Environment:
    """What ``make`` has made."""
    if name == "":
        return Environment(Path(sys.executable), "")
    python = FOLDER / name / "bin" / "python"
    if (FOLDER / name / "made").exists():
        return Environment(python, "")
    failed = FOLDER / f"{name}.failed"
    reason = (
        failed.read_text().strip() if failed.exists() else "there is no environment for it; `make bench-peers` makes it"
    )
    return Environment(None, reason)


def make(name: str, options: list[str]) -> Environment:
    """Make the environment of ``name`` unless it is there; what went wrong is kept as the reason. Needs PyPI."""
    found = find(name)
    if found.python is not None:
        return found
    folder, failed = FOLDER / name, FOLDER / f"{name}.failed"
    failed.unlink(missing_ok=True)
    try:
        if not (TORCH / "made").exists():
            pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(TORCH)]
            _run([*pip, *options, f"torch=={version('torch').partition('+')[0]}", f"numpy=={version('numpy')}"])
            (TORCH / "made").touch()
        _run([sys.executable, "-m", "venv", str(folder)])
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "torch.pth").write_text(f"{TORCH}\n")
        peer, *needs = PACKAGES[name]
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *options]
        _run([*pip, "--no-deps", peer])
        _run([*pip, *needs, f"torch=={version('torch').partition('+')[0]}"])
        (folder / "made").touch()
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "error" in line.lower()] or [str(error)]
        failed.write_text(f"it could not be installed: {lines[-1].strip()}\n")
    return find(name)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
