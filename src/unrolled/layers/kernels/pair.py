"""Both directions of a layer in one loop: two cells have the same steps, so each call serves both."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from unrolled.layers.cells import Cell, State
from unrolled.layers.cells.base import Noise
from unrolled.layers.kernels.base import NO_EXTRAS, WholeSequence
from unrolled.layers.kernels.choose import (
    Path,
    choose,
    extras_of,
    has_inner_bias,
    product_type,
    step_type,
    whole_kernel,
)
from unrolled.layers.kernels.order import Order


def pairable(cells: list[Cell], x: Tensor, order: Order, path: Path | None) -> bool:
    """Whether `run_pair` stands for two calls of `run`: two cells that our own loop runs, without extras.

    On a processor both weights must stay in its cache from step to step.
    """
    if len(cells) != 2 or whole_kernel(cells[0], [1]) is None or type(cells[0]) is not type(cells[1]):
        return False
    if any(extra is not None for cell in cells for extra in extras_of(cell, torch.float32)):
        return False
    weight = 2 * cells[0].hidden_weight.numel() * step_type(cells[0], x, order, "whole").itemsize
    if x.device.type == "cpu" and weight > WEIGHTS_IN_CACHE:
        return False
    return (path or choose(cells[0], x, order)) == "whole"


WEIGHTS_IN_CACHE = 1 << 20
"""Bytes of two weights up to which one loop over both is faster than two (decisions/0010-what-a-step-costs.md)."""


def run_pair(cells: list[Cell], x: Tensor, order: Order, states: list[State | None]) -> tuple[Tensor, list[Tensor]]:
    """A cell for each direction over packed ``x``: packed outputs [Σ counts, 2 * output], and both last states.

    A row of the loop's batch and the same row turned stand one below the other, so that a step's rows are still the
    first ones of the step before. Only the products are made one by one, for each has its weight.
    """
    dtype, inner = product_type(x), step_type(cells[0], x, order, "whole")
    work = torch.promote_types(dtype, torch.float32)
    like = x.new_empty(0, dtype=work)
    noise = [cell.draw(order.batch, like, symbols=order.size) for cell in cells]
    kernel = whole_kernel(cells[0], [2 * count for count in order.counts])
    if kernel is None:
        raise RuntimeError("a pair needs a cell with a kernel: ask pairable first")
    kernel.directions = 2
    seen = [one.seen for one in noise if one.seen is not None]
    kernel.noise = Noise(
        _woven(seen) if seen else None, tuple(map(_woven, zip(*(one.kept for one in noise), strict=True)))
    )
    if kernel.noise.kept:
        states = [
            cell.initial(order.batch, like) if own is None else own for cell, own in zip(cells, states, strict=True)
        ]
    first: list[Tensor | None] = [None, None]
    if states[0] is not None and states[1] is not None:
        both = zip(*cast(list[State], states), strict=True)
        first = [*(_woven([tensor.to(work) for tensor in pair]) for pair in both), None][:2]
    output, *ends = WholeSequence.apply(
        kernel,
        _woven([cells[0].project(x), cells[1].project(order.turn(x))]),
        torch.cat([cell.hidden_weight for cell in cells]).to(inner),
        torch.cat([cell.biases()[1] for cell in cells]).to(inner) if has_inner_bias(cells[0]) else None,
        *first,
        *NO_EXTRAS,
    )
    ahead, back = _parted(output.to(dtype))
    parted = [_parted(end) for end in ends if end is not None]
    return torch.cat((ahead, order.turn(back)), 1), [pair[direction] for direction in (0, 1) for pair in parted]


def _woven(pair: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    """Two tensors [rows, size] as one, row by row in turn."""
    return torch.stack(tuple(pair), 1).flatten(0, 1)


def _parted(woven: Tensor) -> tuple[Tensor, ...]:
    return woven.unflatten(0, (-1, 2)).unbind(1)
