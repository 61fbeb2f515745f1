"""Attend, then advance: the loop in which every step waits for the one before; one function chooses how it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function
from torch.nn import functional

from unrolled.layers import Attention, Cell, Memory, PlainDropout, State
from unrolled.layers.attention import Gated
from unrolled.layers.cells.checks import product_type
from unrolled.layers.kernels.base import Between, Kernel, run_backward, watch
from unrolled.layers.kernels.choose import kernel_for
from unrolled.layers.kernels.gradients import weight_gradient
from unrolled.layers.kernels.repeated import Repeated
from unrolled.layers.loop import Loop
from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import traced, without_autocast
from unrolled.models.kernels.looking import Looking
from unrolled.models.kernels.scores import HandScore, hand_score, learned


class Walked(NamedTuple):
    """The loop over all steps, time first."""

    outputs: Tensor  # [time, batch, hidden]
    contexts: Tensor  # [time, batch, memory]
    weights: Tensor  # [time, batch, source], float32 or wider


def attend_and_advance(
    cell: Cell, attention: Attention | Gated, embedded: Tensor, memory: Memory, state: State, looking: State = ()
) -> Walked:
    """c_t = attention(h_{t-1}, memory);  state_t = cell([x_t, c_t], state_{t-1}), for every step t.

    ``embedded`` x [time, batch, embedding]; ``looking`` is the attention's own state. Where cell and attention have
    derivatives written by hand the whole sequence is one operation, its products in autocast's type, its sums and
    activations in float32 or wider; otherwise the plain loop runs. Both give the same values and gradients.
    """
    if traced(embedded):
        return step_by_step(cell, attention, embedded, memory, state, looking)
    steps, rows = embedded.shape[:2]
    if isinstance(attention, Gated):
        return step_by_step(cell, attention, embedded, memory, state, looking, deferred=True)
    kernel, score = kernel_for(cell, [rows] * steps) if cell.bare else None, hand_score(attention)
    if kernel is None or score is None:
        return step_by_step(cell, attention, embedded, memory, state, looking, deferred=True)
    product = product_type(cell.input_weight)
    sums = torch.promote_types(product, torch.float32)
    projected, of_context = _split_product(cell, attention, embedded)
    with without_autocast(embedded):
        given = _Given(
            projected,
            cell.hidden_weight.to(product),
            cell.biases()[1].to(product),
            of_context.to(product),
            memory.keys.to(sums),
            memory.values.to(sums),
            *learned(attention, product, sums),
        )
        first = (tensor.to(sums) for tensor in state)
        return Walked(*_Loop.apply(kernel, score, memory.mask, *given, *first))


def step_by_step(
    cell: Cell,
    attention: Attention | Gated,
    embedded: Tensor,
    memory: Memory,
    state: State,
    looking: State = (),
    *,
    deferred: bool = False,
) -> Walked:
    """The plain loop: what the one operation must equal. ``deferred``: see `Loop`."""
    loop = Loop([cell], PlainDropout(), False, deferred=deferred)
    projected, of_context = (embedded, None) if cell.layer_norm else _split_product(cell, attention, embedded)
    outputs, contexts, weights = [], [], []
    for now in projected.unbind(0):
        context, looked, looking, _ = attention(state[0], memory, looking)
        if of_context is None:
            total = loop.project(torch.cat((now, context), dim=-1))  # normalised as a whole
        else:
            total = now + functional.linear(context, of_context)
        _, state = loop.advance(total, state)
        outputs.append(state[0])
        contexts.append(context)
        weights.append(looked)
    return Walked(torch.stack(outputs), torch.stack(contexts), torch.stack(weights))


def _split_product(cell: Cell, attention: Attention | Gated, embedded: Tensor) -> tuple[Tensor, Tensor]:
    """W [x, c] + b = (W_x x + b) + W_c c: the first part for all steps, [time, batch, gates * hidden], and W_c."""
    of_symbol, of_context = cell.input_weight.split((embedded.shape[2], attention.context_size), dim=1)
    return functional.linear(embedded, of_symbol, cell.biases()[0]), of_context


class _Given(NamedTuple):
    """The tensors of a loop, besides the state."""

    projected: Tensor
    hidden_weight: Tensor
    hidden_bias: Tensor
    context_weight: Tensor
    keys: Tensor
    values: Tensor
    query_weight: Tensor | None
    vector: Tensor | None


class _Look(Between):
    """Between two steps: ask with the old state, read a context, add its product to the new step's input."""

    def __init__(self, given: _Given, kind: type[HandScore], mask: Tensor) -> None:
        steps, rows = given.projected.shape[:2]
        self.given = given
        self.looking = Looking(kind(given.keys, given.query_weight, given.vector, steps), given.values, mask, steps)
        self.contexts = given.context_weight.new_empty(steps, rows, given.values.shape[2])
        self.of_context = Repeated(given.context_weight, steps)

    def forward(self, step: int, total: Tensor, hidden: Tensor) -> None:
        self.contexts[step] = self.looking.forward(step, hidden)
        self.of_context.add(self.contexts[step], total)

    def ready(self, of_contexts: Tensor, of_weights: Tensor | None) -> None:
        """Take the gradients of what the loop gave out, before ``backward``; ``of_contexts`` is overwritten."""
        self.of_contexts = of_contexts
        self.looking.ready(of_weights)

    def backward(self, step: int, gradient: Tensor) -> Tensor:
        context = self.of_contexts[step]
        context += self.of_context.back(gradient)
        return self.looking.backward(step, context)

    def gradients(self, totals: Tensor, queries: Tensor) -> tuple[Tensor | None, ...]:
        """Of context weight, keys, values, query weight and vector, each in one product; time first."""
        context_weight = weight_gradient(((totals.flatten(0, 1), self.contexts.flatten(0, 1)),))
        return context_weight, *self.looking.gradients(queries, self.of_contexts)


class _Loop(Function):
    """The whole sequence as one operation: slopes by hand, and each weight's gradient in one product at the end."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, score: type[HandScore], mask: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        width = len(_Given._fields)
        given, state = _Given(*tensors[:width]), tensors[width:]
        look = _Look(given, score, mask)
        kernel.between = look
        kernel.begin(given.hidden_weight, given.hidden_bias)
        steps = given.projected.shape[:2]
        output, _ = kernel.forward(given.projected.to(look.looking.weights.dtype, copy=True).flatten(0, 1), state)
        outputs = output.detach().unflatten(0, steps)
        ctx.kernel, ctx.look, ctx.first = kernel, look, state[0].to(output.dtype)
        contexts = look.contexts.detach()
        watch(ctx, outputs, contexts, *tensors[1:])
        ctx.set_materialize_grads(False)
        return outputs, contexts, look.looking.weights.detach()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_outputs: Tensor | None, of_contexts: Tensor | None, of_weights: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        kernel, look = ctx.kernel, ctx.look
        outputs, *_ = ctx.saved_tensors
        sums = look.looking.weights.dtype
        with without_autocast(outputs):
            read = torch.zeros_like(look.contexts) if of_contexts is None else of_contexts
            look.ready(read.to(sums, copy=True), of_weights)
            said = None if of_outputs is None else of_outputs.flatten(0, 1)
            flat, state = run_backward(kernel, said, None, None)
            totals = flat.unflatten(0, outputs.shape[:2])
            queries = torch.cat((ctx.first.unsqueeze(0), outputs[:-1]))
            projected = totals.to(look.given.projected.dtype)
            hidden_weight, hidden_bias = weight_gradient(kernel.factors()), kernel.bias_gradient()
            of_look = look.gradients(totals, queries)
        first = state[: len(ctx.needs_input_grad) - 3 - len(look.given)]
        return None, None, None, projected, hidden_weight, hidden_bias, *of_look, *first
