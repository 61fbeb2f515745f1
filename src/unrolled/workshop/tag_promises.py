"""What every tagger promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.base.protocol import SPECIALS
from unrolled.workshop.promises import Promise, near, reloaded

CLOSE = 1e-4
"""How far probabilities may lie apart."""

Found = Sequence[np.ndarray]


def check_promises(model: Any, sentences: Sequence[Sequence[str]] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``sentences`` (none: random ones of the model's own words). ``model`` is a tagger of
    pipeline's."""
    given = random_sentences(model, count) if sentences is None else [one for one in sentences if one][:count]
    together = model.marginals(given)
    order = np.random.default_rng(2).permutation(len(given))
    turned = model.marginals([given[row] for row in order], batch=7)
    long = [word for one in given for word in one][:200]
    padded = [model.marginals([one, long], batch=2)[0] for one in given[:16]]
    return [
        _compare("batch of 1 = batch of N", model.marginals(given, batch=1), together),
        _compare("any order of sentences", [turned[place] for place in np.argsort(order)], together),
        _compare("any padding", padded, together[:16]),
        _sums(together),
        _legal(model, given),
        _compare("saved = loaded", reloaded(model).marginals(given), together),
    ]


def random_sentences(model: Any, count: int) -> list[list[str]]:
    """Sentences of 1 to 20 words drawn from the vocabulary, seed 1."""
    draw = np.random.default_rng(1)
    words = model.text.tokenizer.vocabulary[len(SPECIALS) :] or ("a",)
    return [[words[place] for place in draw.integers(0, len(words), int(draw.integers(1, 21)))] for _ in range(count)]


def _compare(name: str, first: Found, second: Found) -> Promise:
    return near(name, first, second, CLOSE, "probabilities")


def _sums(found: Found) -> Promise:
    gap = max((float(np.abs(one.sum(axis=1) - 1).max()) for one in found), default=0.0)
    return Promise("probabilities are probabilities", gap < CLOSE, f"each word's sum to 1 within {gap:.1e}")


def _legal(model: Any, sentences: Sequence[Sequence[str]]) -> Promise:
    tags, name = model.text.tags, "tags follow their scheme"
    if tags.scheme is None:
        return Promise(name, True, "each word has its own: every tag may follow every other")
    for row in model.predict(sentences):
        tags.spans(row)  # DataError where one does not
    return Promise(name, True, f"{len(sentences)} sentences of {tags.scheme}")
