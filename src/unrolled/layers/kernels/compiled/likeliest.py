"""The likeliest symbols of each row of logits and their log-probabilities, in two passes over the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, summing
from unrolled.layers.kernels.compiled.loss import LANES, maximum
from unrolled.layers.kernels.compiled.scalars import exp


@loop_function
def pick(logits: Any, vocabulary: int, scores: Any, ids: Any) -> None:
    """The largest of the first ``vocabulary`` logits of each row, best first, as many as ``ids`` [rows, k] holds.

    ``scores`` [rows, k] get their natural-log probabilities. Of equal logits the one with the lower id comes first.
    """
    lanes = np.empty(LANES, logits.dtype)
    for row in range(len(logits)):
        own = logits[row, :vocabulary]
        largest = maximum(own, lanes)
        norm = np.log(np.float64(sum_of_powers(own, largest)))
        insert_all(own, scores[row], ids[row])
        for place in range(ids.shape[1]):
            scores[row, place] = scores[row, place] - largest - norm


@summing
def sum_of_powers(x: Any, largest: Any) -> Any:
    """Σ e^(x - largest)."""
    total = largest - largest
    for j in range(len(x)):
        total += exp(x[j] - largest)
    return total


@row_function
def insert_all(x: Any, best: Any, ids: Any) -> None:
    """The largest numbers of x in falling order; a block of which none is large enough is left as it is."""
    k, count = len(ids), 0
    for start in range(0, len(x), LANES):
        stop = min(start + LANES, len(x))
        if count == k and not any_above(x[start:stop], best[k - 1]):
            continue
        for j in range(start, stop):
            if count == k and not x[j] > best[k - 1]:
                continue
            place = count if count < k else k - 1
            while place > 0 and x[j] > best[place - 1]:
                best[place], ids[place] = best[place - 1], ids[place - 1]
                place -= 1
            best[place], ids[place] = x[j], j
            count = min(count + 1, k)


@row_function
def any_above(x: Any, bound: Any) -> Any:
    above = 0
    for j in range(len(x)):
        above += x[j] > bound
    return above > 0
