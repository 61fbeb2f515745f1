"""The node of the graph that a layer of compiled loops is: forward, and the gradients of all that it was given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from unrolled.layers.cells import GRU, LSTM, Cell, Elman
from unrolled.layers.cells.base import Noise
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.base import NO_EXTRAS, Extras, check_unchanged, in_rows, watch
from unrolled.layers.kernels.compiled import threads
from unrolled.layers.kernels.compiled.arrays import array, held_each
from unrolled.layers.kernels.compiled.packing import clear_padding, gather, leave
from unrolled.layers.kernels.compiled.rows import Outside
from unrolled.layers.kernels.loops.base import Loops, Told, room
from unrolled.layers.kernels.loops.derived import Source, gradients, possible
from unrolled.layers.kernels.loops.elman import ElmanLoops
from unrolled.layers.kernels.loops.gru import GRULoops
from unrolled.layers.kernels.loops.lstm import LSTMLoops
from unrolled.layers.kernels.order import Order, Rows
from unrolled.layers.kernels.projecting import Projection
from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import without_autocast


class Plan(NamedTuple):
    """What a layer's node is told beside tensors."""

    cell: Cell  # of the first direction; the other has its settings
    noises: list[Noise]
    inner: torch.dtype  # of the steps' products
    order: Order
    dtype: torch.dtype  # of the input products and of the outputs
    in_batch: bool  # whether the input lies as the batch does, [batch, time, size], and not packed
    to_batch: bool  # whether the output is to

    @property
    def work(self) -> torch.dtype:
        return torch.promote_types(self.dtype, torch.float32)

    def places(self, in_batch: bool) -> np.ndarray:
        """Of each direction's loop, [2, Σ counts]: where its rows lie for others, in the batch or packed."""
        return self.order.places[:2] if in_batch else self.order.places[2:]


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


EACH = len(Held._fields) - 1 + len(Extras._fields)
"""Tensors of a direction."""


class Layer(Function):
    """``x`` as it lies, and the tensors of `Held` for each direction, to the outputs and all last states."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, x: Tensor, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        helds = [_held(tensors[start : start + EACH]) for start in range(0, len(tensors), EACH)]
        with without_autocast(x):
            ctx.rows = rows = _rows(x, plan, len(helds))
            output = _room(rows[0], plan.order, plan.cell.output_size * len(helds), plan.to_batch)
            ctx.written = array(output)
            told, ctx.projections = _told(plan, helds, ctx.written)
            ctx.threads = threads.worthwhile(rows[0].shape[0] * told[0].weight.numel() * len(helds))
            ctx.loops = loops = _loops(plan.cell, plan.order.rows, told, 1 if _apart(ctx) else ctx.threads)
            _each(ctx, [partial(_go, ctx, direction) for direction in range(len(helds))])
            ends = [_end(loops, direction, number) for direction in range(len(helds)) for number in range(loops.states)]
        ctx.plan, ctx.shape = plan, x.shape
        given = [tensor for held in helds for tensor in (held.input_gain, held.hidden, held.memory, *held.extras)]
        watch(ctx, *rows, *given, *(one.weight for one in ctx.projections), *(one.weight for one in told))
        shape = (plan.order.batch, plan.order.time) if plan.to_batch else (plan.order.size,)
        return output.view(*shape, -1).detach(), *ends

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor | None, *grad_ends: Tensor | None) -> tuple[Tensor | None, ...]:
        check_unchanged(ctx)
        plan, loops, count = ctx.plan, ctx.loops, ctx.loops.states
        directions = range(len(loops.told))
        with without_autocast(loops.told[0].weight):
            loops.begin_back()
            output = _wanted(ctx, grad_output)
            xs = _gradients_of_x(ctx)
            ends = [_grad_ends(loops, grad_ends[count * direction :][:count]) for direction in directions]
            found: list[list[Tensor | None]] = [[] for _ in directions]

            def go_back(direction: int) -> None:
                x, places = xs[min(direction, len(xs) - 1)], plan.places(plan.in_batch)[direction]
                source = Source(ctx.rows[direction], places, x, len(xs) <= direction)
                found[direction] = _go_back(ctx, direction, source, output, ends[direction])

            _each(ctx, [partial(go_back, direction) for direction in directions])
        x = xs[0]
        for other in xs[1:]:
            x = x.add_(other)
        return None, None if x is None else x.view(ctx.shape), *(one for each in found for one in each)


def _each(ctx: Any, works: list[Callable[[], None]]) -> None:
    """The work of each direction, on threads of their own where there are as many as directions and no more."""
    if not _apart(ctx):
        for work in works:
            work()
        return

    inference = torch.is_inference_mode_enabled()

    def alone(work: Callable[[], None]) -> None:
        with torch.inference_mode(inference), torch.no_grad():  # in this order: the first sets the second
            work()

    threads.together([partial(alone, work) for work in works])


def _apart(ctx: Any) -> bool:
    """Whether directions are worked on at once, each by one thread."""
    return 1 < ctx.threads <= len(ctx.projections)


def _go(ctx: Any, direction: int) -> None:
    """The way forward of a direction."""
    projection, loops, rows = ctx.projections[direction], ctx.loops, ctx.rows[direction]
    asked = projection.ahead(rows), *((weight, loops.steps) for weight in loops.weights(direction))
    into, *laid = held_each(asked, 1 if _alone(ctx) else threads.available())
    projection.forward(rows, into, loops.total.tensor[direction])
    threads.together(loops.forward(direction, laid))


def _held(tensors: Sequence[Any]) -> Held:
    split = len(Held._fields) - 1
    given, bias, outer, gain, weight, hidden, memory = tensors[:split]
    return Held(
        given, bias.contiguous(), outer, _whole(gain), weight, hidden, memory, Extras(*map(_whole, tensors[split:]))
    )


def _whole(tensor: Tensor | None) -> Tensor | None:
    """Numbers side by side."""
    return None if tensor is None else tensor.contiguous()


def _told(plan: Plan, helds: list[Held], output: Any) -> tuple[list[Told], list[Projection]]:
    """What each direction's loop is told, and how its input is projected; ``output``: where all outputs go."""
    told, projections, cell = [], [], plan.cell
    widths = tuple(count * cell.hidden_size for count in cell.normed)
    for direction, (held, noise) in enumerate(zip(helds, plan.noises, strict=True)):
        bias, inner = _biases(held, plan)
        projections.append(
            Projection(in_rows(held.input_weight.to(plan.dtype)), bias, held.input_gain, widths, plan.work)
        )
        outside = Outside(plan.places(plan.to_batch)[direction], cell.output_size * direction, output)
        state = None if held.hidden is None else (held.hidden,) if held.memory is None else (held.hidden, held.memory)
        told.append(Told(in_rows(held.hidden_weight.to(plan.inner)), inner, held.extras, noise, state, outside))
    return told, projections


def _biases(held: Held, plan: Plan) -> tuple[Tensor, Tensor | None]:
    """What is added to the input product, and to the hidden one."""
    if not isinstance(plan.cell, GRU) or plan.cell.reset == "before":
        return held.bias, None
    gates = 2 * plan.cell.hidden_size
    outside = torch.zeros_like(held.bias[gates:]) if held.outer_bias is None else held.outer_bias
    return torch.cat((held.bias[:gates], outside)), held.bias.to(plan.inner).to(plan.work)


def _loops(cell: Cell, rows: Rows, told: list[Told], shared: int) -> Loops:
    if isinstance(cell, LSTM):
        return LSTMLoops(rows, told, shared, coupled=cell.coupled)
    if isinstance(cell, GRU):
        return GRULoops(rows, told, shared, after=cell.reset == "after")
    if isinstance(cell, Elman):
        return ElmanLoops(rows, told, shared, rectified=cell.activation == "relu")
    raise RuntimeError("a layer of compiled loops needs cells with a kernel: ask joinable first")


def _rows(x: Tensor, plan: Plan, directions: int) -> list[Tensor]:
    """Packed rows of ``x`` for each direction, in the type of products."""
    x = x.detach().reshape(-1, x.shape[-1]).contiguous()
    given = array(x.float() if x.dtype is torch.float16 else x)
    places, same = plan.places(plan.in_batch)[:directions], not plan.in_batch and x.dtype is plan.dtype
    made = room(directions - same, plan.order.size, x.shape[1], plan.dtype)
    total = gather(given, places[int(same) :].reshape(-1), made.array.reshape(-1, x.shape[1]))
    if plan.in_batch and not math.isfinite(total):
        plan.order.check_finite(plan.order.pack(x))
    return [*([x] if same else []), *made.tensor]


def _room(like: Tensor, order: Order, width: int, in_batch: bool) -> Tensor:
    """A row for each symbol, or for each position of the batch, those of padding 0."""
    if not in_batch:
        return like.new_empty(order.size, width)
    made = like.new_empty(order.batch * order.time, width)
    if made.shape[0] > order.size:
        clear_padding(array(made), order.lengths, order.time)
    return made


def _end(loops: Loops, direction: int, number: int) -> Tensor:
    """The last state of each row."""
    packed = loops.packed_state(number)
    end = loops.empty(loops.batch, packed.tensor.shape[2])
    leave(packed.array[direction], loops.rows.last_places, array(end))
    return end


def _wanted(ctx: Any, grad_output: Tensor | None) -> Any:
    """The gradient of the outputs, as they lie."""
    if grad_output is None:
        like = ctx.written
        return np.zeros(like.shape, like.dtype)
    return array(grad_output.reshape(-1, grad_output.shape[-1]).contiguous())


def _gradients_of_x(ctx: Any) -> list[Any]:
    """To be filled: one for all directions, or where they are worked on at once for each; None where none is wanted."""
    if not ctx.needs_input_grad[1]:
        return [None]
    like, plan = ctx.loops.total.tensor, ctx.plan
    return [_room(like, plan.order, ctx.shape[-1], plan.in_batch) for _ in range(2 if _apart(ctx) else 1)]


def _grad_ends(loops: Loops, given: Sequence[Tensor | None]) -> list[Tensor]:
    """The gradients of a direction's last state, which become those of its first."""
    sizes = [loops.packed_state(number).tensor.shape[2] for number in range(loops.states)]
    return [
        loops.empty(loops.batch, size).zero_() if grad is None else grad.to(loops.work, copy=True).contiguous()
        for size, grad in zip(sizes, given, strict=True)
    ]


def _go_back(ctx: Any, direction: int, source: Source, output: Any, ends: list[Tensor]) -> list[Tensor | None]:
    """The way back of a direction: the gradients of its `Held`, from those of all outputs and of its last state.

    Those of the input's product come last: they may overwrite what the others are made of.
    """
    loops, projection = ctx.loops, ctx.projections[direction]
    needs = ctx.needs_input_grad[2 + direction * EACH :][:EACH]
    at_once = _alone(ctx) and possible(loops, projection)
    asked = [(weight, loops.steps) for weight in loops.weights_back(direction)]
    *laid, behind = held_each([*asked, (projection.weight if at_once else None, compiled.PRODUCTS)])
    threads.together(loops.backward(direction, laid, output, list(map(array, ends))))
    extras = loops.extra_gradients(direction) if any(needs[7:]) else NO_EXTRAS
    own = gradients(loops, direction, projection, source, (needs[0], needs[4]), behind)
    bias, outer = own.bias, None
    if loops.columns > loops.gates:
        split = loops.gates * loops.size
        bias, outer = bias[:split], bias[split:]
    first = [*ends, None][:2] if needs[5] or needs[6] else (None, None)
    return [own.input_weight, bias, outer if needs[2] else None, own.gain, own.hidden_weight, *first, *extras]


def _alone(ctx: Any) -> bool:
    """Whether one thread does all of a direction."""
    return ctx.threads == 1 or _apart(ctx)
