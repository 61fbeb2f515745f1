"""What comes after a loop's way back, in one call: gradients of a layer's weights, of its bias and of its input."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, step_function
from unrolled.layers.kernels.compiled.packing import scatter
from unrolled.layers.kernels.compiled.products import multiply
from unrolled.layers.kernels.compiled.projection import normalise_groups_back, sum_rows
from unrolled.layers.kernels.compiled.rows import copy, either, times
from unrolled.layers.kernels.compiled.sums import sum_arrays


class Made(NamedTuple):
    """What a loop left, packed; ``grad`` is of what is in the loop, in blocks of columns for the gates."""

    rows: Any  # what came in
    grad: Any
    product: Any  # the hidden product's gradient: that, or where it is normalised another
    output: Any  # h in the type of products
    past: Any  # what the last gate's product is of, where that is not h; or None
    total: Any  # to be filled with the gradient of the input's product, where that is not ``grad``; or None


class Heard(NamedTuple):
    """What the hidden products saw of the state before."""

    first: Any  # h before the first step, of no rows where nothing saw it
    before: Any  # of each place but the first step's the same row's place before
    each: Any  # of each place its row
    seen: Any  # recurrent dropout of each row, or None


class Projected(NamedTuple):
    """How the input was projected."""

    weight: Any  # laid out for the gradient of the input
    norm: Any  # the product's normalisation, over ``widths`` columns each; or None
    widths: Any
    own: Any  # to be filled with the gradient of what is normalised; or None
    gain: Any  # to be filled with that of the gain; or None


class Wanted(NamedTuple):
    """Gradients to be filled, and which of input, hidden and x are wanted."""

    bias: Any  # of all columns of ``grad``
    input: Any
    hidden: Any
    x: Any  # its rows ``places`` get theirs, with ``keep`` added
    places: Any
    keep: bool
    of_input: bool
    of_hidden: bool
    of_x: bool


@loop_function
def derive(made: Any, heard: Any, projected: Any, wanted: Any, room: Any) -> None:
    """Fill what is wanted; ``room``: words for `sum_arrays`."""
    sum_rows(made.grad, wanted.bias)
    if wanted.of_hidden:
        _of_hidden(made.product, made.output, made.past, heard, heard.seen, wanted.hidden, room)
    _join(made.grad, made.total)
    total = either(made.grad, made.total)
    room_of_a_row = np.empty(total.shape[1], wanted.bias.dtype)
    _unnormalise(total, projected.norm, projected.widths, projected.gain, room_of_a_row)
    total = either(total, projected.own)
    if wanted.of_input:
        sum_arrays(total, made.rows, wanted.input, False, room)
    if wanted.of_x:
        own = np.empty((len(total), wanted.x.shape[1]), wanted.x.dtype)
        multiply(total, projected.weight, own, False)
        scatter(own, wanted.places, wanted.x, wanted.keep)


@step_function
def _of_hidden(grad: Any, output: Any, past: Any, heard: Any, seen: Any, out: Any, room: Any) -> None:
    """The hidden weight's, of all rows that saw a state: of a fresh loop's first step none did."""
    n, begin = output.shape[1], len(heard.first)
    given = np.empty((begin + len(heard.before), n), output.dtype)
    skip = len(output) - len(given)
    for row in range(begin):
        copy(heard.first[row], given[row])
    for row in range(len(heard.before)):
        copy(output[heard.before[row]], given[begin + row])
    _drop(given, seen, heard.each, skip)
    if past is None:
        sum_arrays(grad[skip:, : len(out)], given, out, False, room)
    else:
        early = len(out) - n
        sum_arrays(grad[skip:, :early], given, out[:early], False, room)
        for row in range(len(given)):
            copy(past[skip + row], given[row])
        _drop(given, seen, heard.each, skip)
        sum_arrays(grad[skip:, early:], given, out[early:], False, room)


@row_function
def _drop(given: Any, seen: Any, each: Any, skip: int) -> None:
    """As recurrent dropout has it."""
    if seen is not None:
        for row in range(len(given)):
            times(given[row], seen[each[skip + row]], given[row])


@row_function
def _join(grad: Any, total: Any) -> None:
    """Of [dz, dr, dp, dn] those of the input's product, [dz, dr, dn]: where the last two differ."""
    if total is not None:
        n = total.shape[1] // 3
        for row in range(len(total)):
            copy(grad[row, : 2 * n], total[row, : 2 * n])
            copy(grad[row, 3 * n :], total[row, 2 * n :])


@row_function
def _unnormalise(total: Any, norm: Any, widths: Any, gain: Any, room: Any) -> None:
    """The gradients of what was normalised, into ``norm.grad``, and of its gain, from that of what came of it."""
    if norm is not None:
        for j in range(len(gain)):
            gain[j] = 0
        normalise_groups_back(total, norm, widths, gain, room)
