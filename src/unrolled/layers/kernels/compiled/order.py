"""Where the real symbols of a batch go: loops over whole numbers; calls of NumPy would take longer than a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function


@loop_function
def measure(mask: Any, lengths: Any) -> bool:
    """How long each row of ``mask`` [batch, time] is, -1 where a symbol follows padding; whether all rows are good."""
    good = True
    for row in range(len(mask)):
        length, gap = 0, False
        for step in range(mask.shape[1]):
            if mask[row, step]:
                gap |= length < step
                length += 1
        lengths[row] = -1 if gap else length
        good &= lengths[row] > 0
    return good


@loop_function
def count(lengths: Any, counts: Any, rows: Any, back: Any) -> bool:
    """The rows of each step, the ``rows`` by length, the longest first and equals as they come, and where each is then.

    Gives back whether they came so.
    """
    counts[:] = 0
    for length in lengths:
        counts[length - 1] += 1
    for step in range(len(counts) - 2, -1, -1):
        counts[step] += counts[step + 1]
    free = np.zeros(len(counts) + 1, np.int64)  # the next place of a row of so many steps: behind all that are longer
    free[: len(counts)] = counts
    as_they_came = True
    for row in range(len(lengths)):
        place = free[lengths[row]]
        free[lengths[row]] += 1
        rows[place], back[row] = row, place
        as_they_came &= place == row
    return as_they_came


@loop_function
def follow(counts: Any, starts: Any, each: Any, before: Any, last: Any) -> None:
    """Where each step begins, of each place its row and the same row's place before, of each row its last place."""
    start = 0
    for step in range(len(counts)):
        starts[step] = start
        for row in range(counts[step]):
            each[start + row], last[row] = row, start + row
            if step:
                before[start + row - counts[0]] = starts[step - 1] + row
        start += counts[step]


@loop_function
def place(lengths: Any, rows: Any, counts: Any, starts: Any, time: int, symbols: Any, turned: Any) -> None:
    """Of each place its position in the batch [batch * time], and the place from the row's other end."""
    for step in range(len(counts)):
        for column in range(counts[step]):
            row, at = rows[column], starts[step] + column
            symbols[at] = row * time + step
            turned[at] = starts[lengths[row] - 1 - step] + column


@loop_function
def arrange(lengths: Any, time: int, counts: Any, starts: Any, moves: Any, each: Any, before: Any, places: Any) -> bool:
    """`count`, `follow` and `place` of a batch: ``moves`` are rows, back and last; gives back what `count` does.

    ``places`` are symbols, the symbols that are turned, all packed places, and turned.
    """
    as_they_came = count(lengths, counts, moves[0], moves[1])
    follow(counts, starts, each, before, moves[2])
    place(lengths, moves[0], counts, starts, time, places[0], places[3])
    for at in range(places.shape[1]):
        places[1, at], places[2, at] = places[0, places[3, at]], at
    return as_they_came
