"""What every model of word vectors promises, checked on one model, here and on this device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.vectors import read_vectors, write_vectors
from unrolled.workshop.promises import Promise, reloaded

CLOSE = 1e-5


def check_promises(model: Any, lines: Sequence[str] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on the words of ``lines`` (none: the model's own). ``model`` is of pipeline's word vectors."""
    words = list(model.words) if lines is None else model.text.tokenizer.normalize(" ".join(lines)).split()
    words = [word for word in dict.fromkeys(words) if word in model.space.places][:count]
    if len(words) < 2:
        raise DataError("selfcheck: fewer than two of the words are known. Give other lines, or no file.")
    together = model.predict(words)
    order = np.random.default_rng(2).permutation(len(words))
    turned = model.predict([words[place] for place in order])
    back = [turned[place] for place in np.argsort(order)]
    return [
        _same("any order of words", back, together),
        _cosines(model, words, together),
        _same("saved = loaded", reloaded(model).predict(words), together),
        _written(model),
    ]


def _same(name: str, first: Sequence[Any], second: Sequence[Any]) -> Promise:
    same = sum(
        [near.word for near in left] == [near.word for near in right] for left, right in zip(first, second, strict=True)
    )
    return Promise(name, same == len(first), f"{same} of {len(first)} words have the same neighbours")


def _cosines(model: Any, words: Sequence[str], found: Sequence[Any]) -> Promise:
    vectors = model.vectors()
    rows = {word: vectors.matrix[place] for place, word in enumerate(vectors.words)}
    gap = 0.0
    for word, near in zip(words, found, strict=True):
        for other, cosine in near:
            one, two = rows[word].astype(np.float64), rows[other].astype(np.float64)
            lengths = np.linalg.norm(one) * np.linalg.norm(two)
            gap = max(gap, abs(cosine - one @ two / lengths) if lengths else abs(cosine))
    return Promise("cosines are the vectors'", gap < CLOSE, f"they differ by {gap:.1e} at most")


def _written(model: Any) -> Promise:
    vectors = model.vectors()
    with tempfile.TemporaryDirectory() as folder:
        again = read_vectors(write_vectors(Path(folder) / "v.txt", vectors, kind="word2vec"))
    same = again.words == list(vectors.words) and np.array_equal(again.matrix, vectors.matrix)
    return Promise("written = read", same, f"{len(again.words)} vectors bit for bit")
