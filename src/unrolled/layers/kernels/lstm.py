"""The LSTM over whole sequences, and its derivative."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells.base import State
from unrolled.layers.kernels.base import Factors, Kernel, sigmoid_slope, tanh_slope


class LSTMKernel(Kernel):
    """The LSTM of cells/lstm.py. Rows of the weight: i, f, g, o = input, forget, candidate, output gate. State: (h, C).

    Backward through one step, with dx for the gradient of x, or of what gate x was squashed from:

    do = dh tanh(C') σ'(o)            dC += dh o tanh'(C')
    di = dC g σ'(i)    df = dC C σ'(f)    dg = dC i tanh'(g)
    dC ← dC f                         dh ← [di, df, dg, do] U
    """

    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        n = self.size
        self.gates, self.fresh = projected, state is None
        self.memory, self.squashed = self.empty(n, self.work), self.empty(n, self.work)
        self.output = self.empty(n, self.weight.dtype)
        self.first_hidden = None if state is None else self.operand(state[0])
        self.first_memory = self.memory.new_zeros(self.counts[0], n) if state is None else state[1]
        h, memory = self.first_hidden, self.first_memory
        turned = self.turned(self.weight)
        writes, keeps, candidates, shows = projected.chunk(4, 1)
        packed = (projected, projected[:, : 2 * n], writes, keeps, candidates, shows)
        for step, (count, total, both, write, keep, candidate, show, new, squashed, output) in enumerate(
            zip(self.counts, *map(self.split, (*packed, self.memory, self.squashed, self.output)), strict=True)
        ):
            if h is not None:
                if self.between is not None:
                    self.between.forward(step, total, h[:count])
                self.add_product(total, h[:count], turned)
            both.sigmoid_()
            torch.mul(keep, memory[:count], out=new).addcmul_(write, candidate.tanh_())
            torch.mul(show.sigmoid_(), torch.tanh(new, out=squashed), out=output)
            h, memory = output, new
        return self.output, (self.last(self.output), self.last(self.memory))

    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        n = self.size
        self.grad = self.empty(4 * n, self.weight.dtype)
        exact = self.empty(4 * n, self.work) if self.reduced else self.grad
        before = self.shifted(self.memory, self.first_memory)
        hidden, memory = grad_ends
        packed = (grad_output, *self.gates.chunk(4, 1), before, self.squashed, *exact.chunk(4, 1), exact, self.grad)
        for step, (wanted, given, *parts, total, whole) in self.going_back(self.fresh, *packed):
            i, f, g, o, past, squashed, grad_i, grad_f, grad_g, grad_o = parts
            h, c = hidden[: len(given)], memory[: len(given)]
            h += given
            sigmoid_slope(h * squashed, o, grad_o)
            c += torch.ops.aten.tanh_backward.default(h * o, squashed)
            sigmoid_slope(c * g, i, grad_i)
            sigmoid_slope(c * past, f, grad_f)
            tanh_slope(c * i, g, grad_g)
            c *= f
            if self.reduced:
                whole.copy_(total)
            if wanted:
                self.put_product(h, whole, self.weight)
            if self.between is not None:
                h += self.between.backward(step, whole)
        return self.grad, (hidden, memory)

    def factors(self) -> Factors:
        return (self.seen(self.grad, self.output, self.first_hidden),)
