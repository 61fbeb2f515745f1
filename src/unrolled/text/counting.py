"""Counts of different words in bounded memory, in an order that depends on the text alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

MOST = 2_000_000
"""Different words kept at a time; past it the rarest are forgotten (lossy counting, Manku and Motwani 2002)."""


def count_words(
    lines: Iterable[Sequence[str]], cut: Callable[[str], list[str]], most: int = MOST
) -> list[tuple[str, int]]:
    """Count the words of ``lines``, then ``cut`` each different one into pieces once and count those.

    Most frequent first, ties by code point. Holds at most about ``most`` different words.
    """
    seen: Counter[str] = Counter()
    for words in lines:
        seen.update(words)
        if len(seen) > most:
            _forget_rarest(seen, most // 2)
    pieces: Counter[str] = Counter()
    for word, count in seen.items():
        for piece in cut(word):
            pieces[piece] += count
    return sorted(pieces.items(), key=lambda item: (-item[1], item[0]))


def _forget_rarest(seen: Counter[str], keep: int) -> None:
    rare = 1
    while len(seen) > keep:
        for word in [word for word, count in seen.items() if count <= rare]:
            del seen[word]
        rare *= 2
