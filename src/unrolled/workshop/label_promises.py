"""What every classifier promises, checked on one model, here and on this device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.protocol import SPECIALS
from unrolled.workshop.promises import Promise

CLOSE = 1e-4
"""How far probabilities may lie apart."""


def check_promises(model: Any, lines: Sequence[str] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``lines`` (none: random ones of the model's own symbols). ``model`` is a classifier of
    pipeline's."""
    lines = random_lines(model, count) if lines is None else list(lines)
    if not any(model.text.tokenizer.encode(line).ids for line in lines):
        raise DataError("selfcheck: no line holds a symbol. Give some text, or no file: then lines are made up.")
    together = model.probabilities(lines)
    order = np.random.default_rng(2).permutation(len(lines))
    turned = model.probabilities([lines[row] for row in order], batch=7)[np.argsort(order)]
    long = " ".join([max(lines, key=len)] * 4)
    padded = np.array([model.probabilities([line, long], batch=2)[0] for line in lines[:16]])
    return [
        _compare("batch of 1 = batch of N", model.probabilities(lines, batch=1), together),
        _compare("any order of lines", turned, together),
        _compare("any padding", padded, together[:16]),
        _sums(model, together),
        _compare("saved = loaded", _saved(model, lines), together),
    ]


def random_lines(model: Any, count: int) -> list[str]:
    """Lines of 1 to 20 symbols drawn from the vocabulary, seed 1."""
    draw = np.random.default_rng(1)
    size = model.text.vocabulary_size
    first = len(SPECIALS) if size > len(SPECIALS) else 1
    ids = [draw.integers(first, size, size=int(draw.integers(1, 21))).tolist() for _ in range(count)]
    return [model.text.tokenizer.decode(row) or "a" for row in ids]


def _compare(name: str, first: np.ndarray, second: np.ndarray) -> Promise:
    gap = float(np.abs(first - second).max())
    return Promise(name, gap < CLOSE, f"probabilities differ by {gap:.1e} at most")


def _sums(model: Any, found: np.ndarray) -> Promise:
    if model.text.several:
        inside = bool(((found >= 0) & (found <= 1)).all())
        return Promise("probabilities are probabilities", inside, "each label's own, in [0, 1]")
    gap = float(np.abs(found.sum(axis=1) - 1).max())
    return Promise("probabilities are probabilities", gap < CLOSE, f"they sum to 1 within {gap:.1e}")


def _saved(model: Any, lines: Sequence[str]) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        model.save(place)
        found: np.ndarray = type(model).load(place, device=str(model.device)).probabilities(lines)
    return found
