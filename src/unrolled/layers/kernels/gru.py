"""The gated recurrent unit over whole sequences, and its derivative, for either place of the reset gate."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells.base import State
from unrolled.layers.kernels.base import Extras, Factors, Kernel, sigmoid_slope, tanh_slope
from unrolled.layers.kernels.parts import Product, Zone


class GRUBefore(Kernel):
    """n = tanh(W x + U (r * h) + b). Rows of the weight: update, reset, candidate. State: (h,).

    Backward through one step, with dx for the gradient of x, or of what gate x was squashed from:

    dn = dh z tanh'(n)    dz = dh (n - h) σ'(z)    p = dn U_n, the gradient of r * h    dr = p h σ'(r)
    dh ← dh (1 - z) + p r + [dz, dr] U_zr
    """

    gates = 3

    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        n = self.size
        self.total, self.fresh = projected, state is None
        self.hidden, self.past = self.empty(n, self.work), self.empty(n, self.weight.dtype)
        self.first = projected.new_zeros(self.counts[0], n) if state is None else state[0]
        self.ask = Product(self, slice(0, 2 * n), (2 * n,))
        self.recall = Product(self, slice(2 * n, 3 * n), (n,))
        self.zone = Zone(self, self.noise.kept[0]) if self.noise.kept else None
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
        self.output = self.hidden.to(self.weight.dtype)
        return self.output, (self.last(self.hidden),)

    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        n = self.size
        update, reset, candidate = self.total.chunk(3, 1)
        before = self.shifted(self.hidden, self.first)
        slopes = self.empty(3 * n, self.work).view(-1, 3, n)
        sigmoid_slope(candidate - before, update, slopes[:, 0])
        sigmoid_slope(before, reset, slopes[:, 1])
        tanh_slope(update, candidate, slopes[:, 2])
        self.grad = self.empty(3 * n, self.weight.dtype)
        (hidden,) = grad_ends[:1]
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
        return self.grad, (hidden,)

    def factors(self) -> Factors:
        n, first = self.size, None if self.fresh else self.operand(self.first)
        kept = self.counts[0] if self.fresh else 0
        asked = self.ask.factors(self.grad[:, : 2 * n], self.shifted(self.output, first))
        recalled = self.recall.factors(self.grad[:, 2 * n :], self.past[kept:])
        return tuple(factor for both in zip(asked, recalled, strict=True) for factor in both)

    def extra_gradients(self) -> Extras:
        kept = self.counts[0] if self.fresh else 0
        return Extras(torch.cat((self.ask.gain_gradient(kept), self.recall.gain_gradient(kept))))


class GRUAfter(Kernel):
    """n = tanh(W x + c + r * (U h + b)). Rows of the weight: update, reset, candidate. State: (h,).

    Backward through one step, with p = U h + b, and dx for the gradient of x, or of what gate x was squashed from:

    dn = dh z tanh'(n)    dz = dh (n - h) σ'(z)    dr = dn p σ'(r)    dp = dn r
    dh ← dh (1 - z) + [dz, dr, dp] U
    """

    gates = 3

    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        n = self.size
        self.total, self.fresh = projected, state is None
        self.hidden, self.past = self.empty(n, self.work), self.empty(n, self.work)
        self.first = projected.new_zeros(self.counts[0], n) if state is None else state[0]
        self.product = Product(self, slice(None), (2 * n, n))
        self.zone = Zone(self, self.noise.kept[0]) if self.noise.kept else None
        both, (updates, resets, candidates) = projected[:, : 2 * n], projected.chunk(3, 1)
        past = self.past.view(-1, self.directions, n)
        if self.bias is None:
            past.zero_()
        else:
            past.copy_(self.bias.view(self.directions, 3 * n)[:, 2 * n :].expand_as(past))
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
        self.output = self.hidden.to(self.weight.dtype)
        return self.output, (self.last(self.hidden),)

    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        n = self.size
        update, reset, candidate = self.total.chunk(3, 1)
        slopes = self.empty(4 * n, self.work).view(-1, 4, n)
        sigmoid_slope(candidate - self.shifted(self.hidden, self.first), update, slopes[:, 0])
        tanh_slope(update, candidate, slopes[:, 3])
        sigmoid_slope(self.past, reset, slopes[:, 1])
        slopes[:, 1] *= slopes[:, 3]
        torch.mul(reset, slopes[:, 3], out=slopes[:, 2])
        self.grad = self.empty(4 * n, self.weight.dtype)
        (hidden,) = grad_ends[:1]
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
        projected = torch.cat((self.grad[:, : 2 * n], self.grad[:, 3 * n :]), 1)
        return projected, (hidden,)

    def factors(self) -> Factors:
        first = None if self.fresh else self.operand(self.first)
        return self.product.factors(self.grad[:, : 3 * self.size], self.shifted(self.output, first))

    def bias_gradient(self) -> Tensor | None:
        n = self.size
        inside = self.grad[:, 2 * n : 3 * n].unflatten(0, (-1, self.directions)).sum(0)
        return torch.cat((inside.new_zeros(self.directions, 2 * n), inside), 1).flatten()

    def extra_gradients(self) -> Extras:
        return Extras(self.product.gain_gradient(self.counts[0] if self.fresh else 0))
