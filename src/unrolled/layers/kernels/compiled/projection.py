"""The input product of all steps at once, with its bias and in the type of sums; normalised where the cell is."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled import products
from unrolled.layers.kernels.compiled.functions import loop_function, row_function
from unrolled.layers.kernels.compiled.norms import moments, normalise, normalise_back
from unrolled.layers.kernels.compiled.products import multiply
from unrolled.layers.kernels.compiled.rows import add, copy
from unrolled.layers.kernels.compiled.scalars import take


@loop_function
def project(x: Any, weight: Any, bias: Any, total: Any) -> None:
    """total = x · weight + bias; x is in the type of products, bias and total in that of sums."""
    products.project(x, weight, bias, total)


@loop_function
def sum_rows(grad: Any, total: Any) -> None:
    """total = Σ over rows of ``grad``, in its own type: the gradient of a bias."""
    total[:] = 0
    for row in range(len(grad)):
        add_taken(total, grad[row])


@row_function
def add_taken(total: Any, x: Any) -> None:
    for j in range(len(total)):
        total[j] += take(x, j)


@loop_function
def sum_of_looks(grad: Any, at: int, memory: Any, total: Any) -> None:
    """total [gates, hidden] = Σ over rows of gradient * memory: a peephole's, of the gates from column ``at`` on."""
    total[:] = 0
    n = memory.shape[1]
    for row in range(len(memory)):
        for gate in range(len(total)):
            begin = at + gate * n
            add_taken_times(total[gate], grad[row, begin : begin + n], memory[row])


@row_function
def add_taken_times(total: Any, x: Any, y: Any) -> None:
    for j in range(len(total)):
        total[j] += take(x, j) * y[j]


@loop_function
def project_normed(x: Any, weight: Any, bias: Any, norm: Any, widths: Any, total: Any) -> None:
    """total = gain · (product - mean) / √(variance + ε) + bias, over each of ``widths`` columns by itself."""
    multiply(x, weight, norm.given, False)
    normalise_groups(bias, norm, widths, total)


@row_function
def normalise_groups(bias: Any, norm: Any, widths: Any, total: Any) -> None:
    """`project_normed`, from the product."""
    for row in range(len(total)):
        at = 0
        for group in range(len(widths)):
            stop = at + widths[group]
            given = norm.given[row, at:stop]
            mean, spread = moments(given)
            norm.mean[row, group], norm.spread[row, group] = mean, spread
            normalise(given, norm.gain[at:stop], mean, spread, total[row, at:stop])
            at = stop
        add(total[row], bias)


@loop_function
def project_normed_back(grad: Any, norm: Any, widths: Any, gain: Any) -> None:
    """The product's gradient, into ``norm.grad``, and the gain's, from ``grad``, that of the total; both may be one."""
    gain[:] = 0
    normalise_groups_back(grad, norm, widths, gain, np.empty(norm.grad.shape[1], norm.given.dtype))


@row_function
def normalise_groups_back(grad: Any, norm: Any, widths: Any, gain: Any, room: Any) -> None:
    """`project_normed_back` added to ``gain``; rows are read in ``room``: what is overwritten goes number by number."""
    for row in range(len(grad)):
        copy(grad[row], room)
        at = 0
        for group in range(len(widths)):
            stop = at + widths[group]
            given, mean, spread = norm.given[row, at:stop], norm.mean[row, group], norm.spread[row, group]
            own = norm.grad[row, at:stop]
            normalise_back(room[at:stop], given, norm.gain[at:stop], mean, spread, gain[at:stop], own)
            at = stop
