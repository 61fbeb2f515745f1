"""What every reader of signals promises, checked on one model, here and on this device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.workshop.label_promises import CLOSE
from unrolled.workshop.promises import Promise


def check_promises(model: Any, sequences: Sequence[np.ndarray] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``sequences`` of frames [time, channels] (none: random ones)."""
    rows = _random(model, count) if sequences is None else list(sequences)
    together = model.probabilities(rows)
    order = np.random.default_rng(2).permutation(len(rows))
    turned = model.probabilities([rows[row] for row in order], batch=7)
    back = [turned[place] for place in np.argsort(order)]
    long = np.concatenate([max(rows, key=len)] * 2)
    padded = [model.probabilities([row, long], batch=2)[0] for row in rows[:16]]
    gap = max(float(np.abs(one.sum(axis=-1) - 1).max()) for one in together)
    return [
        _compare("batch of 1 = batch of N", model.probabilities(rows, batch=1), together),
        _compare("any order of sequences", back, together),
        _compare("any padding", padded, together[:16]),
        Promise("probabilities are probabilities", gap < CLOSE, f"they sum to 1 within {gap:.1e}"),
        _compare("saved = loaded", _saved(model, rows), together),
    ]


def _random(model: Any, count: int) -> list[np.ndarray]:
    """Sequences of 1 to 40 frames of noise around the training mean, seed 1."""
    draw = np.random.default_rng(1)
    reader = model.text.frames
    return [
        reader.mean + reader.deviation * draw.normal(size=(int(draw.integers(1, 41)), reader.given))
        for _ in range(count)
    ]


def _compare(name: str, first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Promise:
    gap = max(float(np.abs(one - two).max()) for one, two in zip(first, second, strict=True))
    return Promise(name, gap < CLOSE, f"probabilities differ by {gap:.1e} at most")


def _saved(model: Any, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        model.save(place)
        found: list[np.ndarray] = type(model).load(place, device=str(model.device)).probabilities(rows)
    return found
