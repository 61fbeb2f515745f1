"""What every model promises that labels signals, images or recordings, checked on one, here and on this device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.workshop.label_promises import CLOSE
from unrolled.workshop.promises import Promise


def check_promises(model: Any, rows: Sequence[Any]) -> list[Promise]:
    """Every promise on ``rows``, sources of the ``model`` (a pipeline.ReadLabelModel)."""
    together = model.probabilities(rows)
    order = np.random.default_rng(2).permutation(len(rows))
    turned = model.probabilities([rows[row] for row in order], batch=7)
    back = [turned[place] for place in np.argsort(order)]
    long = model.longer(rows[0])
    padded = [model.probabilities([row, long], batch=2)[0] for row in rows[:16]]
    return [
        _compare("batch of 1 = batch of N", model.probabilities(rows, batch=1), together),
        _compare(f"any order of {model.task.noun}s", back, together),
        _compare("any padding", padded, together[:16]),
        _are_probabilities(model, together),
        _compare("saved = loaded", _saved(model, rows), together),
    ]


def _are_probabilities(model: Any, found: Sequence[np.ndarray]) -> Promise:
    if model.text.several:
        inside = all(bool(((one >= 0) & (one <= 1)).all()) for one in found)
        return Promise("probabilities are probabilities", inside, "each label's own, in [0, 1]")
    gap = max(float(np.abs(one.sum(axis=-1) - 1).max()) for one in found)
    return Promise("probabilities are probabilities", gap < CLOSE, f"they sum to 1 within {gap:.1e}")


def _compare(name: str, first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Promise:
    gap = max(float(np.abs(one - two).max()) for one, two in zip(first, second, strict=True))
    return Promise(name, gap < CLOSE, f"probabilities differ by {gap:.1e} at most")


def _saved(model: Any, rows: Sequence[Any]) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        model.save(place)
        found: list[np.ndarray] = type(model).load(place, device=str(model.device)).probabilities(rows)
    return found
