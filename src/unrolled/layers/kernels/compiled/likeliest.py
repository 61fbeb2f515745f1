"""The likeliest symbols of each row of logits and their log-probabilities, in two passes over the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, step_function, summing
from unrolled.layers.kernels.compiled.loss import LANES, maximum
from unrolled.layers.kernels.compiled.scalars import F, exp

ROWS = 4
"""That are gone through a first time and then a second, while they are in the cache.

Both times in one loop over rows took a third longer: the compiler has fewer registers then for each.
"""


@loop_function
def pick(logits: Any, vocabulary: int, scores: Any, ids: Any) -> None:
    """The largest of the first ``vocabulary`` logits of each row, best first, as many as ``ids`` [rows, k] holds.

    ``scores`` [rows, k] get their natural-log probabilities. Of equal logits the one with the lower id comes first.
    """
    pick_all(logits, vocabulary, scores, ids)


@step_function
def pick_all(logits: Any, vocabulary: int, scores: Any, ids: Any) -> None:
    """`pick`, within another function."""
    k, lanes, largest = ids.shape[1], np.empty(LANES, logits.dtype), np.empty(ROWS, logits.dtype)
    for first in range(0, len(logits), ROWS):
        rows = min(ROWS, len(logits) - first)
        for row in range(rows):
            own = logits[first + row][:vocabulary]
            largest[row] = maximum(own, lanes)
            insert_all(own, reached(lanes, len(own), k), scores[first + row], ids[first + row])
        for row in range(rows):
            own = logits[first + row][:vocabulary]
            norm = np.log(np.float64(sum_of_powers(own, largest[row])))
            for place in range(k):
                scores[first + row, place] = scores[first + row, place] - largest[row] - norm


@summing
def sum_of_powers(x: Any, largest: Any) -> Any:
    """Σ e^(x - largest)."""
    total = largest - largest
    for j in range(len(x)):
        total += exp(x[j] - largest)
    return total


@row_function
def reached(lanes: Any, count: int, k: int) -> Any:
    """A number that the ``k`` largest of ``count`` reach: the least of the largest of ``k`` groups of lanes.

    -∞ where there are too few of either.
    """
    if count < LANES or k > LANES:
        return F(-np.inf)
    least, size = F(np.inf), LANES // k
    for group in range(k):
        largest = lanes[group * size]
        for lane in range(group * size + 1, (group + 1) * size):
            largest = lanes[lane] if lanes[lane] > largest else largest
        least = largest if largest < least else least
    return least


@row_function
def insert_all(x: Any, bound: Any, best: Any, ids: Any) -> None:
    """The largest numbers of x in falling order, which reach ``bound``; a block of which none does is left as it is."""
    k, count = len(ids), 0
    for start in range(0, len(x), LANES):
        stop = min(start + LANES, len(x))
        if any_from(x[start:stop], bound):
            for j in range(start, stop):
                if x[j] >= bound:
                    count = insert(x[j], j, best, ids, count)
            if count == k and best[k - 1] > bound:
                bound = best[k - 1]
    for place in range(count, k):  # some of x are no numbers
        best[place], ids[place] = x[place], place


@row_function
def any_from(x: Any, bound: Any) -> Any:
    found = 0
    for j in range(len(x)):
        found += x[j] >= bound
    return found > 0


@row_function
def insert(x: Any, j: int, best: Any, ids: Any, count: int) -> Any:
    """Put x, the number of ``j``, to the ``count`` largest so far, if it is one of them; how many there are then."""
    k = len(ids)
    if count == k and not x > best[k - 1]:
        return count
    place = count if count < k else k - 1
    while place > 0 and x > best[place - 1]:
        best[place], ids[place] = best[place - 1], ids[place - 1]
        place -= 1
    best[place], ids[place] = x, j
    return min(count + 1, k)
