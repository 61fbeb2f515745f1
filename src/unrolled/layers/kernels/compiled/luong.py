"""A search's whole step with Luong's decoder, from the last symbols to the likeliest next ones, as one function.

Its parts are those of stepping.py and steps.py, so that every number is what these give one by one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import carray, types

from unrolled.layers.kernels.compiled.blocks import PAIRS, SIDE
from unrolled.layers.kernels.compiled.functions import c_function, pointer, step_function, summing
from unrolled.layers.kernels.compiled.rows import copy
from unrolled.layers.kernels.compiled.scalars import F
from unrolled.layers.kernels.compiled.stepping import Weight, advance, project, say_all, squash_all
from unrolled.layers.kernels.compiled.steps import look_all
from unrolled.layers.kernels.compiled.threads import available
from unrolled.layers.kernels.compiled.vectors import Panels


class Told(NamedTuple):
    """Sizes and addresses: all that the function is told. Weights are in panels of one kind."""

    threads: int
    kind: int  # what the panels hold
    rows: int
    symbols: int
    embedding: int
    feeding: int  # size of what is fed beside a symbol's vector, or 0
    units: int
    places: int
    width: int  # of a value
    size: int  # of the output
    vocabulary: int
    filled: int  # columns of the output's weight, which are more where the last panel is filled up
    k: int

    input_weight: int
    hidden_weight: int
    mix_weight: int
    output_weight: int

    table: int
    input_bias: int
    mix_bias: int
    output_bias: int

    last: int
    keys: int
    values: int
    mask: int
    fed: int
    hidden: int
    memory: int

    scores: int
    ids: int
    weights: int
    output: int
    new_hidden: int
    new_memory: int


TOLD = np.dtype([(name, np.intp) for name in Told._fields])


def _step(at: Any) -> int:
    """What a `Told` at this address asks for.

    h, C = lstm([E y, s~], h, C);  α = softmax_j(h · k_j);  s~' = tanh(W_c [h, Σ_j α_j v_j] + b_c);  the likeliest
    symbols under softmax(W s~' + b). 1; or 0, and nothing made is good, where a last symbol is none or a number of the
    new state is none.
    """
    told = carray(at, (1,), TOLD)[0]
    rows, n, places = told.rows, told.units, told.places
    x, last = np.empty((rows, told.embedding), np.float32), carray(pointer(told.last), (rows,), np.int64)
    if not _look_up(_matrix(told.table, told.symbols, told.embedding), last, x):
        return 0
    h, new = _matrix(told.new_hidden, rows, n), _matrix(told.new_memory, rows, n)
    total = np.empty((rows, 4 * n), np.float32)
    into = _weight(told, told.input_weight, told.embedding + told.feeding, 4 * n)
    project(x, _matrix(told.fed, rows, told.feeding), into, _vector(told.input_bias, 4 * n), total)
    past, old = _matrix(told.hidden, rows, n), _matrix(told.memory, rows, n)
    advance(total, past, old, _weight(told, told.hidden_weight, n, 4 * n), total, new, h)
    if not np.isfinite(_sum(h)):
        return 0
    keys = carray(pointer(told.keys), (rows, places, n), np.float32)
    values = carray(pointer(told.values), (rows, places, told.width), np.float32)
    real, weights = carray(pointer(told.mask), (rows, places), np.uint8), _matrix(told.weights, rows, places)
    context, output = np.empty((rows, told.width), np.float32), _matrix(told.output, rows, told.size)
    look_all(h, keys, values, real, context[0, :0], weights, context)
    mix = _weight(told, told.mix_weight, n + told.width, told.size)
    project(h, context, mix, _vector(told.mix_bias, told.size), output)
    squash_all(output)
    said = _weight(told, told.output_weight, told.size, told.filled)
    scores, ids = _matrix(told.scores, rows, told.k), carray(pointer(told.ids), (rows, told.k), np.int64)
    say_all(output, said, _vector(told.output_bias, told.filled), told.vocabulary, scores, ids)
    return 1


@step_function
def _weight(told: Any, panels: int, inner: int, width: int) -> Any:
    return Weight(told.threads, told.kind, panels, width // SIDE, inner // 2 if told.kind == PAIRS else inner)


@step_function
def _matrix(at: int, rows: int, width: int) -> Any:
    return carray(pointer(at), (rows, width), np.float32)


@step_function
def _vector(at: int, size: int) -> Any:
    return carray(pointer(at), (size,), np.float32)


@step_function
def _look_up(table: Any, ids: Any, out: Any) -> Any:
    """The rows ``ids`` of a table; False where it has no such row."""
    for row in range(len(ids)):
        if not 0 <= ids[row] < len(table):
            return False
        copy(table[ids[row]], out[row])
    return True


@summing
def _sum(x: Any) -> Any:
    total = F(0)
    for row in range(len(x)):
        for j in range(x.shape[1]):
            total += x[row, j]
    return total


_code = c_function(_step, types.intp(types.voidptr)).ctypes
_WORDS = ctypes.c_ssize_t * len(Told._fields)


def step(sizes: Sequence[int], panels: Sequence[Any], tensors: Sequence[Any]) -> bool:
    """Whether all is made that a `Told` asks for, whose sizes, weights and tensors these are in their order.

    Where weights are in no panels, or not in panels of one kind, nothing is.
    """
    kind = getattr(panels[0], "kind", 0)
    if any(type(one) is not Panels or one.kind != kind for one in panels):
        return False
    addresses = *(one.at for one in panels), *(tensor.data_ptr() for tensor in tensors)
    words = _WORDS(available(), kind, *sizes, *addresses)
    return bool(_code(ctypes.addressof(words)))
