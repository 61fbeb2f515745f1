"""The rows of a loop over time that each thread works on: no step of a row asks for another row."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.layers.kernels.compiled.rows import Steps

if TYPE_CHECKING:
    from unrolled.layers.kernels.order import Rows


class Share(NamedTuple):
    """Rows ``first`` to ``stop`` - 1, of step t the ``counts[t]`` from place ``starts[t]`` of a packed tensor on."""

    number: int
    first: int
    stop: int
    counts: Any
    starts: Any

    def steps(self, fresh: bool) -> Steps:
        return Steps(self.counts, self.starts, fresh)

    def of(self, array: Any) -> Any:
        """The share's rows of an array [batch, …], or None of None."""
        return None if array is None else array[self.first : self.stop]


def shares(rows: Rows, threads: int, whole: int = 1) -> list[Share]:
    """About as many symbols for each of so many threads, or of as many as there are rows; the longest rows first.

    But for the last one's, rows come in multiples of ``whole``.
    """
    counts, batch = rows.counts, int(rows.counts[0])
    if threads == 1:
        return [Share(0, 0, batch, counts, rows.starts)]
    lengths = len(counts) - np.searchsorted(counts[::-1], np.arange(batch), side="right")
    done = np.cumsum(lengths)
    ends = np.searchsorted(done, done[-1] * np.arange(1, threads) / threads) + 1
    ends = (ends + whole // 2) // whole * whole
    found: list[Share] = []
    for first, stop in pairwise([0, *np.minimum(ends, batch).tolist(), batch]):
        if first < stop:
            own = np.clip(counts - first, 0, stop - first)
            steps = int(np.count_nonzero(own))
            found.append(Share(len(found), first, stop, own[:steps], rows.starts[:steps] + first))
    return found
