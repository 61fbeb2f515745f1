"""The simple recurrent network over whole sequences, and its derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unrolled.layers.cells.checks import State
from unrolled.layers.kernels.base import Kernel
from unrolled.layers.kernels.gradients import Factors, tanh_slope
from unrolled.layers.kernels.parts import Product

if TYPE_CHECKING:
    from unrolled.layers.kernels.loops.base import Loops, Room, Told


class ElmanKernel(Kernel):
    """h' = g(a), a = U h + W x + b. State: (h,). Backward through one step: da = dh g'(a)    dh ← da U."""

    gates = 1

    def __init__(self, counts: list[int], activation: str) -> None:
        super().__init__(counts)
        self.squash = torch.tanh_ if activation == "tanh" else torch.relu_
        self.activation = activation

    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        if self.compiled:
            return self.forward_compiled(projected, state)
        self.hidden, self.fresh = projected, state is None
        self.first = None if state is None else state[0].contiguous()
        self.product = Product(self, slice(None), (self.size,))
        self._forward()
        self.output = self.hidden.to(self.weight.dtype)
        return self.output, (self.last(self.hidden),)

    def _forward(self) -> None:
        h = self.first
        for step, total in enumerate(self.split(self.hidden)):
            if h is not None:
                seen = self.operand(h[: len(total)])
                if self.between is not None:
                    self.between.forward(step, total, seen)
                self.product.forward(step, seen, (total,))
            h = self.squash(total)

    def loops_of(self, told: Told, threads: int, total: Room) -> Loops:
        from unrolled.layers.kernels.loops.elman import ElmanLoops

        return ElmanLoops(self.rows, [told], threads, total, rectified=self.activation == "relu")

    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        if self.compiled:
            return self.backward_compiled(grad_output, grad_ends)
        self.grad = self.empty(self.size, self.weight.dtype)
        hidden = grad_ends[0].contiguous()
        self._backward(grad_output, hidden)
        return self.grad, (hidden,)

    def _backward(self, grad_output: Tensor, hidden: Tensor) -> None:
        slopes = torch.empty_like(self.hidden)
        if self.activation == "tanh":
            tanh_slope(torch.ones_like(slopes), self.hidden, slopes)
        else:
            torch.gt(self.hidden, 0, out=slopes)
        for step, (wanted, given, slope, grad) in self.going_back(self.fresh, grad_output, slopes, self.grad):
            h = hidden[: len(given)]
            h += given
            torch.mul(h, slope, out=grad)
            if wanted:
                self.product.put(step, grad, h)
            if self.between is not None:
                h += self.between.backward(step, grad)

    def factors(self) -> Factors:
        if self.compiled:
            return self.loops.factors(0)
        first = None if self.first is None else self.operand(self.first)
        return self.product.factors(self.grad, self.shifted(self.output, first))
