"""Which rows make which batch: sorted by length and cut window by window, so that memory grows with no row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np

WINDOW = 150_000
"""Rows that are sorted and cut together, and all that a plan holds at a time. Fewer rows than that are one window."""

BLOCK = 1000
"""Neighbouring rows that stay in one window; which blocks meet in it is drawn anew each epoch."""

EVEN = 16


class Window(NamedTuple):
    """Batch ``i`` is ``rows[starts[i]:ends[i]]``; its padded tensors hold ``symbols[i]``, both sides together."""

    rows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    symbols: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, number: int) -> np.ndarray:
        """The row numbers, int64."""
        return self.rows[self.starts[number] : self.ends[number]].astype(np.int64)

    def fullest(self) -> int:
        """The batch with most symbols; of equals, the one with most rows."""
        most = np.flatnonzero(self.symbols == self.symbols.max())
        return int(most[np.argmax((self.ends - self.starts)[most])])


class Plan(Sequence[np.ndarray]):
    """The batches of an epoch in order, each its row numbers (int64). ``make`` makes a window; the last one is held."""

    def __init__(self, make: Callable[[int], Window], windows: int) -> None:
        self._make, self._windows = make, windows
        self._number, self._window = -1, _EMPTY
        self._ends = list(accumulate(len(self._at(number)) for number in range(windows)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, place: int) -> np.ndarray: ...

    @overload
    def __getitem__(self, place: slice) -> list[np.ndarray]: ...

    def __getitem__(self, place: int | slice) -> np.ndarray | list[np.ndarray]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = place + len(self) if place < 0 else place
        if not 0 <= at < len(self):
            raise IndexError(f"batch {place} of {len(self)}")
        number = bisect_right(self._ends, at)
        return self._at(number).batch(at - (self._ends[number - 1] if number else 0))

    def windows(self) -> Iterator[Window]:
        """The parts of the plan that are made together."""
        return (self._at(number) for number in range(self._windows))

    def _at(self, number: int) -> Window:
        if number != self._number:
            self._window = _EMPTY  # let go of it before the next one is made
            self._number, self._window = number, self._make(number)
        return self._window


_EMPTY = Window(*[np.empty(0, dtype=np.int64)] * 4)


class Cutter(NamedTuple):
    """How the rows of a window fall into batches: see ``data.batching.Batches``, which explains the settings."""

    tokens: int | None
    sentences: int | None
    shuffle: bool

    def window(self, rows: np.ndarray, sizes: Sequence[np.ndarray], random: np.random.Generator) -> Window:
        """``sizes`` are, for each side, the symbols of each of ``rows``, special ones counted."""
        order = self._by_length(sizes, random)
        rows, sizes = rows[order], [size[order] for size in sizes]
        ends = np.array(self._ends(sizes), dtype=np.int64)
        starts = np.concatenate([np.zeros(min(1, len(ends)), dtype=np.int64), ends[:-1]])
        widest = [np.maximum.reduceat(size, starts) if len(ends) else ends for size in sizes]
        symbols = (ends - starts) * np.sum(widest, axis=0, dtype=np.int64)
        if self.shuffle:
            batches = random.permutation(len(ends))
            starts, ends, symbols = starts[batches], ends[batches], symbols[batches]
        return Window(rows, starts, ends, symbols)

    def _by_length(self, sizes: Sequence[np.ndarray], random: np.random.Generator) -> np.ndarray:
        """Rows by source length and, among equals, by target length, up and down in turn, so that neighbours are alike
        on both sides. Noise of half a symbol, or half of what lies between two batches if that is more, moves rows
        from batch to batch, so that no two epochs are the same."""
        source, target = sizes[0], sizes[-1]
        count = len(source)
        tie = np.arange(count, dtype=np.int32)
        if self.shuffle and count:
            low, high = np.percentile(source, [5, 95])
            noise = max(0.5, (high - low) / 2 / self._about(sizes))
            source = np.floor(source + random.uniform(-noise, noise, count)).astype(np.int32)
            tie = random.permutation(count).astype(np.int32)
        return np.lexsort((tie, np.where(source % 2, -target, target), source)).astype(np.int32)

    def _about(self, sizes: Sequence[np.ndarray]) -> float:
        """Roughly how many batches the rows make."""
        if self.sentences is not None:
            return max(1.0, len(sizes[0]) / self.sentences)
        return max(1.0, sum(int(size.sum(dtype=np.int64)) for size in sizes) / (self.tokens or 1))

    def _ends(self, sizes: Sequence[np.ndarray]) -> list[int]:
        """Where each batch ends in rows that are in order."""
        count = len(sizes[0])
        if self.sentences is not None:
            return [*range(self.sentences, count, self.sentences), count] if count else []
        budget, ends = self.tokens or 1, []
        sides = [size.tolist() for size in sizes]
        start, widest = 0, [0] * len(sides)
        for i, here in enumerate(zip(*sides, strict=True)):
            widest = [max(pair) for pair in zip(widest, here, strict=True)]
            while i > start and (i + 1 - start) * sum(widest) > budget:
                start += even(i - start)
                ends.append(start)
                widest = [max(side[start : i + 1]) for side in sides]
        return [*ends, count] if count else []


def even(rows: int) -> int:
    """``rows``, or a little less: a multiple of EVEN where that loses less than half of them.

    Kernels are made anew for every shape that they meet (oneDNN's bfloat16 products take a millisecond each, and a
    thousand are kept). Batches of round sizes meet the same shapes again and again.
    """
    return rows - rows % EVEN if rows >= 2 * EVEN else rows
