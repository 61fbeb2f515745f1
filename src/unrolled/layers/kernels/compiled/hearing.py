"""What a step of a compiled loop hears of the state before: a product, with recurrent dropout and normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import step_function
from unrolled.layers.kernels.compiled.norms import add_all_normalised, normalise_all_back
from unrolled.layers.kernels.compiled.products import multiply
from unrolled.layers.kernels.compiled.rows import add, scale, times


@step_function
def hear(h: Any, weight: Any, total: Any, at: int, width: int, seen: Any, norm: Any, start: int) -> None:
    """total += U (h * d) in ``width`` columns from ``at``; d is the recurrent dropout ``seen``.

    With ``norm`` the product is normalised before it is added.
    """
    rows = len(h)
    if seen is None:
        heard = h
    else:
        heard = np.empty((rows, h.shape[1]), h.dtype)
        for row in range(rows):
            times(h[row], seen[row], heard[row])
    if norm is None:
        multiply(heard, weight, total[:, at : at + width], True)
    else:
        multiply(heard, weight, norm.given[start : start + rows], False)
        add_all_normalised(norm, start, total, at)


@step_function
def hear_back(
    grad: Any, at: int, width: int, weight: Any, out: Any, keep: bool, seen: Any, norm: Any, start: int
) -> None:
    """out = the gradient of h from that of the total's columns, added to what ``out`` holds with ``keep``."""
    rows = len(grad)
    if norm is None:
        own = grad[:, at : at + width]
    else:
        own = norm.grad[start : start + rows, norm.at : norm.at + width]
        normalise_all_back(grad, at, norm, start)
    if seen is None:
        multiply(own, weight, out, keep)
    else:
        back = np.empty((rows, out.shape[1]), out.dtype)
        multiply(own, weight, back, False)
        for row in range(rows):
            scale(back[row], seen[row])
            if not keep:
                out[row, :] = 0
            add(out[row], back[row])
