"""What every classifier promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.protocol import SPECIALS
from unrolled.workshop.promises import Promise, near, reloaded

CLOSE = 1e-4
"""How far probabilities may lie apart."""


def check_promises(model: Any, lines: Sequence[str] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``lines`` (none: random ones of the model's own symbols). ``model`` is a classifier of
    pipeline's."""
    lines = random_lines(model, count) if lines is None else list(lines)
    if not any(model.text.tokenizer.encode(line).ids for line in lines):
        raise DataError("selfcheck: no line holds a symbol. Give some text, or no file: then lines are made up.")
    return of_probabilities(model, lines, " ".join([max(lines, key=len)] * 4), "lines", several=model.text.several)


def of_probabilities(model: Any, rows: Sequence[Any], long: Any, nouns: str, *, several: bool = False) -> list[Promise]:
    """That the probabilities of ``rows`` (``nouns`` they are called) depend on nothing beside them, sum to 1 unless
    there may be ``several`` answers, and come back with a saved model. ``long``: one that makes others be padded."""
    together = list(model.probabilities(rows))
    order = np.random.default_rng(2).permutation(len(rows))
    turned = list(model.probabilities([rows[row] for row in order], batch=7))
    padded = [model.probabilities([row, long], batch=2)[0] for row in rows[:16]]

    def compare(name: str, found: Sequence[np.ndarray], wanted: Sequence[np.ndarray] = together) -> Promise:
        return near(name, found, wanted, CLOSE, "probabilities")

    return [
        compare("batch of 1 = batch of N", model.probabilities(rows, batch=1)),
        compare(f"any order of {nouns}", [turned[place] for place in np.argsort(order)]),
        compare("any padding", padded, together[:16]),
        _are_probabilities(together, several=several),
        compare("saved = loaded", reloaded(model).probabilities(rows)),
    ]


def random_lines(model: Any, count: int) -> list[str]:
    """Lines of 1 to 20 symbols drawn from the vocabulary, seed 1."""
    draw = np.random.default_rng(1)
    size = model.text.vocabulary_size
    first = len(SPECIALS) if size > len(SPECIALS) else 1
    ids = [draw.integers(first, size, size=int(draw.integers(1, 21))).tolist() for _ in range(count)]
    return [model.text.tokenizer.decode(row) or "a" for row in ids]


def _are_probabilities(found: Sequence[np.ndarray], *, several: bool) -> Promise:
    name = "probabilities are probabilities"
    if several:
        inside = all(bool(((one >= 0) & (one <= 1)).all()) for one in found)
        return Promise(name, inside, "each label's own, in [0, 1]")
    gap = max(float(np.abs(one.sum(axis=-1) - 1).max()) for one in found)
    return Promise(name, gap < CLOSE, f"they sum to 1 within {gap:.1e}")
