"""Advance, then attend, and feed what was read: Luong's loop with input feeding; one function chooses how it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn import functional

from unrolled.layers import Attention, Cell, Memory, State
from unrolled.layers.cells.checks import product_type
from unrolled.layers.kernels.base import Between, Kernel, check_unchanged, run_backward, watch
from unrolled.layers.kernels.choose import kernel_for
from unrolled.layers.kernels.gradients import weight_gradient
from unrolled.layers.kernels.repeated import Repeated
from unrolled.layers.kernels.steps import put_tanh
from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import without_autocast
from unrolled.models.kernels.looking import Looking
from unrolled.models.kernels.scores import HandScore, hand_score, learned


class Fed(NamedTuple):
    """The loop over all steps, time first."""

    outputs: Tensor  # [time, batch, output]
    weights: Tensor  # [time, batch, source], float32 or wider


def feedable(cell: Cell, attention: Attention) -> bool:
    """Whether `advance_and_attend` has derivatives written by hand for both."""
    return cell.bare and kernel_for(cell, [1]) is not None and hand_score(attention) is not None


def advance_and_attend(
    cell: Cell, attention: Attention, mix: nn.Linear, embedded: Tensor, memory: Memory, fed: Tensor, state: State
) -> Fed:
    """s_t = cell([x_t, s~_{t-1}], s_{t-1});  c_t = attention(s_t, memory);  s~_t = tanh(W_c [s_t, c_t] + b), for all t.

    Luong et al. 2015 (arXiv:1508.04025), §3.3. ``embedded`` x [time, batch, embedding]; ``fed`` is s~ before the first
    step. One operation for the whole sequence: products in autocast's type, sums and activations in float32 or wider.
    Only where `feedable`.
    """
    steps, rows = embedded.shape[:2]
    kernel, score = kernel_for(cell, [rows] * steps), hand_score(attention)
    if kernel is None or score is None:
        raise RuntimeError("there is no derivative by hand for this cell and attention: ask feedable first")
    product = product_type(cell.input_weight)
    sums = torch.promote_types(product, torch.float32)
    of_symbol, of_fed = cell.input_weight.split((embedded.shape[2], mix.out_features), dim=1)
    projected = functional.linear(embedded, of_symbol, cell.biases()[0])
    with without_autocast(embedded):
        given = _Given(
            projected,
            cell.hidden_weight.to(product),
            cell.biases()[1].to(product),
            of_fed.to(product),
            mix.weight.to(product),
            mix.bias.to(sums),
            fed.to(sums),
            memory.keys.to(sums),
            memory.values.to(sums),
            *learned(attention, product, sums),
        )
        first = (tensor.to(sums) for tensor in state)
        return Fed(*_Loop.apply(kernel, score, memory.mask, *given, *first))


class _Given(NamedTuple):
    """The tensors of a loop, besides the state."""

    projected: Tensor
    hidden_weight: Tensor
    hidden_bias: Tensor
    fed_weight: Tensor
    mix_weight: Tensor
    mix_bias: Tensor
    fed: Tensor
    keys: Tensor
    values: Tensor
    query_weight: Tensor | None
    vector: Tensor | None


class _Feed(Between):
    """Between two steps: the old state asks, is mixed with what it read, and that is part of the new step's input."""

    def __init__(self, given: _Given, kind: type[HandScore], mask: Tensor) -> None:
        steps, rows = given.projected.shape[:2]
        self.given, self.last, self.size = given, steps - 1, given.hidden_weight.shape[1]
        self.of_fed, self.mix = Repeated(given.fed_weight, steps), Repeated(given.mix_weight, steps)
        self.mix_bias = given.mix_bias.contiguous()
        score = kind(given.keys, given.query_weight, given.vector, steps)
        self.looking = Looking(score, given.values, mask, steps)
        self.joined = given.mix_weight.new_empty(steps, rows, given.mix_weight.shape[1])
        self.outputs = given.values.new_empty(steps, rows, len(given.mix_weight))
        self.fed = given.fed_weight.new_empty(steps, rows, given.fed_weight.shape[1])
        self.fed[0] = given.fed

    def forward(self, step: int, total: Tensor, hidden: Tensor) -> None:
        if step:
            self.look(step - 1, hidden)
        self.of_fed.add(self.fed[step], total)

    def look(self, step: int, hidden: Tensor) -> None:
        """s~ of the state that ``step`` made."""
        joined, output = self.joined[step], self.outputs[step]
        joined[:, : self.size] = hidden
        joined[:, self.size :] = self.looking.forward(step, hidden)
        put_tanh(self.mix.times(joined, self.mix_bias), output)
        if step < self.last:
            self.fed[step + 1] = output

    def ready(self, of_outputs: Tensor, of_weights: Tensor | None) -> None:
        """Take the gradients of what the loop gave out, before ``backward``; ``of_outputs`` is overwritten."""
        self.of_outputs = of_outputs
        self.of_mixed = torch.empty_like(self.outputs, dtype=self.joined.dtype)
        self.of_contexts = self.outputs.new_empty(*self.outputs.shape[:2], self.given.values.shape[2])
        self.looking.ready(of_weights)

    def backward(self, step: int, gradient: Tensor) -> Tensor:
        of_fed = self.of_fed.back(gradient)
        if not step:
            self.of_first = of_fed.to(self.outputs.dtype)
            return torch.zeros_like(self.joined[0, :, : self.size])
        self.of_outputs[step - 1] += of_fed
        return self.look_back(step - 1)

    def look_back(self, step: int) -> Tensor:
        """The gradient of the state that ``step`` made, from all that came out of its s~."""
        output = self.outputs[step]
        torch.mul(self.of_outputs[step], 1 - output * output, out=self.of_mixed[step])
        hidden, context = self.mix.back(self.of_mixed[step]).split((self.size, self.of_contexts.shape[2]), 1)
        self.of_contexts[step] = context
        return hidden + self.looking.backward(step, self.of_contexts[step])

    def gradients(self, totals: Tensor, queries: Tensor) -> tuple[Tensor | None, ...]:
        """Of all that `_Given` has from ``fed_weight`` on; ``totals`` and ``queries`` packed, in the products' type."""
        joined, mixed = self.joined.flatten(0, 1), self.of_mixed.flatten(0, 1)
        fed_weight = weight_gradient(((totals, self.fed.flatten(0, 1)),))
        bias = mixed.sum(0, dtype=self.outputs.dtype)
        looked = self.looking.gradients(queries.unflatten(0, self.fed.shape[:2]), self.of_contexts)
        return fed_weight, weight_gradient(((mixed, joined),)), bias, self.of_first, *looked


class _Loop(Function):
    """The whole sequence as one operation: slopes by hand, and each weight's gradient in one product at the end."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, score: type[HandScore], mask: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor]:
        width = len(_Given._fields)
        given, state = _Given(*tensors[:width]), tensors[width:]
        feed = _Feed(given, score, mask)
        kernel.between = feed
        kernel.begin(given.hidden_weight, given.hidden_bias)
        output, _ = kernel.forward(given.projected.to(feed.outputs.dtype, copy=True).flatten(0, 1), state)
        feed.look(feed.last, kernel.split(output)[-1])
        ctx.kernel, ctx.feed, ctx.output = kernel, feed, output
        ctx.set_materialize_grads(False)
        said = feed.outputs.detach()
        watch(ctx, *tensors[1:], said)
        return said, feed.looking.weights.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor | None, of_weights: Tensor | None) -> tuple[Tensor | None, ...]:
        kernel, feed, output = ctx.kernel, ctx.feed, ctx.output
        check_unchanged(ctx)
        with without_autocast(output):
            said = torch.zeros_like(feed.outputs) if of_outputs is None else of_outputs
            feed.ready(said.to(feed.outputs.dtype, copy=True), of_weights)
            given = torch.zeros_like(output)
            kernel.split(given)[-1].copy_(feed.look_back(feed.last))
            totals, state = run_backward(kernel, given, None, None)
            projected = totals.unflatten(0, feed.outputs.shape[:2]).to(feed.given.projected.dtype)
            hidden_weight, hidden_bias = weight_gradient(kernel.factors()), kernel.bias_gradient()
            others = feed.gradients(totals, output)
        first = state[: len(ctx.needs_input_grad) - 3 - len(feed.given)]
        return None, None, None, projected, hidden_weight, hidden_bias, *others, *first
