"""The input product of all steps at once, with its bias and in the type of sums."""

from __future__ import annotations

from typing import Any

from unrolled.layers.kernels.compiled.products import multiply
from unrolled.layers.kernels.compiled.rows import loop_function


@loop_function
def project(x: Any, weight: Any, bias: Any, total: Any) -> None:
    """total = x · weight + bias; x is in the type of products, bias and total in that of sums."""
    for row in range(len(total)):
        for j in range(len(bias)):
            total[row, j] = bias[j]
    multiply(x, weight, total, True)
