"""How long texts are: histogram, long tail, and pairs whose two sides do not fit each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from unrolled.data.census import RATIO_STEPS, Census
from unrolled.data.column import ColumnCensus
from unrolled.data.findings import Finding, Lengths, percent

BINS = 16


def measure(census: Census, index: int) -> Lengths | None:
    """Lengths of a column: in words where texts are made of words, else in characters."""
    column = census.columns[index]
    if not census.rows:
        return None
    words = made_of_words(column)
    counts = column.word_lengths if words else column.character_lengths
    lengths, weights = _arrays(counts)
    high = int(_quantile(lengths, weights, 0.99))
    width = max(1, math.ceil(high / BINS))
    bins = max(1, math.ceil(high / width))
    which = np.minimum((np.maximum(lengths, 1) - 1) // width, bins - 1)
    longest = column.longest_in_words if words else column.longest
    return Lengths(
        unit="words" if words else "characters",
        shortest=int(lengths[0]),
        median=int(_quantile(lengths, weights, 0.5)),
        mean=round(_mean(counts), 2),
        percentile_99=high,
        longest=int(lengths[-1]),
        longest_place=census.table.place(longest[1], index),
        longest_share=round(_share_of_longest(lengths, weights), 4),
        width=width,
        histogram=tuple(np.bincount(which, weights=weights, minlength=bins).astype(int).tolist()),
    )


def made_of_words(column: ColumnCensus) -> bool:
    """Whether texts hold several words separated by spaces, so that counting words says how long they are."""
    return _mean(column.word_lengths) > 1.5


def _arrays(counts: Counter[int]) -> tuple[np.ndarray, np.ndarray]:
    ordered = sorted(counts.items())
    return np.array([length for length, _ in ordered]), np.array([count for _, count in ordered])


def _mean(counts: Counter[int]) -> float:
    return sum(length * count for length, count in counts.items()) / max(sum(counts.values()), 1)


def _quantile(lengths: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The smallest length that is not passed by ``share`` of the texts."""
    return float(lengths[np.searchsorted(np.cumsum(weights), share * weights.sum())])


def _share_of_longest(lengths: np.ndarray, weights: np.ndarray, share: float = 0.01) -> float:
    """Of all units, the part that the longest texts hold."""
    total = float((lengths * weights).sum())
    left, held = max(1.0, share * weights.sum()), 0.0
    for length, count in zip(lengths[::-1].tolist(), weights[::-1].tolist(), strict=True):
        taken = min(count, left)
        held, left = held + taken * length, left - taken
        if left <= 0:
            break
    return float(held / total) if total else 0.0


def long_tail(census: Census) -> Iterator[Finding]:
    """Columns with a few texts much longer than all others: they set the memory that a batch needs."""
    for index, column in enumerate(census.columns):
        found = measure(census, index)
        if found and found.longest > 4 * max(found.percentile_99, 5) and census.rows >= 100:
            message = (
                f"the longest '{column.name}' has {found.longest:,} {found.unit}, where 99 % have at most "
                f"{found.percentile_99:,}; the longest 1 % hold {found.longest_share:.0%} of all. Is it one example?"
            )
            yield Finding("warning", "long text", census.split, 1, message, (found.longest_place,))


def unequal(census: Census) -> Iterator[Finding]:
    """Pairs whose length ratio is far from the usual one: often not each other's translation."""
    if census.ratios.total() < 20:
        return
    steps, weights = _arrays(census.ratios)
    middle = _quantile(steps, weights, 0.5)
    away, order = np.abs(steps - middle), np.argsort(np.abs(steps - middle))
    spread = 1.4826 * _quantile(away[order], weights[order], 0.5)
    reach = max(6 * spread, RATIO_STEPS * np.log(2.5))
    count = int(weights[away > reach].sum())
    places = census.extremes((middle - reach) / RATIO_STEPS, (middle + reach) / RATIO_STEPS)
    if not count or not places:
        return
    usual = np.exp(middle / RATIO_STEPS)
    pairs = f"{count:,} pair{'s' if count > 1 else ''} ({percent(count / census.rows)})"
    message = f"{pairs} where the target is not about {usual:.2g} times as long as the source. Do they belong together?"
    shown = tuple(f"{census.table.place(place)} ({np.exp(ratio):.2g} times)" for ratio, place in places)
    yield Finding(
        "warning" if count >= census.rows / 100 else "note", "length ratio", census.split, count, message, shown
    )
