"""What every reader promises, checked on one model, here and on this device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.base.protocol import SPECIALS
from unrolled.workshop.label_promises import CLOSE
from unrolled.workshop.promises import Promise

Asked = tuple[str, str]


def check_promises(model: Any, asked: Sequence[Asked] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on questions about documents (none: random ones of the model's own symbols)."""
    rows = random_questions(model, count) if asked is None else list(asked)
    together = model.probabilities(rows)
    order = np.random.default_rng(2).permutation(len(rows))
    turned = model.probabilities([rows[row] for row in order], batch=7)
    back = [turned[place] for place in np.argsort(order)]
    longest = max(rows, key=lambda row: len(row[0]) + len(row[1]))
    long = (" ".join([longest[0]] * 3), " ".join([longest[1]] * 3))
    padded = [model.probabilities([row, long], batch=2)[0] for row in rows[:16]]
    gap = max(float(np.abs(one.sum(axis=1) - 1).max()) for one in together)
    found = [
        _compare("batch of 1 = batch of N", model.probabilities(rows, batch=1), together),
        _compare("any order of questions", back, together),
        _compare("any padding", padded, together[:16]),
        Promise("probabilities are probabilities", gap < CLOSE, f"they sum to 1 within {gap:.1e}"),
        _compare("saved = loaded", _saved(model, rows), together),
    ]
    return [*found, _names(model, rows, together)] if model.text.slots else found


def random_questions(model: Any, count: int) -> list[Asked]:
    """Documents of 5 to 30 symbols and questions of 1 to 8, drawn from the vocabulary, entities among them, seed 1."""
    draw = np.random.default_rng(1)
    text = model.text
    size = text.tokenizer.vocabulary_size
    first = len(SPECIALS) if size > len(SPECIALS) else 1
    names = list(text.labels.names) if text.slots else []

    def line(low: int, high: int) -> str:
        ids = draw.integers(first, size, size=int(draw.integers(low, high + 1))).tolist()
        words = [text.tokenizer.decode([one]) or "a" for one in ids]
        for name in draw.permutation(len(names))[: min(2, len(names))]:
            words.insert(int(draw.integers(len(words) + 1)), names[name])
        return " ".join(words)

    return [(line(5, 30), line(1, 8)) for _ in range(count)]


def _names(model: Any, rows: Sequence[Asked], together: Sequence[np.ndarray]) -> Promise:
    """Every entity is called like another one: the answers stay where they were."""
    text = model.text
    names = list(text.labels.names)
    pattern = text.entity_pattern
    turned = {text.called_as(name): names[(place + 1) % len(names)] for place, name in enumerate(names)}
    renamed = [
        tuple(pattern.sub(lambda found: turned.get(text.called_as(found[0]), found[0]), side) for side in row)
        for row in rows
    ]
    return _compare("other names of entities", model.probabilities(renamed), together)


def _compare(name: str, first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Promise:
    gap = max(float(np.abs(one - two).max()) for one, two in zip(first, second, strict=True))
    return Promise(name, gap < CLOSE, f"probabilities differ by {gap:.1e} at most")


def _saved(model: Any, rows: Sequence[Asked]) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        model.save(place)
        found: list[np.ndarray] = type(model).load(place, device=str(model.device)).probabilities(rows)
    return found
