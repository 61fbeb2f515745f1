"""A step's products together with what is done to their rows before and after, each in one call by its address.

Between two products that read a weight of megabytes nothing of Python's is left in a near cache, and each small call
takes several times as long as it would alone. So vectors are joined and rounded, multiplied and squashed, or a cell's
product and its equations made, without coming back to it. Weights are in panels (vectors.py), all numbers else float32
that lie side by side, and results are those of the single calls, bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types

from unrolled.layers.kernels.compiled.blocks import BYTES, PAIRS, SIDE, WORD
from unrolled.layers.kernels.compiled.functions import c_function, row_function, step_function
from unrolled.layers.kernels.compiled.lstm import remember, show
from unrolled.layers.kernels.compiled.rows import copy
from unrolled.layers.kernels.compiled.scalars import tanh
from unrolled.layers.kernels.compiled.vectors import PRODUCT

SINGLE, HALF = 4, 2
"""Bytes of a number of x: in float32, or in bfloat16 where panels hold pairs."""


def _signature(sizes: int, tensors: int) -> Any:
    return types.void(*[types.intp] * sizes, *[types.voidptr] * tensors, *[types.intp] * 5)


def _join(
    rows: int, first: int, second: int, squashed: int, given: Any, beside: Any, bias: Any, out: Any,
    threads: int, kind: int, panels: int, columns: int, steps: int,
) -> None:  # fmt: skip
    """out [rows, 16 · columns] = [x, y] · weight + bias, or with ``squashed`` tanh of it.

    x is [rows, first] and y [rows, second], which may be 0.
    """
    x, y = carray(given, (rows, first), np.float32), carray(beside, (rows, second), np.float32)
    width, inner = columns * SIDE, first + second
    result, added = carray(out, (rows, width), np.float32), carray(bias, (width,), np.float32)
    if kind == PAIRS:
        halves = np.empty((rows, inner), np.uint16)
        _lay_beside(x, y, halves)
        _multiply(threads, kind, panels, columns, steps, halves, HALF, result, added.ctypes.data, 0)
    elif second:
        whole = np.empty((rows, inner), np.float32)
        _lay_beside(x, y, whole)
        _multiply(threads, kind, panels, columns, steps, whole, SINGLE, result, added.ctypes.data, 0)
    else:
        _multiply(threads, kind, panels, columns, steps, x, SINGLE, result, added.ctypes.data, 0)
    if squashed:
        for row in range(rows):
            _squash(result[row])


def _lstm(
    rows: int, n: int, projected: Any, hidden: Any, memory: Any, made: Any, output: Any,
    threads: int, kind: int, panels: int, columns: int, steps: int,
) -> None:  # fmt: skip
    """C' and h of an LSTM from its projected input [rows, 4n], from h and C; the weight is [n, 4n]."""
    given, old = carray(projected, (rows, 4 * n), np.float32), carray(memory, (rows, n), np.float32)
    past, new = carray(hidden, (rows, n), np.float32), carray(made, (rows, n), np.float32)
    h, squashed = carray(output, (rows, n), np.float32), np.empty(n, np.float32)
    total = np.empty((rows, 4 * n), np.float32)
    if kind == PAIRS:
        halves = np.empty((rows, n), np.uint16)
        _lay_beside(past, past[:, :0], halves)
        _multiply(threads, kind, panels, columns, steps, halves, HALF, total, given.ctypes.data, columns * BYTES)
    else:
        _multiply(threads, kind, panels, columns, steps, past, SINGLE, total, given.ctypes.data, columns * BYTES)
    for row in range(rows):
        remember(total[row], old[row], new[row], None, None)
        show(total[row, 3 * n :], new[row], squashed, h[row], None, None)


@step_function
def _multiply(
    threads: int, kind: int, panels: int, columns: int, steps: int,
    x: Any, size: int, out: Any, first: int, first_below: int,
) -> None:  # fmt: skip
    """out = x · weight + what stands at ``first``; numbers of x are of ``size`` bytes."""
    apart, below = size * x.shape[1], BYTES * columns
    PRODUCT(
        threads, kind, panels, columns, steps,
        len(out), x.ctypes.data, apart, WORD, out.ctypes.data, below, first, first_below,
    )  # fmt: skip


@row_function
def _lay_beside(x: Any, y: Any, out: Any) -> None:
    """The rows of both side by side, in the type of ``out``."""
    first = x.shape[1]
    for row in range(len(out)):
        copy(x[row], out[row, :first])
        copy(y[row], out[row, first:])


@row_function
def _squash(x: Any) -> None:
    for j in range(len(x)):
        x[j] = tanh(x[j])


join = c_function(_join, _signature(4, 4)).ctypes
lstm = c_function(_lstm, _signature(2, 5)).ctypes
