"""What a model that steps does to the rows of one step, without a graph: a cell's equations, an attention's look.

A search asks for a step of few rows at a time, so these are called by their address: to take arrays apart costs more
than the work. All numbers are float32 and lie side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, njit, types

from unrolled.layers.kernels.compiled.functions import FAST, c_function, row_function, step_function, summing
from unrolled.layers.kernels.compiled.lstm import remember, show
from unrolled.layers.kernels.compiled.rows import add_times, dot
from unrolled.layers.kernels.compiled.scalars import F, exp, sigmoid, tanh

_made = njit(fastmath=FAST, error_model="numpy", forceinline=True)


@_made
def _matrix(at: Any, rows: int, width: int) -> Any:
    return carray(at, (rows, width), np.float32)


def _signature(sizes: int, tensors: int) -> Any:
    return types.void(*[types.intp] * sizes, *[types.voidptr] * tensors)


# --- cells ------------------------------------------------------------------------------------------------------------


def _squash(count: int, x: Any, out: Any) -> None:
    """out = tanh x."""
    given, made = carray(x, (count,), np.float32), carray(out, (count,), np.float32)
    for j in range(count):
        made[j] = tanh(given[j])


def _lstm(rows: int, n: int, total: Any, memory: Any, made: Any, output: Any) -> None:
    """C' and h from the LSTM's totals [rows, 4n], which become its gates, and from C."""
    totals, old = _matrix(total, rows, 4 * n), _matrix(memory, rows, n)
    new, h, squashed = _matrix(made, rows, n), _matrix(output, rows, n), np.empty(n, np.float32)
    for row in range(rows):
        remember(totals[row], old[row], new[row], None, None)
        show(totals[row, 3 * n :], new[row], squashed, h[row], None, None)


def _gates(rows: int, n: int, total: Any, hidden: Any, past: Any) -> None:
    """σ of the GRU's totals of update and reset gate [rows, 2n], in their place, and r * h."""
    totals, old, seen = _matrix(total, rows, 2 * n), _matrix(hidden, rows, n), _matrix(past, rows, n)
    for row in range(rows):
        _open(totals[row])
        _times(totals[row, n:], old[row], seen[row])


def _update(rows: int, n: int, gates: Any, candidate: Any, hidden: Any, new: Any) -> None:
    """h' = h + z (tanh(candidate) - h)."""
    both, told = _matrix(gates, rows, 2 * n), _matrix(candidate, rows, n)
    old, made = _matrix(hidden, rows, n), _matrix(new, rows, n)
    for row in range(rows):
        _mix(both[row], told[row], old[row], made[row])


@row_function
def _open(total: Any) -> None:
    for j in range(len(total)):
        total[j] = sigmoid(total[j])


@row_function
def _times(x: Any, y: Any, out: Any) -> None:
    for j in range(len(out)):
        out[j] = x[j] * y[j]


@row_function
def _mix(gates: Any, candidate: Any, old: Any, new: Any) -> None:
    for j in range(len(new)):
        new[j] = old[j] + gates[j] * (tanh(candidate[j]) - old[j])


# --- attention --------------------------------------------------------------------------------------------------------


def _look(
    rows: int, places: int, size: int, width: int, hidden: int,
    query: Any, keys: Any, values: Any, mask: Any, vector: Any, weights: Any, context: Any,
) -> None:  # fmt: skip
    """α = softmax_j(e_j) over the places of a row that are real, and c = Σ_j α_j v_j, for one query a row.

    e_j is q · k_j, or of a ``hidden`` layer, which is not 0 then, vᵀ tanh(q + k_j) with the ``vector`` v. Places whose
    weight is 0 are not read.
    """
    asked, real = _matrix(query, rows, size), carray(mask, (rows, places), np.uint8)
    key, value = carray(keys, (rows, places, size), np.float32), carray(values, (rows, places, width), np.float32)
    shares, read = _matrix(weights, rows, places), _matrix(context, rows, width)
    look_all(asked, key, value, real, carray(vector, (hidden,), np.float32), shares, read)


@step_function
def look_all(asked: Any, key: Any, value: Any, real: Any, vector: Any, shares: Any, read: Any) -> None:
    """`look`, within another function; a ``vector`` of no number stands for none."""
    rows, places = shares.shape
    for row in range(rows):
        largest = F(-np.inf)
        for place in range(places):
            score = F(-np.inf)
            if real[row, place]:
                if len(vector):
                    score = _dot_hidden(asked[row], key[row, place], vector)
                else:
                    score = dot(asked[row], key[row, place])
            shares[row, place] = score
            largest = max(largest, score)
        norm = F(0)
        for place in range(places):
            shares[row, place] = exp(shares[row, place] - largest) if real[row, place] else F(0)
            norm += shares[row, place]
        for place in range(places):
            shares[row, place] /= norm
        _add_up(shares[row], value[row], read[row])


def _read(rows: int, places: int, width: int, weights: Any, values: Any, context: Any) -> None:
    """c = Σ_j α_j v_j of each row."""
    shares, value = _matrix(weights, rows, places), carray(values, (rows, places, width), np.float32)
    found = _matrix(context, rows, width)
    for row in range(rows):
        _add_up(shares[row], value[row], found[row])


@row_function
def _add_up(shares: Any, values: Any, context: Any) -> None:
    """c = Σ_j α_j v_j; what has no share is not read."""
    context[:] = 0
    for place in range(len(shares)):
        if shares[place] != 0:
            add_times(context, values[place], shares[place])


def _meet(rows: int, places: int, width: int, values: Any, vectors: Any, found: Any) -> None:
    """v_j · x of each row's vector x, at each place."""
    value, vector = carray(values, (rows, places, width), np.float32), _matrix(vectors, rows, width)
    products = _matrix(found, rows, places)
    for row in range(rows):
        for place in range(places):
            products[row, place] = dot(value[row, place], vector[row])


def _score(rows: int, places: int, size: int, query: Any, keys: Any, vector: Any, scores: Any) -> None:
    """e_j = vᵀ tanh(q + k_j) of all places, for one query a row."""
    asked, key = _matrix(query, rows, size), carray(keys, (rows, places, size), np.float32)
    last, found = carray(vector, (size,), np.float32), _matrix(scores, rows, places)
    for row in range(rows):
        for place in range(places):
            found[row, place] = _dot_hidden(asked[row], key[row, place], last)


@summing
def _dot_hidden(x: Any, y: Any, vector: Any) -> Any:
    total = F(0)
    for j in range(len(x)):
        total += vector[j] * tanh(x[j] + y[j])
    return total


squash = c_function(_squash, _signature(1, 2)).ctypes
lstm = c_function(_lstm, _signature(2, 4)).ctypes
gates = c_function(_gates, _signature(2, 3)).ctypes
update = c_function(_update, _signature(2, 4)).ctypes
score = c_function(_score, _signature(3, 4)).ctypes
read = c_function(_read, _signature(3, 3)).ctypes
meet = c_function(_meet, _signature(3, 3)).ctypes
look = c_function(_look, _signature(5, 7)).ctypes
