"""The gated recurrent unit over whole sequences, and its derivative, for either place of the reset gate."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unrolled.layers.cells.checks import State
from unrolled.layers.kernels.base import Extras, Kernel
from unrolled.layers.kernels.gradients import Factors, sigmoid_slope, tanh_slope
from unrolled.layers.kernels.parts import Product, Zone

if TYPE_CHECKING:
    from unrolled.layers.kernels.loops.base import Loops, Room, Told


class GRUKernel(Kernel):
    """What both have. Rows of the weight: update, reset, candidate. State: (h,)."""

    gates = 3
    past: Tensor
    columns: int
    """Blocks of ``hidden`` columns that the packed gradient has."""

    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        if self.compiled:
            return self.forward_compiled(projected, state)
        n = self.size
        self.total, self.fresh = projected, state is None
        self.hidden = self.empty(n, self.work)
        self.first = projected.new_zeros(self.counts[0], n) if state is None else state[0].contiguous()
        self.zone = Zone(self, self.noise.kept[0]) if self.noise.kept else None
        self._put_together()
        if self.launched:
            from unrolled.layers.kernels.launched import gru as launched

            self.loop = launched.forward(self)
        else:
            self._forward()
            self.output = self.hidden.to(self.weight.dtype)
        return self.output, (self.last(self.hidden),)

    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        if self.compiled:
            return self.backward_compiled(grad_output, grad_ends)
        self.grad = self.empty(self.columns * self.size, self.weight.dtype)
        hidden = grad_ends[0].contiguous()
        if self.launched:
            from unrolled.layers.kernels.launched import gru as launched

            launched.backward(self, self.loop, grad_output.contiguous(), hidden)
        else:
            self._backward(grad_output, hidden)
        return self.of_total(self.grad), (hidden,)

    @abc.abstractmethod
    def _put_together(self) -> None:
        """The products, and ``past``: what of the old state the candidate sees, packed."""

    @abc.abstractmethod
    def _forward(self) -> None:
        """Fill ``total`` with the gates, ``past`` and ``hidden``."""

    @abc.abstractmethod
    def _backward(self, grad_output: Tensor, hidden: Tensor) -> None:
        """Fill ``grad``; ``hidden`` is the last state's gradient and becomes the first's."""

    def loops_of(self, told: Told, threads: int, total: Room) -> Loops:
        from unrolled.layers.kernels.loops.gru import GRULoops

        return GRULoops(self.rows, [told], threads, total, after=self.columns > self.gates)


class GRUBefore(GRUKernel):
    """n = tanh(W x + U (r * h) + b).

    Backward through one step, with dx for the gradient of x, or of what gate x was squashed from:

    dn = dh z tanh'(n)    dz = dh (n - h) σ'(z)    p = dn U_n, the gradient of r * h    dr = p h σ'(r)
    dh ← dh (1 - z) + p r + [dz, dr] U_zr
    """

    columns = 3

    def _put_together(self) -> None:
        n = self.size
        self.past = self.empty(n, self.weight.dtype)
        self.ask = Product(self, slice(0, 2 * n), (2 * n,))
        self.recall = Product(self, slice(2 * n, 3 * n), (n,))

    def _forward(self) -> None:
        n, projected = self.size, self.total
        both, (updates, resets, candidates) = projected[:, : 2 * n], projected.chunk(3, 1)
        h = self.first
        for step, (whole, total, update, reset, candidate, past, new) in enumerate(
            zip(*map(self.split, (projected, both, updates, resets, candidates, self.past, self.hidden)), strict=True)
        ):
            h = h[: len(total)]
            if step or not self.fresh:
                seen = self.operand(h)
                if self.between is not None:
                    self.between.forward(step, whole, seen)
                self.ask.forward(step, seen, (total,))
            total.sigmoid_()
            torch.mul(reset, h, out=past)
            if step or not self.fresh:
                self.recall.forward(step, past, (candidate,))
            torch.lerp(h, candidate.tanh_(), update, out=new)
            if self.zone is not None:
                new.copy_(self.zone.mix(step, new, h))
            h = new

    def _backward(self, grad_output: Tensor, hidden: Tensor) -> None:
        n = self.size
        update, reset, candidate = self.total.chunk(3, 1)
        before = self.shifted(self.hidden, self.first)
        slopes = self.empty(3 * n, self.work).view(-1, 3, n)
        sigmoid_slope(candidate - before, update, slopes[:, 0])
        sigmoid_slope(before, reset, slopes[:, 1])
        tanh_slope(update, candidate, slopes[:, 2])
        packed = (grad_output, update, reset, *slopes.unbind(1), self.grad)
        for step, (wanted, given, z, r, outer, inner, slope, grad) in self.going_back(self.fresh, *packed):
            grad_update, grad_reset, grad_candidate = grad.chunk(3, 1)
            h = hidden[: len(given)]
            h += given
            stays = None if self.zone is None else self.zone.part(step, h)
            torch.mul(h, outer, out=grad_update)
            torch.mul(h, slope, out=grad_candidate)
            h.addcmul_(h, z, value=-1)
            if stays is not None:
                h += stays
            if not wanted:
                grad_reset.zero_()
                continue
            past = self.recall.backward(step, grad_candidate)
            torch.mul(past, inner, out=grad_reset)
            h.addcmul_(past.to(h.dtype), r)
            self.ask.add(step, grad[:, : 2 * n], h)
            if self.between is not None:
                h += self.between.backward(step, grad)

    def factors(self) -> Factors:
        if self.compiled:
            return self.loops.factors(0)
        n, first = self.size, None if self.fresh else self.operand(self.first)
        kept = self.counts[0] if self.fresh else 0
        asked = self.ask.factors(self.grad[:, : 2 * n], self.shifted(self.output, first))
        recalled = self.recall.factors(self.grad[:, 2 * n :], self.past[kept:])
        return tuple(factor for both in zip(asked, recalled, strict=True) for factor in both)

    def extra_gradients(self) -> Extras:
        if self.compiled:
            return self.loops.extra_gradients(0)
        kept = self.counts[0] if self.fresh else 0
        return Extras(torch.cat((self.ask.gain_gradient(kept), self.recall.gain_gradient(kept))))


class GRUAfter(GRUKernel):
    """n = tanh(W x + c + r * (U h + b)).

    Backward through one step, with p = U h + b, and dx for the gradient of x, or of what gate x was squashed from:

    dn = dh z tanh'(n)    dz = dh (n - h) σ'(z)    dr = dn p σ'(r)    dp = dn r
    dh ← dh (1 - z) + [dz, dr, dp] U

    The columns of the packed gradient are dz, dr, dp, dn.
    """

    columns = 4

    def _put_together(self) -> None:
        n = self.size
        self.past = self.empty(n, self.work)
        self.product = Product(self, slice(None), (2 * n, n))
        past = self.past.view(-1, self.directions, n)
        if self.bias is None:
            past.zero_()
        else:
            past.copy_(self.bias.view(self.directions, 3 * n)[:, 2 * n :].expand_as(past))

    def _forward(self) -> None:
        n, projected = self.size, self.total
        both, (updates, resets, candidates) = projected[:, : 2 * n], projected.chunk(3, 1)
        h = self.first
        for step, (whole, total, update, reset, candidate, past, new) in enumerate(
            zip(*map(self.split, (projected, both, updates, resets, candidates, self.past, self.hidden)), strict=True)
        ):
            h = h[: len(total)]
            if step or not self.fresh:
                seen = self.operand(h)
                if self.between is not None:
                    self.between.forward(step, whole, seen)
                self.product.forward(step, seen, (total, past))
            total.sigmoid_()
            candidate.addcmul_(reset, past).tanh_()
            torch.lerp(h, candidate, update, out=new)
            if self.zone is not None:
                new.copy_(self.zone.mix(step, new, h))
            h = new

    def _backward(self, grad_output: Tensor, hidden: Tensor) -> None:
        n = self.size
        update, reset, candidate = self.total.chunk(3, 1)
        slopes = self.empty(4 * n, self.work).view(-1, 4, n)
        sigmoid_slope(candidate - self.shifted(self.hidden, self.first), update, slopes[:, 0])
        tanh_slope(update, candidate, slopes[:, 3])
        sigmoid_slope(self.past, reset, slopes[:, 1])
        slopes[:, 1] *= slopes[:, 3]
        torch.mul(reset, slopes[:, 3], out=slopes[:, 2])
        packed = (grad_output, update, slopes, self.grad.view(-1, 4, n), self.grad[:, : 3 * n])
        for step, (wanted, given, z, slope, grad, seen) in self.going_back(self.fresh, *packed):
            h = hidden[: len(given)]
            h += given
            stays = None if self.zone is None else self.zone.part(step, h)
            torch.mul(h.unsqueeze(1), slope, out=grad)
            h.addcmul_(h, z, value=-1)
            if stays is not None:
                h += stays
            if wanted:
                self.product.add(step, seen, h)
            if self.between is not None:
                h += self.between.backward(step, torch.cat((seen[:, : 2 * n], grad[:, 3]), 1))

    def of_total(self, grad: Tensor) -> Tensor:
        return torch.cat((grad[:, : 2 * self.size], grad[:, 3 * self.size :]), 1)

    def factors(self) -> Factors:
        if self.compiled:
            return self.loops.factors(0)
        first = None if self.fresh else self.operand(self.first)
        return self.product.factors(self.grad[:, : 3 * self.size], self.shifted(self.output, first))

    def bias_gradient(self) -> Tensor | None:
        n = self.size
        inside = self.grad[:, 2 * n : 3 * n].unflatten(0, (-1, self.directions)).sum(0)
        return torch.cat((inside.new_zeros(self.directions, 2 * n), inside), 1).flatten()

    def extra_gradients(self) -> Extras:
        if self.compiled:
            return self.loops.extra_gradients(0)
        return Extras(self.product.gain_gradient(self.counts[0] if self.fresh else 0))
