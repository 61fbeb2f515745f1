"""A step's products together with what is done to their rows before and after, each in one call by its address.

Between two products that read a weight of megabytes nothing of Python's is left in a near cache, and each small call
takes several times as long as it would alone. So vectors are joined and rounded, multiplied and squashed, or a cell's
product and its equations made, without coming back to it. Weights are in panels (vectors.py), all numbers else float32
that lie side by side, and results are those of the single calls, bit by bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray, types

from unrolled.layers.kernels.compiled.blocks import BYTES, PAIRS, SIDE, WORD
from unrolled.layers.kernels.compiled.functions import c_function, row_function, step_function
from unrolled.layers.kernels.compiled.likeliest import pick_all
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
    width = columns * SIDE
    result, added = carray(out, (rows, width), np.float32), carray(bias, (width,), np.float32)
    project(x, y, Weight(threads, kind, panels, columns, steps), added, result)
    if squashed:
        squash_all(result)


def _lstm(
    rows: int, n: int, projected: Any, hidden: Any, memory: Any, made: Any, output: Any,
    threads: int, kind: int, panels: int, columns: int, steps: int,
) -> None:  # fmt: skip
    """C' and h of an LSTM from its projected input [rows, 4n], from h and C; the weight is [n, 4n]."""
    given, old = carray(projected, (rows, 4 * n), np.float32), carray(memory, (rows, n), np.float32)
    past, new = carray(hidden, (rows, n), np.float32), carray(made, (rows, n), np.float32)
    h = carray(output, (rows, n), np.float32)
    total = np.empty((rows, 4 * n), np.float32)
    advance(given, past, old, Weight(threads, kind, panels, columns, steps), total, new, h)


def _say(
    rows: int, inner: int, vocabulary: int, k: int, hidden: Any, bias: Any, scores: Any, ids: Any,
    threads: int, kind: int, panels: int, columns: int, steps: int,
) -> None:  # fmt: skip
    """The ``k`` likeliest symbols under softmax(x · weight + bias), of ``vocabulary`` columns: see `likeliest.pick`."""
    x, added = carray(hidden, (rows, inner), np.float32), carray(bias, (columns * SIDE,), np.float32)
    found, best = carray(scores, (rows, k), np.float32), carray(ids, (rows, k), np.int64)
    say_all(x, Weight(threads, kind, panels, columns, steps), added, vocabulary, found, best)


AT_ONCE = 64
"""Rows whose logits are held at once: each part reads the weight again."""


class Weight(NamedTuple):
    """A weight in panels, and by how many threads at most a product with it is made."""

    threads: int
    kind: int
    panels: int
    columns: int
    steps: int


@step_function
def project(x: Any, y: Any, weight: Any, bias: Any, out: Any) -> None:
    """out = [x, y] · weight + bias."""
    rows, inner = len(x), x.shape[1] + y.shape[1]
    if weight.kind == PAIRS:
        halves = np.empty((rows, inner), np.uint16)
        _lay_beside(x, y, halves)
        _multiply(weight, halves, HALF, out, bias.ctypes.data, 0)
    elif y.shape[1]:
        whole = np.empty((rows, inner), np.float32)
        _lay_beside(x, y, whole)
        _multiply(weight, whole, SINGLE, out, bias.ctypes.data, 0)
    else:
        _multiply(weight, x, SINGLE, out, bias.ctypes.data, 0)


@step_function
def advance(projected: Any, past: Any, old: Any, weight: Any, total: Any, new: Any, h: Any) -> None:
    """C' and h of an LSTM from its projected input [rows, 4n], which may be the ``total`` too, from h and C."""
    rows, n = past.shape
    squashed = np.empty(n, np.float32)
    if weight.kind == PAIRS:
        halves = np.empty((rows, n), np.uint16)
        _lay_beside(past, past[:, :0], halves)
        _multiply(weight, halves, HALF, total, projected.ctypes.data, total.strides[0])
    else:
        _multiply(weight, past, SINGLE, total, projected.ctypes.data, total.strides[0])
    for row in range(rows):
        remember(total[row], old[row], new[row], None, None)
        show(total[row, 3 * n :], new[row], squashed, h[row], None, None)


@step_function
def say_all(x: Any, weight: Any, bias: Any, vocabulary: int, scores: Any, ids: Any) -> None:
    """The likeliest symbols of each row of x, of many rows some at a time: fewer logits are nearer when looked at."""
    rows = len(x)
    parts = (rows + AT_ONCE - 1) // AT_ONCE
    logits = np.empty(((rows + parts - 1) // parts, len(bias)), np.float32)
    for part in range(parts):
        start, stop = rows * part // parts, rows * (part + 1) // parts
        some = logits[: stop - start]
        project(x[start:stop], x[start:stop, :0], weight, bias, some)
        pick_all(some, vocabulary, scores[start:stop], ids[start:stop])


@step_function
def _multiply(weight: Any, x: Any, size: int, out: Any, first: int, first_below: int) -> None:
    """out = x · weight + what stands at ``first``; numbers of x are of ``size`` bytes."""
    apart, below = size * x.shape[1], BYTES * weight.columns
    PRODUCT(
        weight.threads, weight.kind, weight.panels, weight.columns, weight.steps,
        len(out), x.ctypes.data, apart, WORD, out.ctypes.data, below, first, first_below,
    )  # fmt: skip


@row_function
def _lay_beside(x: Any, y: Any, out: Any) -> None:
    """The rows of both side by side, in the type of ``out``."""
    first = x.shape[1]
    for row in range(len(out)):
        copy(x[row], out[row, :first])
        copy(y[row], out[row, first:])


@step_function
def squash_all(x: Any) -> None:
    for row in range(len(x)):
        _squash(x[row])


@row_function
def _squash(x: Any) -> None:
    for j in range(len(x)):
        x[j] = tanh(x[j])


join = c_function(_join, _signature(4, 4)).ctypes
lstm = c_function(_lstm, _signature(2, 5)).ctypes
say = c_function(_say, _signature(4, 4)).ctypes
