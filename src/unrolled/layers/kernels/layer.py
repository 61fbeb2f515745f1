"""A layer as one node of the graph: input products, compiled loops of one or two directions, and their gradients."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from unrolled.layers.cells import GRU, Cell, State
from unrolled.layers.kernels.base import NO_EXTRAS, Extras, Kernel, check_unchanged, run_backward, watch
from unrolled.layers.kernels.choose import (
    Path,
    choose,
    extras_of,
    product_type,
    step_type,
    whole_kernel,
)
from unrolled.layers.kernels.gradients import input_gradient, weight_gradient
from unrolled.layers.kernels.order import Order
from unrolled.layers.kernels.projecting import Projection, sum_of_rows
from unrolled.layers.surroundings import without_autocast


class Held(NamedTuple):
    """A direction's tensors, in the order in which the graph sees them."""

    input_weight: Tensor
    bias: Tensor
    outer_bias: Tensor | None
    input_gain: Tensor | None
    hidden_weight: Tensor
    hidden: Tensor | None
    memory: Tensor | None
    extras: Extras


def joinable(cells: list[Cell], x: Tensor, order: Order, path: Path | None) -> bool:
    """Whether `run_layer` stands for a call of `run` for each direction: where loops are compiled."""
    return (path or choose(cells[0], x, order)) == "compiled"


class Lies(NamedTuple):
    """Whether a layer's input lies as the batch does, [batch, time, size], and not packed; and its output."""

    given: bool = False
    wanted: bool = False


PACKED = Lies()


def run_layer(
    cells: list[Cell], x: Tensor, order: Order, states: list[State | None], lies: Lies = PACKED
) -> tuple[Tensor, list[Tensor]]:
    """A cell for each direction over packed ``x``: packed outputs [Σ counts, directions * output], all last states.

    Where ``lies`` says so x or the output is as the batch is, and x is looked at as `Order.check_finite` does.
    """
    dtype = product_type(x)
    work = torch.promote_types(dtype, torch.float32)
    like = x.new_empty(0, dtype=work)
    kernels: list[Kernel] = []
    tensors: list[Tensor | None] = []
    inner = step_type(cells[0], x, order, "compiled")
    for cell, state in zip(cells, states, strict=True):
        kernel = whole_kernel(cell, order.counts)
        if kernel is None:
            raise RuntimeError("a layer of compiled loops needs cells with a kernel: ask joinable first")
        kernel.noise = cell.draw(order.batch, like, symbols=order.size)
        if kernel.noise.kept and state is None:
            state = cell.initial(order.batch, like)
        kernels.append(kernel)
        first = (None, None) if state is None else (*(tensor.to(work) for tensor in state), None)[:2]
        extras = extras_of(cell, inner)
        outer = cell.outer_bias if isinstance(cell, GRU) else None
        tensors += [cell.input_weight, cell.bias, outer, cell.input_gain, cell.hidden_weight, *first, *extras]
    widths = tuple(count * cells[0].hidden_size for count in cells[0].normed)
    output, *ends = _Layer.apply(_Plan(kernels, inner, order, dtype, widths, lies), x, *tensors)
    return output, [end for end in ends if end is not None]


class _Plan(NamedTuple):
    kernels: list[Kernel]
    inner: torch.dtype  # of the steps' products
    order: Order
    dtype: torch.dtype  # of the input products and of the outputs
    widths: tuple[int, ...]  # of the gates that are normalised together
    lies: Lies

    @property
    def work(self) -> torch.dtype:
        return torch.promote_types(self.dtype, torch.float32)

    def places(self, in_batch: bool) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows of the first direction's loop lie for others, and of the second's: in the batch, or packed."""
        found = self.order.places
        return (found[0], found[2]) if in_batch else (np.arange(self.order.size), found[1])


def _held(tensors: tuple[Any, ...]) -> list[Held]:
    each = len(Held._fields) - 1 + len(Extras._fields)
    found = []
    for start in range(0, len(tensors), each):
        given, bias, outer, gain, hidden, h, memory, *extras = tensors[start : start + each]
        found.append(Held(given, bias, outer, gain, hidden, h, memory, Extras(*extras)))
    return found


class _Layer(Function):
    @staticmethod
    def forward(ctx: Any, plan: _Plan, x: Tensor, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        from unrolled.layers.kernels.compiled.arrays import array
        from unrolled.layers.kernels.compiled.rows import Outside

        ctx.plan, ctx.projections, ctx.shape = plan, [], x.shape
        ctx.set_materialize_grads(False)
        places, order = plan.places(plan.lies.wanted), plan.order
        ends: list[Tensor | None] = []
        watched: list[Tensor | None] = []
        output = x.new_empty(0)
        with without_autocast(x):
            rows = _rows(x, plan)
            for direction, (kernel, held) in enumerate(zip(plan.kernels, _held(tensors), strict=True)):
                weight = held.input_weight.to(plan.dtype)
                given, bias = kernel.biases(held.bias, held.outer_bias)
                projection = Projection(weight, given, held.input_gain, plan.widths, plan.work)
                ctx.projections.append(projection)
                bias = None if bias is None else bias.to(plan.inner)
                kernel.begin(held.hidden_weight.to(plan.inner), bias, held.extras)
                kernel.rows = order.rows
                if not direction:
                    output = _room(rows[0], order, kernel.output_size * len(plan.kernels), plan.lies.wanted)
                    written = array(output)
                kernel.outside = Outside(places[direction], kernel.output_size * direction, written)
                state = tuple(tensor for tensor in (held.hidden, held.memory) if tensor is not None) or None
                _, last = kernel.forward(projection.forward(rows[direction]), state)
                ends += [*last, None][:2]
                watched += [rows[direction], weight, held.input_gain, kernel.weight, *held.extras, *kernel.shown(last)]
                watched += [held.hidden, held.memory]
        watch(ctx, *watched)
        shape = (order.batch, order.time) if plan.lies.wanted else (order.size,)
        # not the one that a kernel keeps: it would keep this node, and that itself
        return output.view(*shape, -1).detach(), *ends

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor | None, *grad_ends: Tensor | None) -> tuple[Tensor | None, ...]:
        check_unchanged(ctx)
        plan: _Plan = ctx.plan
        x: Tensor | None = None
        gradients: list[Tensor | None] = []
        needs = ctx.needs_input_grad
        each = (len(needs) - 2) // len(plan.kernels)
        if grad_output is not None:
            grad_output = grad_output.reshape(-1, grad_output.shape[-1]).contiguous()
        with without_autocast(plan.kernels[0].weight):
            for direction, (kernel, projection) in enumerate(zip(plan.kernels, ctx.projections, strict=True)):
                wanted = needs[2 + direction * each :][:each]
                total, state = run_backward(kernel, grad_output, *grad_ends[2 * direction :][:2])
                bias, outer = None, None
                if wanted[1] or wanted[2]:
                    bias, outer = kernel.bias_gradients(sum_of_rows(kernel.grad, plan.work))
                hidden = weight_gradient(kernel.factors()) if wanted[4] else None
                extras = kernel.extra_gradients() if any(wanted[7:]) else NO_EXTRAS
                product, gain = projection.backward(total)  # which may overwrite what the kernel's are made of
                if needs[1]:
                    x = _gathered(input_gradient(product, projection.weight), plan, direction, x)
                gradients += [
                    weight_gradient(((product, projection.x),)) if wanted[0] else None,
                    bias,
                    outer if wanted[2] else None,
                    gain,
                    hidden,
                    *([*state, None][:2] if wanted[5] or wanted[6] else (None, None)),
                    *extras,
                ]
                del total, product, kernel.grad  # whose memory is still near, for the next direction's
        return None, None if x is None else x.view(ctx.shape), *gradients


def _room(like: Tensor, order: Order, width: int, in_batch: bool) -> Tensor:
    """A row for each symbol, or for each position of the batch, those of padding 0."""
    if not in_batch:
        return like.new_empty(order.size, width)
    room = like.new_empty(order.batch * order.time, width)
    if len(room) > order.size:
        from unrolled.layers.kernels.compiled.arrays import array
        from unrolled.layers.kernels.compiled.packing import clear_padding

        clear_padding(array(room), order.lengths, order.time)
    return room


def _rows(x: Tensor, plan: _Plan) -> list[Tensor]:
    """Packed rows of ``x`` for each direction, in the type of products."""
    from unrolled.layers.kernels.compiled.arrays import array
    from unrolled.layers.kernels.compiled.packing import gather

    x = x.reshape(-1, x.shape[-1])
    given = array((x.float() if x.dtype is torch.float16 else x).contiguous())
    rows = []
    for direction, places in enumerate(plan.places(plan.lies.given)[: len(plan.kernels)]):
        if direction or plan.lies.given or x.dtype is not plan.dtype:
            rows.append(x.new_empty(plan.order.size, x.shape[1], dtype=plan.dtype))
            total = gather(given, places, array(rows[-1]))
            if plan.lies.given and not direction and not math.isfinite(total):
                plan.order.check_finite(plan.order.pack(x))
        else:
            rows.append(x)
    return rows


def _gathered(own: Tensor, plan: _Plan, direction: int, x: Tensor | None) -> Tensor:
    """The gradient of the input, of ``own`` of a direction and what ``x`` has of the one before."""
    from unrolled.layers.kernels.compiled.arrays import array
    from unrolled.layers.kernels.compiled.packing import scatter

    if x is None:
        if not plan.lies.given:
            return own
        x = _room(own, plan.order, own.shape[1], True)
    scatter(array(own), plan.places(plan.lies.given)[direction], array(x), bool(direction))
    return x
