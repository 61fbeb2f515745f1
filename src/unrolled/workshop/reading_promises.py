"""What every reader promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.base.protocol import SPECIALS
from unrolled.workshop.label_promises import CLOSE, of_probabilities
from unrolled.workshop.promises import Promise, near

Asked = tuple[str, str]


def check_promises(model: Any, asked: Sequence[Asked] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on questions about documents (none: random ones of the model's own symbols)."""
    rows = random_questions(model, count) if asked is None else list(asked)
    longest = max(rows, key=lambda row: len(row[0]) + len(row[1]))
    long = (" ".join([longest[0]] * 3), " ".join([longest[1]] * 3))
    found = of_probabilities(model, rows, long, "questions")
    return [*found, _names(model, rows)] if model.text.slots else found


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


def _names(model: Any, rows: Sequence[Asked]) -> Promise:
    """Every entity is called like another one: the answers stay where they were."""
    text = model.text
    names = list(text.labels.names)
    pattern = text.entity_pattern
    turned = {text.called_as(name): names[(place + 1) % len(names)] for place, name in enumerate(names)}
    renamed = [
        tuple(pattern.sub(lambda found: turned.get(text.called_as(found[0]), found[0]), side) for side in row)
        for row in rows
    ]
    found, wanted = model.probabilities(renamed), model.probabilities(rows)
    return near("other names of entities", found, wanted, CLOSE, "probabilities")
