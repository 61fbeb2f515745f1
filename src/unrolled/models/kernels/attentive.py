"""Attend, then advance: the loop in which every step waits for the one before; one function chooses how it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional

from unrolled.layers import Attention, Cell, Memory, State
from unrolled.models.kernels.cells import HandCell, hand_cell
from unrolled.models.kernels.scores import HandScore, hand_score, learned


class Walked(NamedTuple):
    """The loop over all steps."""

    outputs: Tensor  # [batch, time, hidden]
    contexts: Tensor  # [batch, time, memory]
    weights: Tensor  # [batch, time, source], float32 or wider


def attend_and_advance(
    cell: Cell, attention: Attention, projected: Tensor, of_context: Tensor, memory: Memory, state: State
) -> Walked:
    """c_t = attention(h_{t-1}, memory);  state_t = cell(projected_t + W_c c_t, state_{t-1}), for every step t.

    ``projected`` [batch, time, gates * hidden] is the rest of the cell's input product, with its bias; ``of_context``
    [gates * hidden, memory] is W_c. Runs by hand, with a backward over the whole sequence, where cell and attention
    have one; otherwise step by step. Both give the same values and gradients.
    """
    kinds = hand_cell(cell), hand_score(attention)
    run = step_by_step if None in kinds else whole_sequence
    return run(cell, attention, projected, of_context, memory, state)


def step_by_step(
    cell: Cell, attention: Attention, projected: Tensor, of_context: Tensor, memory: Memory, state: State
) -> Walked:
    """The plain loop: what the hand-written one must equal."""
    outputs, contexts, weights = [], [], []
    for now in projected.unbind(1):
        context, looked = attention(state[0], memory)
        state = cell.advance(now + functional.linear(context, of_context), state)
        outputs.append(state[0])
        contexts.append(context)
        weights.append(looked)
    return Walked(torch.stack(outputs, dim=1), torch.stack(contexts, dim=1), torch.stack(weights, dim=1))


def whole_sequence(
    cell: Cell, attention: Attention, projected: Tensor, of_context: Tensor, memory: Memory, state: State
) -> Walked:
    """The hand-written loop: products in autocast's type, sums and activations in float32 or wider."""
    device = projected.device.type
    product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else of_context.dtype
    sums = torch.promote_types(product, torch.float32)
    with torch.autocast(device, enabled=False):
        given = _Given(
            projected,
            cell.hidden_weight.to(product),
            cell.biases()[1].to(product),
            of_context.to(product),
            memory.keys.to(sums),
            memory.values.to(sums),
            *learned(attention, product, sums),
        )
        start = (tensor.to(sums) for tensor in state)
        return Walked(*_Loop.apply(hand_cell(cell), hand_score(attention), memory.mask, *given, *start))


class _Given(NamedTuple):
    """The tensors of a loop, besides the state."""

    projected: Tensor  # [batch, time, gates * hidden]
    hidden_weight: Tensor
    hidden_bias: Tensor
    context_weight: Tensor
    keys: Tensor
    values: Tensor
    query_weight: Tensor | None
    vector: Tensor | None


class _Loop(Function):
    """The whole sequence as one operation: slopes by hand, and each weight's gradient in one product at the end."""

    @staticmethod
    def forward(
        ctx: Any, cell_kind: type[HandCell], score_kind: type[HandScore], mask: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        given, state = _Given(*tensors[:8]), tensors[8:]
        cell = cell_kind(given.hidden_weight, given.hidden_bias)
        score = score_kind(given.keys, given.query_weight, given.vector)
        padding = ~mask
        hiddens, contexts, weights, kept = [state[0]], [], [], []
        for now in given.projected.unbind(1):
            looked = score.forward(state[0]).masked_fill_(padding, float("-inf")).softmax(dim=1)
            context = torch.bmm(looked.unsqueeze(1), given.values).squeeze(1)
            product = functional.linear(context.to(given.context_weight.dtype), given.context_weight)
            state, step = cell.forward(product.to(context.dtype).add_(now), state)
            hiddens.append(state[0])
            contexts.append(context)
            weights.append(looked)
            kept.append(step)
        ctx.cell_kind, ctx.score_kind, ctx.kept, ctx.tensors = cell_kind, score_kind, kept, len(state)
        stacked = torch.stack(hiddens[:-1]), torch.stack(contexts), torch.stack(weights)
        ctx.save_for_backward(*given, *stacked)
        return torch.stack(hiddens[1:], dim=1), stacked[1].transpose(0, 1), stacked[2].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor, of_contexts: Tensor, of_weights: Tensor) -> tuple[Tensor | None, ...]:
        given, (hiddens, contexts, weights) = _Given(*ctx.saved_tensors[:8]), ctx.saved_tensors[8:]
        cell = ctx.cell_kind(given.hidden_weight, given.hidden_bias)
        score = ctx.score_kind(given.keys, given.query_weight, given.vector)
        product, sums = given.context_weight.dtype, given.values.dtype
        state = tuple(torch.zeros_like(hiddens[0]) for _ in range(ctx.tensors))
        totals, read, scored = [], [], []
        for t in reversed(range(len(hiddens))):
            total, state = cell.backward((state[0] + of_outputs[:, t], *state[1:]), ctx.kept[t])
            totals.append(total.to(product))
            read.append((totals[-1] @ given.context_weight).to(sums).add_(of_contexts[:, t]))
            looked = torch.bmm(given.values, read[-1].unsqueeze(2)).squeeze(2).add_(of_weights[:, t])
            scored.append(weights[t] * (looked - (weights[t] * looked).sum(dim=1, keepdim=True)))
            state = (state[0] + score.backward(scored[-1], hiddens[t]), *state[1:])
        all_totals, all_read, all_scored = (torch.stack(part[::-1]) for part in (totals, read, scored))
        hidden_weight, hidden_bias = cell.weight_gradient(all_totals, ctx.kept)
        keys, query_weight, vector = score.gradients(hiddens, all_scored)
        gradients = _Given(
            all_totals.transpose(0, 1).to(given.projected.dtype),
            hidden_weight,
            hidden_bias,
            all_totals.flatten(0, 1).t() @ contexts.flatten(0, 1).to(product),
            keys,
            torch.bmm(weights.permute(1, 2, 0), all_read.transpose(0, 1)),
            query_weight,
            vector,
        )
        return (None, None, None, *gradients, *state)
