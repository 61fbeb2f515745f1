"""What a compiled loop does in one step of any cell: products with the state before, normalised; zoneout; additions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from unrolled.layers.cells.norm import EPSILON
from unrolled.layers.kernels.compiled.functions import row_function, step_function, summing
from unrolled.layers.kernels.compiled.products import multiply
from unrolled.layers.kernels.compiled.scalars import put, take


class Steps(NamedTuple):
    """Rows of each step, where each begins in a packed array, and whether the first state is zero."""

    counts: Any
    starts: Any
    fresh: bool


class Outside(NamedTuple):
    """Where others have the rows of the loop: rows ``places`` of a packed array, columns from ``at`` on.

    ``output`` is that array for the loop's outputs.
    """

    places: Any
    at: int
    output: Any


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


@row_function
def add(total: Any, x: Any) -> None:
    """total += x."""
    for j in range(len(total)):
        total[j] += x[j]


@row_function
def add_times(total: Any, x: Any, factor: Any) -> None:
    """total += factor · x."""
    for j in range(len(total)):
        total[j] += factor * x[j]


@summing
def dot(x: Any, y: Any) -> Any:
    """x · y."""
    total = x[0] - x[0]
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@row_function
def times(x: Any, factor: Any, out: Any) -> None:
    """out = x · factor, in the type of products."""
    for j in range(len(out)):
        put(out, j, take(x, j) * factor[j])


@row_function
def scale(x: Any, factor: Any) -> None:
    """x *= factor."""
    for j in range(len(x)):
        x[j] *= factor[j]


@row_function
def copy(x: Any, out: Any) -> None:
    """out = x, in the type of ``out``."""
    for j in range(len(out)):
        put(out, j, take(x, j))


@row_function
def mix(new: Any, old: Any, kept: Any, out: Any) -> None:
    """Zoneout: out = kept · old + (1 - kept) · new."""
    for j in range(len(out)):
        x = take(new, j)
        put(out, j, x + kept[j] * (take(old, j) - x))


@row_function
def mix_in(new: Any, old: Any, kept: Any) -> None:
    """`mix`, into ``new``: an array that is given for two is worked on number by number."""
    for j in range(len(new)):
        x = take(new, j)
        put(new, j, x + kept[j] * (take(old, j) - x))


@row_function
def part(grad: Any, kept: Any, stays: Any) -> None:
    """Zoneout's derivative: what of ``grad`` goes straight to the old state; ``grad`` keeps what goes to the new."""
    for j in range(len(grad)):
        stays[j] = grad[j] * kept[j]
        grad[j] -= stays[j]


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


@row_function
def zone(new: Any, old: Any, kept: Any, start: int, out: Any) -> None:
    """Zoneout of a step's rows, where the cell has it."""
    if kept is not None:
        for row in range(len(new)):
            mix(new[row], old[row], kept[start + row], out[row])


@row_function
def zone_in(new: Any, old: Any, kept: Any, start: int) -> None:
    """`zone`, into ``new``."""
    if kept is not None:
        for row in range(len(new)):
            mix_in(new[row], old[row], kept[start + row])


@row_function
def zone_back(grad: Any, kept: Any, start: int, stays: Any) -> None:
    """`part` of a step's rows, where the cell has zoneout."""
    if kept is not None:
        for row in range(len(grad)):
            part(grad[row], kept[start + row], stays[row])


@row_function
def rejoin(grad: Any, kept: Any, stays: Any) -> None:
    """What went straight to the old state comes to the rest of its gradient."""
    if kept is not None:
        for row in range(len(grad)):
            add(grad[row], stays[row])


@row_function
def arrive(grad: Any, given: Any, outside: Any, start: int) -> None:
    """The state's gradient, and what the step's output was told: by ``given``, in the loop's order or ``outside``'s."""
    n = grad.shape[1]
    for row in range(len(grad)):
        if outside is None:
            _arrive(grad[row], given[start + row])
        else:
            _arrive(grad[row], given[outside.places[start + row], outside.at : outside.at + n])


@row_function
def _arrive(grad: Any, given: Any) -> None:
    for j in range(len(grad)):
        grad[j] += take(given, j)


def for_products(h: Any, output: Any) -> Any:
    """The packed state in the type of products: ``output``, or ``h`` itself where that is None."""
    raise TypeError(h)


@overload(for_products)
def _for_products(h: Any, output: Any) -> Any:
    def same(h: Any, output: Any) -> Any:
        return h

    def other(h: Any, output: Any) -> Any:
        return output

    return same if output is types.none else other


@row_function
def hand_on(h: Any, output: Any, start: int, stop: int) -> None:
    """The state of a step in the type of products, where it has another."""
    if output is not None:
        for row in range(start, stop):
            copy(h[row], output[row])


@step_function
def last_seen(packed: Any, step: int, steps: Any, first: Any) -> Any:
    """The rows of the step before that are still there at ``step``; before the first of all, those of ``first``."""
    rows = steps.counts[step]
    if step == 0:
        return first[:rows]
    before = steps.starts[step - 1]
    return packed[before : before + rows]


@row_function
def deliver(output: Any, outside: Any, start: int, stop: int) -> None:
    """A step's outputs, for others."""
    if outside is not None:
        n = output.shape[1]
        for row in range(start, stop):
            copy(output[row], outside.output[outside.places[row], outside.at : outside.at + n])
