"""The LSTM over whole sequences, and its derivative."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells.base import State
from unrolled.layers.kernels.base import Factors, Kernel, sigmoid_slope, tanh_slope


class LSTMKernel(Kernel):
    """The LSTM of cells/lstm.py. Rows of the weight: input, forget, candidate, output gate. State: (h, C).

    Backward through one step, with ġ for the gradient of what a gate was squashed from:
    Ċ += ḣ o (1 - tanh²C')    ȯ = ḣ tanh(C') σ'    i̇, ḟ, g̣ = Ċ g σ', Ċ C σ', Ċ i tanh'    Ċ ← Ċ f    ḣ ← [i̇ ḟ g̣ ȯ] U
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
        write, keep, candidate, show = self.gates.chunk(4, 1)
        slopes = self.empty(4 * n, self.work).view(-1, 4, n)
        sigmoid_slope(candidate, write, slopes[:, 0])
        sigmoid_slope(self.shifted(self.memory, self.first_memory), keep, slopes[:, 1])
        tanh_slope(write, candidate, slopes[:, 2])
        sigmoid_slope(self.squashed, show, slopes[:, 3])
        opened = torch.empty_like(self.memory)
        tanh_slope(show, self.squashed, opened)
        self.grad = self.empty(4 * n, self.weight.dtype)
        grad = self.grad.view(-1, 4, n)
        hidden, memory = grad_ends
        packed = (grad_output, slopes[:, :3], slopes[:, 3], opened, keep, grad[:, :3], grad[:, 3], self.grad)
        for step, (wanted, given, inner, outer, open_, kept, grad_inner, grad_outer, whole) in self.going_back(
            self.fresh, *packed
        ):
            h, c = hidden[: len(given)], memory[: len(given)]
            h += given
            torch.mul(h, outer, out=grad_outer)
            c.addcmul_(h, open_)
            torch.mul(c.unsqueeze(1), inner, out=grad_inner)
            c *= kept
            if wanted:
                self.put_product(h, whole, self.weight)
            if self.between is not None:
                h += self.between.backward(step, whole)
        return self.grad, (hidden, memory)

    def factors(self) -> Factors:
        return (self.seen(self.grad, self.output, self.first_hidden),)
