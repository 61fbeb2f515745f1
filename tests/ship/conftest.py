"""A small model folder to save, damage and open."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from unrolled.ship.folder import write

SETTINGS = {
    "model": {"kind": "seq2seq", "size": 3},
    "train": {"learning_rate": 1e-3, "betas": (0.9, 0.98)},
    "note": "naïve: 東京",
}
TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.weight": torch.ones(5), "steps": torch.tensor(7)}


@pytest.fixture
def save() -> Callable[..., Path]:
    def write_text(folder: Path) -> None:
        (folder / "source.json").write_text('{"words": ["a"]}')
        (folder / "target.json").write_text('{"words": ["b"]}')

    def build(folder: Path, **change: Any) -> Path:
        given = {
            "settings": SETTINGS,
            "tensors": TENSORS,
            "text": write_text,
            "scores": {"bleu": 12.5},
            "card": "# A model\n",
        }
        return write(folder, **{**given, **change})

    return build
