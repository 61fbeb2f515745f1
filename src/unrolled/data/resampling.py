"""Steps of any width put on a clock: the mean of what falls into each step, nothing where nothing does."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

MOST = 50_000_000
"""Steps of one series: more is a mistaken width or time."""


def resampled(
    positions: NDArray[np.float64], numbers: NDArray[np.float64], lines: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """(positions, numbers, lines) of every step from the first to the last that some ``positions`` fall into.

    Each number is the mean of those in its step that are not missing, NaN where there are none; a line is the first of
    its step, 0 where there is none. The rows may stand in any order.
    """
    from unrolled.base.errors import DataError

    steps = np.floor(positions + 1e-9).astype(np.int64)
    first, count = int(steps.min()), int(steps.max() - steps.min()) + 1
    if count > MOST:
        raise DataError(f"task.every makes {count:,} steps of one series. Take a larger width.")
    place = steps - first
    real = np.isfinite(numbers)
    sums, counts = np.zeros((count, numbers.shape[1])), np.zeros((count, numbers.shape[1]))
    np.add.at(sums, place, np.where(real, numbers, 0.0))
    np.add.at(counts, place, real)
    where = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(where, place, lines)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    return first + np.arange(count, dtype=np.float64), means, np.where(where == np.iinfo(np.int64).max, 0, where)
