"""A layer as one node of the graph: input products, compiled loops of one or two directions, and their gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.layers.cells import GRU, Cell, State
from unrolled.layers.kernels.choose import Path, choose, extras_of, product_type, step_type
from unrolled.layers.kernels.order import Order


class Lies(NamedTuple):
    """Whether a layer's input lies as the batch does, [batch, time, size], and not packed; and its output."""

    given: bool = False
    wanted: bool = False


PACKED = Lies()


def joinable(cells: list[Cell], x: Tensor, order: Order, path: Path | None) -> bool:
    """Whether `run_layer` stands for a call of `run` for each direction: where loops are compiled."""
    return (path or choose(cells[0], x, order)) == "compiled"


def run_layer(
    cells: list[Cell], x: Tensor, order: Order, states: list[State | None], lies: Lies = PACKED
) -> tuple[Tensor, list[Tensor]]:
    """A cell for each direction over packed ``x``: packed outputs [Σ counts, directions * output], all last states.

    Where ``lies`` says so x or the output is as the batch is, and x is looked at as `Order.check_finite` does.
    """
    from unrolled.layers.kernels.loops.node import Layer, Plan

    dtype, inner = product_type(x), step_type(cells[0], x, order, "compiled")
    work = torch.promote_types(dtype, torch.float32)
    like = x.new_empty(0, dtype=work)
    tensors: list[Tensor | None] = []
    noises = []
    for cell, state in zip(cells, states, strict=True):
        noise = cell.draw(order.batch, like, symbols=order.size)
        if noise.kept and state is None:
            state = cell.initial(order.batch, like)
        noises.append(noise)
        first = (None, None) if state is None else (*(tensor.to(work) for tensor in state), None)[:2]
        outer = cell.outer_bias if isinstance(cell, GRU) else None
        weights = cell.input_weight, cell.bias, outer, cell.input_gain, cell.hidden_weight
        tensors += [*weights, *first, *extras_of(cell, inner)]
    plan = Plan(cells[0], noises, inner, order, dtype, lies.given, lies.wanted)
    output, *ends = Layer.apply(plan, x, *tensors)
    return output, ends
