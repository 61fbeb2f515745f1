"""Layer normalisation of rows, and its derivative (Ba et al. 2016), within a compiled loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unrolled.layers.cells.norm import EPSILON
from unrolled.layers.kernels.compiled.functions import row_function, summing
from unrolled.layers.kernels.compiled.rows import add
from unrolled.layers.kernels.compiled.scalars import put, take


class Normed(NamedTuple):
    """Weights and packed buffers of a layer normalisation: see kernels/parts.py."""

    gain: Any
    shift: Any
    given: Any
    mean: Any
    spread: Any
    grad: Any  # gets the gradient of what is normalised
    at: int  # column of ``grad`` from which on it is this one's
    of_gain: Any
    of_shift: Any


@summing
def moments(x: Any) -> Any:
    """Mean and 1 / √(variance + ε), in the type of x: numbers divided by a whole one would be float64."""
    n, number = len(x), x.dtype.type
    mean = number(0)
    for j in range(n):
        mean += x[j]
    mean /= number(n)
    square = number(0)
    for j in range(n):
        square += (x[j] - mean) * (x[j] - mean)
    return mean, number(1 / np.sqrt(square / number(n) + EPSILON))


@row_function
def normalise(x: Any, gain: Any, mean: Any, spread: Any, out: Any) -> None:
    """out = gain · (x - mean) · spread."""
    for j in range(len(x)):
        out[j] = gain[j] * ((x[j] - mean) * spread)


@row_function
def add_normalised(x: Any, gain: Any, mean: Any, spread: Any, total: Any) -> None:
    """total += `normalise` of x."""
    for j in range(len(x)):
        total[j] += gain[j] * ((x[j] - mean) * spread)


@summing
def normalise_back(grad: Any, x: Any, gain: Any, mean: Any, spread: Any, of_gain: Any, out: Any) -> None:
    """out = the gradient of x, from ``grad``, that of `normalise`'s result; dgain += dy (x - mean) · spread."""
    n, number = len(x), x.dtype.type
    plain, along = number(0), number(0)
    for j in range(n):
        g, y = take(grad, j), (x[j] - mean) * spread
        of_gain[j] += g * y
        plain += g * gain[j]
        along += g * gain[j] * y
    plain, along = plain / number(n), along / number(n)
    for j in range(n):
        put(out, j, spread * (take(grad, j) * gain[j] - plain - (x[j] - mean) * spread * along))


@row_function
def keep_moments(x: Any, norm: Any, place: int) -> Any:
    """`moments` of x, which the way back wants."""
    mean, spread = moments(x)
    norm.mean[place, 0], norm.spread[place, 0] = mean, spread
    return mean, spread


@row_function
def add_all_normalised(norm: Any, start: int, total: Any, at: int) -> None:
    """`add_normalised` of a step's rows, in columns from ``at`` on."""
    width = len(norm.gain)
    for row in range(len(total)):
        given = norm.given[start + row]
        mean, spread = keep_moments(given, norm, start + row)
        add_normalised(given, norm.gain, mean, spread, total[row, at : at + width])


@row_function
def normalise_row_back(wanted: Any, norm: Any, place: int, out: Any) -> None:
    """out = the gradient of the row that was normalised; those of gain and shift are added up."""
    mean, spread = norm.mean[place, 0], norm.spread[place, 0]
    normalise_back(wanted, norm.given[place], norm.gain, mean, spread, norm.of_gain, out)
    if norm.shift is not None:
        add(norm.of_shift, wanted)


@row_function
def normalise_all_back(wanted: Any, at: int, norm: Any, start: int) -> None:
    """`normalise_row_back` of a step's rows, of the columns from ``at`` on, into ``norm.grad``."""
    width = len(norm.gain)
    for row in range(len(wanted)):
        own = norm.grad[start + row, norm.at : norm.at + width]
        normalise_row_back(wanted[row, at : at + width], norm, start + row, own)
