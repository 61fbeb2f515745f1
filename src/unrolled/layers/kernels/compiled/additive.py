"""The derivative of the additive attention's score for one query a row, key by key while it is in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function
from unrolled.layers.kernels.compiled.rows import add, add_times
from unrolled.layers.kernels.compiled.scalars import put, tanh


@loop_function
def score_back(keys: Any, asked: Any, vector: Any, scores: Any, of_keys: Any, of_vector: Any, of_asked: Any) -> None:
    """From ``scores``, the gradient ė: v̇ += Σ ė_j tanh_j; ``of_keys`` -= ė_j tanh_j²; q̇ = v * Σ_j ė_j (1 - tanh_j²).

    Where ė_j is 0, as in padding, there is nothing to add.
    """
    work, slope = np.empty(len(vector), vector.dtype), np.empty(len(vector), vector.dtype)
    for row in range(len(keys)):
        slope[:] = 0
        for place in range(keys.shape[1]):
            grad = scores[row, place]
            if grad != 0:
                hide(keys[row, place], asked[row], work)
                add_times(of_vector, work, grad)
                square(work, grad)
                add(of_keys[row, place], work)
                add_rest(slope, work, grad)
        spread(slope, vector, of_asked[row])


@row_function
def hide(key: Any, asked: Any, work: Any) -> None:
    """work = tanh(q + k)."""
    for j in range(len(work)):
        work[j] = tanh(key[j] + asked[j])


@row_function
def square(work: Any, grad: Any) -> None:
    """work = -ė · work²."""
    for j in range(len(work)):
        work[j] = -grad * work[j] * work[j]


@row_function
def add_rest(slope: Any, work: Any, grad: Any) -> None:
    """slope += ė + work."""
    for j in range(len(slope)):
        slope[j] += grad + work[j]


@row_function
def spread(slope: Any, vector: Any, out: Any) -> None:
    """out = slope · v, in the type of ``out``."""
    for j in range(len(vector)):
        put(out, j, slope[j] * vector[j])
