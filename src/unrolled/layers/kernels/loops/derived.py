"""The gradients of a direction's weights and of its input, after its loop's way back."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.compiled.arrays import array, some
from unrolled.layers.kernels.compiled.derive import Projected, Wanted, derive
from unrolled.layers.kernels.compiled.packing import scatter
from unrolled.layers.kernels.compiled.sums import ours, room_of
from unrolled.layers.kernels.gradients import input_gradient, weight_gradient
from unrolled.layers.kernels.loops.base import Loops
from unrolled.layers.kernels.projecting import Projection, sum_of_rows


class Source(NamedTuple):
    """A layer's input, as one direction has it."""

    rows: Tensor  # packed, in the type of products
    places: Any  # of each its row of the gradient
    gradient: Tensor | None  # of x, to be filled, where it is wanted
    keep: bool  # whether that holds something to be added to


class Gradients(NamedTuple):
    """Those of a direction's weights; None where they are not wanted."""

    input_weight: Tensor | None
    bias: Tensor
    gain: Tensor | None
    hidden_weight: Tensor | None


def gradients(
    loops: Loops, direction: int, projection: Projection, source: Source, wanted: tuple[bool, bool], behind: Any
) -> Gradients:
    """``wanted``: whether the input weight's and the hidden one's are. Fills the gradient of x too.

    In one call with ``behind``, the input weight laid out for the gradient of x; part by part where that is None.
    """
    if behind is None:
        return _in_parts(loops, direction, projection, source, wanted)
    return _at_once(loops, direction, projection, source, wanted, behind)


def possible(loops: Loops, projection: Projection) -> bool:
    """Whether compiled code makes all products of `gradients` itself."""
    shape, dtype = projection.weight.shape, projection.weight.dtype
    return (
        dtype is loops.inner
        and compiled.possible(projection.weight)
        and ours(shape[1], dtype)
        and ours(loops.output_size, dtype)
        and compiled.once_pays(shape, dtype, loops.places)
    )


def _at_once(
    loops: Loops, direction: int, projection: Projection, source: Source, wanted: tuple[bool, bool], behind: Any
) -> Gradients:
    (width, size), columns = projection.weight.shape, loops.grad.tensor.shape[2]
    sizes = columns, width * size if wanted[0] else 0, width * loops.output_size if wanted[1] else 0
    bias, weight, hidden = (loops.empty(count) for count in sizes)
    gain = norm = own = None
    if projection.gain is not None:
        gain, own = torch.empty_like(projection.gain), projection.weight.new_empty(loops.places, width)
        norm = projection.norm(own)
    projected = Projected(behind, norm, projection.widths, some(own), some(gain))
    x = bias.new_empty(0, size) if source.gradient is None else source.gradient
    made = array(bias), array(weight).reshape(-1, size), array(hidden).reshape(-1, loops.output_size), array(x)
    told = Wanted(*made, source.places, source.keep, wanted[0], wanted[1], source.gradient is not None)
    room = room_of(loops.places, width, max(size, loops.output_size), loops.inner)
    derive(loops.left(direction, source.rows), loops.heard(direction), projected, told, room)
    return Gradients(
        weight.view(width, size) if wanted[0] else None,
        bias,
        gain,
        hidden.view(width, loops.output_size) if wanted[1] else None,
    )


def _in_parts(
    loops: Loops, direction: int, projection: Projection, source: Source, wanted: tuple[bool, bool]
) -> Gradients:
    bias = sum_of_rows(loops.grad.tensor[direction], loops.work)
    hidden = weight_gradient(loops.factors(direction)) if wanted[1] else None
    product, gain = projection.backward(loops.of_total(direction))  # which may overwrite what the loops' are made of
    if source.gradient is not None:
        own = input_gradient(product, projection.weight)
        scatter(array(own), source.places, array(source.gradient), source.keep)
    return Gradients(weight_gradient(((product, source.rows),)) if wanted[0] else None, bias, gain, hidden)
