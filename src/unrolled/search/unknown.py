"""Unknown words, replaced by what the model looked at when it said them (Jean et al. 2015, arXiv:1412.2007)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.protocol import SPECIALS, UNKNOWN


def replace_unknown(
    tokens: Sequence[str],
    weights: np.ndarray | None,
    source_words: Sequence[str],
    unknown: str = SPECIALS[UNKNOWN],
) -> list[str]:
    """``tokens`` with every ``unknown`` replaced by its most attended source word, as `looked_at` finds it."""
    found = looked_at(tokens, weights, source_words, unknown)
    return [source_words[found[place]] if place in found else token for place, token in enumerate(tokens)]


def looked_at(
    tokens: Sequence[str],
    weights: np.ndarray | None,
    source_words: Sequence[str],
    unknown: str = SPECIALS[UNKNOWN],
) -> dict[int, int]:
    """For the place of every ``unknown`` in ``tokens`` that of its most attended source word, of equals the first.

    A source symbol without text of its own ("", a bare mark of a space) stands for none and is passed over.
    ``weights`` [tokens or more, source words or more]; further rows and columns, which belong to END, are not read.
    UsageError if there is an unknown to replace and no attention to say by what. Without source words nothing is found.
    """
    if unknown not in tokens or not any(source_words):
        return {}
    if weights is None:
        raise UsageError(
            "[search.replace_unknown] true was given, but this model has no attention, so no source word belongs to "
            f"{unknown}. Set replace_unknown to false, or ban_unknown to true."
        )
    if weights.shape[0] < len(tokens) or weights.shape[1] < len(source_words):
        raise UsageError(
            f"search: weights of shape {weights.shape} cannot cover {len(tokens)} tokens and {len(source_words)} "
            "source words. Merge rows and columns to the words that are given."
        )
    there = np.array([bool(word) for word in source_words])
    looked = np.where(there, weights[: len(tokens), : len(source_words)], -1.0).argmax(axis=1)
    return {place: int(looked[place]) for place, token in enumerate(tokens) if token == unknown}
