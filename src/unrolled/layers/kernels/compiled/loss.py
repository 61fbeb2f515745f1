"""Cross-entropy and its gradient of one row of logits after the other, while the row is in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, summing
from unrolled.layers.kernels.compiled.scalars import exp, put, take

LANES = 64


@loop_function
def walk(logits: Any, bias: Any, targets: Any, shares: Any, into: Any, rows: Any) -> Any:
    """Σ cross-entropy of ``targets`` under softmax(logits + bias); see layers/loss.py.

    ``shares``: of the gold symbol and of every symbol in the distribution that is aimed at. softmax - that goes
    ``into`` a matrix like ``logits``, perhaps themselves, and is added to ``rows`` [vocabulary]. ``bias``, ``into`` and
    ``rows`` may be None.
    """
    gold_share, share = shares[0], shares[1]
    work = np.empty(logits.shape[1], shares.dtype)
    lanes = np.empty(LANES, shares.dtype)
    loss = 0.0
    for row in range(len(logits)):
        read(logits[row], bias, work)
        largest, gold = maximum(work, lanes), work[targets[row]]
        if share > 0:
            loss -= share * (total(work) - len(work) * largest)
        norm = raise_all(work, largest)
        loss += np.log(np.float64(norm)) - gold_share * (gold - largest)
        if into is not None:
            divide(work, norm, share)
            work[targets[row]] -= gold_share
            write(work, into[row], rows)
    return loss


@row_function
def read(logits: Any, bias: Any, work: Any) -> None:
    """work = logits + bias."""
    for j in range(len(work)):
        work[j] = take(logits, j)
        if bias is not None:
            work[j] += bias[j]


@row_function
def maximum(work: Any, lanes: Any) -> Any:
    """The largest number; ``lanes`` get those of every 64th of whole blocks, so that many are compared at once.

    Of fewer than 64 numbers all lanes are the first.
    """
    whole = len(work) // LANES * LANES
    for lane in range(LANES):
        lanes[lane] = work[lane if whole else 0]
    for start in range(LANES, whole, LANES):
        for lane in range(LANES):
            x = work[start + lane]
            lanes[lane] = x if x > lanes[lane] else lanes[lane]
    largest = lanes[0]
    for lane in range(1, LANES):
        largest = lanes[lane] if lanes[lane] > largest else largest
    for j in range(whole, len(work)):
        largest = work[j] if work[j] > largest else largest
    return largest


@summing
def total(work: Any) -> Any:
    found = work[0] - work[0]
    for j in range(len(work)):
        found += work[j]
    return found


@summing
def raise_all(work: Any, largest: Any) -> Any:
    """work = e^(work - largest), and their sum."""
    norm = largest - largest
    for j in range(len(work)):
        work[j] = exp(work[j] - largest)
        norm += work[j]
    return norm


@row_function
def divide(work: Any, norm: Any, share: Any) -> None:
    """work = softmax - smoothing / vocabulary."""
    for j in range(len(work)):
        work[j] = work[j] / norm - share


@row_function
def write(work: Any, into: Any, rows: Any) -> None:
    for j in range(len(work)):
        put(into, j, work[j])
    if rows is not None:
        for j in range(len(work)):
            rows[j] += work[j]
