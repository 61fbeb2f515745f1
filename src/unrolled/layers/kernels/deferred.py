"""Products with one weight in every step of a loop, whose gradient is one product after it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from unrolled.layers.cells.checks import State
from unrolled.layers.kernels.base import NO_EXTRAS, Extras, Kernel, check_unchanged, run_backward, watch
from unrolled.layers.kernels.gradients import Factors, weight_gradient
from unrolled.layers.once import once_differentiable


class Deferred:
    """A weight [rows, size] held for a loop over time, cast once to the type of the products.

    Where a step needs the one before (a decoder that attends), the products cannot be joined, but their weight
    gradients can: in the backward pass every step leaves its factors here, and when all have, one product over all
    of them is the gradient.

        held = Deferred(weight)
        for x in steps:
            y = held.product(x)
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype | None = None) -> None:
        self._task: int | None = None
        self._steps: list[Factors] = []
        self.weight: Tensor = _Hold.apply(weight, dtype or weight.dtype, self)

    def product(self, x: Tensor) -> Tensor:
        """``x`` [batch, size] times weightᵀ, [batch, rows], in the type of the products."""
        return _Product.apply(x, self.weight, self)

    def leave(self, factors: Factors) -> None:
        """A step's factors, from its backward. A pass that never came to the weight leaves nothing to the next."""
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task, self._steps = task, []
        self._steps.append(factors)

    def gradient(self) -> Tensor | None:
        """The weight's gradient from all that was left in this pass; None where nothing was."""
        steps, self._steps = self._steps, []
        if not steps or self._task != torch._C._current_graph_task_id():
            return None
        blocks = zip(*steps, strict=True)
        return weight_gradient(tuple((_join(g for g, _ in block), _join(x for _, x in block)) for block in blocks))


class _Hold(Function):
    """The start of a loop: the last node of its backward pass, where the gradient is collected."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, dtype: torch.dtype, deferred: Deferred) -> Tensor:
        ctx.deferred, ctx.dtype = deferred, weight.dtype
        ctx.set_materialize_grads(False)
        return weight.detach().to(dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, None, None]:
        total = ctx.deferred.gradient()
        if total is None or grad is not None:
            total = grad if total is None else total + grad
        return None if total is None else total.to(ctx.dtype), None, None


class _Product(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, deferred: Deferred) -> Tensor:
        given = x.to(weight.dtype)
        ctx.given, ctx.weight, ctx.deferred, ctx.dtype = given, weight, deferred, x.dtype
        watch(ctx, weight, given)
        return torch.mm(given, weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None]:
        check_unchanged(ctx)
        grad = grad.to(ctx.weight.dtype)
        ctx.deferred.leave(((grad, ctx.given),))
        return torch.mm(grad, ctx.weight).to(ctx.dtype) if ctx.needs_input_grad[0] else None, None, None


class DeferredStep(Function):
    """One step of a kernel as one node of the graph, its weight gradient deferred."""

    @staticmethod
    def forward(
        ctx: Any,
        step: tuple[Kernel, Deferred],
        projected: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        hidden: Tensor,
        memory: Tensor | None,
        *extras: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        kernel, _ = step
        ctx.step, ctx.dtype = step, projected.dtype
        ctx.set_materialize_grads(False)
        kernel.begin(weight, bias, Extras(*extras))
        state = tuple(tensor.to(kernel.work) for tensor in (hidden, memory) if tensor is not None)
        _, ends = kernel.forward(projected.to(kernel.work, copy=True), state)
        watch(ctx, weight, bias, hidden, memory, *extras, *kernel.shown(ends))
        return ends[0], ends[1] if len(ends) == 2 else None

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor | None, grad_memory: Tensor | None) -> tuple[Tensor | None, ...]:
        kernel, deferred = ctx.step
        check_unchanged(ctx)
        projected, state = run_backward(kernel, None, grad_hidden, grad_memory)
        if ctx.needs_input_grad[2]:
            deferred.leave(kernel.factors())
        bias = kernel.bias_gradient() if ctx.needs_input_grad[3] else None
        extras = kernel.extra_gradients() if any(ctx.needs_input_grad[6:]) else NO_EXTRAS
        return None, projected.to(ctx.dtype), None, bias, *[*state, None][:2], *extras


def _join(tensors: Any) -> Tensor:
    return torch.cat(list(tensors))


def step_cell(
    kernel: Kernel,
    held: Deferred,
    bias: Tensor | None,
    projected: Tensor,
    state: State,
    extras: Extras = NO_EXTRAS,
) -> State:
    """One step from a projected input [batch, gates * hidden]; the new state."""
    hidden, memory = DeferredStep.apply((kernel, held), projected, held.weight, bias, *[*state, None][:2], *extras)
    return (hidden,) if memory is None else (hidden, memory)
