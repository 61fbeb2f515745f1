"""The LSTM over whole sequences, with each of its options, and its derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unrolled.layers.cells.checks import State
from unrolled.layers.kernels.base import Extras, Kernel
from unrolled.layers.kernels.gradients import Factors, sigmoid_slope, tanh_slope, weight_gradient
from unrolled.layers.kernels.parts import Diagonal, Full, Norm, Peephole, Product, Zone

if TYPE_CHECKING:
    from unrolled.layers.kernels.loops.base import Loops, Room, Told


class LSTMKernel(Kernel):
    """The LSTM of cells/lstm.py. Rows of the weight: i, f, g, o = input, forget, candidate, output gate. State: (h, C).

    Backward through one step, with dx for the gradient of x, or of what gate x was squashed from, and y = o tanh(C'):

    do = dy tanh(C') σ'(o)            dC += dy o tanh'(C')
    di = dC g σ'(i)    df = dC C σ'(f)    dg = dC i tanh'(g)
    dC ← dC f                         dh ← [di, df, dg, do] U

    ``coupled``: i = 1 - f, hence df = dC (C - g) σ'(f). The options' own terms stand beside these: zoneout splits dh
    and dC between the old state and the new one, a projection has dy = dh W_p, a normalised memory dC += LN'(dy o
    tanh'), a peephole dC += p do and dC += p_i di + p_f df.
    """

    def __init__(self, counts: list[int], *, coupled: bool = False) -> None:
        super().__init__(counts)
        self.coupled = coupled
        self.gates = 3 if coupled else 4

    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        if self.compiled:
            return self.forward_compiled(projected, state)
        n = self.size
        self.total, self.fresh = projected, state is None
        self._put_together()
        self.made, self.squashed = self.empty(n, self.work), self.empty(n, self.work)
        self.memory = self.made if self.zones is None else self.empty(n, self.work)
        self.output = self.empty(self.output_size, self.weight.dtype)
        self.read = self.output if self.extras.projection is None else self.empty(n, self.weight.dtype)
        self.first_hidden = None if state is None else self.operand(state[0]).contiguous()
        self.first_memory = self.made.new_zeros(self.counts[0], n) if state is None else state[1].contiguous()
        if self.launched:
            from unrolled.layers.kernels.launched import lstm as launched

            self.loop = launched.forward(self)
        else:
            self._forward()
        return self.output, (self.last(self.output), self.last(self.memory))

    def _forward(self) -> None:
        n, early, projected = self.size, (self.gates - 2) * self.size, self.total
        h, memory = self.first_hidden, self.first_memory
        gates = (projected[:, :early], projected[:, :n], *projected[:, early - n :].split(n, 1))
        packed = (projected, *gates, self.made, self.squashed, self.memory, self.read, self.output)
        for step, (total, both, write, keep, candidate, show, made, squashed, kept, read, output) in enumerate(
            zip(*map(self.split, packed), strict=True)
        ):
            before = memory[: len(total)]
            if h is not None:
                h = h[: len(total)]
                if self.between is not None:
                    self.between.forward(step, total, h)
                self.product.forward(step, h, (total,))
            if self.early is not None:
                self.early.forward(both, before)
            both.sigmoid_()
            if self.coupled:
                torch.lerp(candidate.tanh_(), before, keep, out=made)
            else:
                torch.mul(keep, before, out=made).addcmul_(write, candidate.tanh_())
            if self.late is not None:
                self.late.forward(show, made)
            torch.tanh(made if self.norm is None else self.norm.forward(step, made), out=squashed)
            torch.mul(show.sigmoid_(), squashed, out=read)
            if self.extras.projection is not None:
                torch.mm(read, self.extras.projection.t(), out=output)
            if self.zones is not None and h is not None:
                output.copy_(self.zones[0].mix(step, output.to(self.work), h.to(self.work)))
                kept.copy_(self.zones[1].mix(step, made, before))
            h, memory = output, kept

    def loops_of(self, told: Told, threads: int, total: Room) -> Loops:
        from unrolled.layers.kernels.loops.lstm import LSTMLoops

        return LSTMLoops(self.rows, [told], threads, total, coupled=self.coupled)

    def _put_together(self) -> None:
        """The parts that this call has."""
        n, extras, looks = self.size, self.extras, self.gates - 2
        self.product = Product(self, slice(None), (self.gates * n,))
        self.early: Peephole | None = None
        self.late: Peephole | None = None
        if extras.peephole is not None:
            kind, rows = (Diagonal, looks) if len(extras.peephole) == looks + 1 else (Full, looks * n)
            self.early, self.late = kind(self, extras.peephole[:rows]), kind(self, extras.peephole[rows:])
        self.norm = None if extras.memory_gain is None else Norm(self, extras.memory_gain, extras.memory_shift)
        self.zones = tuple(Zone(self, kept) for kept in self.noise.kept) or None

    def _slopes(self) -> tuple[Tensor, Tensor, Tensor]:
        """What dC is multiplied by for each gate but o [.., gates - 1, n], and what dy is for do and for dC."""
        *writes, keep, candidate, show = self.total.chunk(self.gates, 1)
        slopes = self.empty((self.gates - 1) * self.size, self.work)
        *of_writes, of_keep, of_candidate = slopes.chunk(self.gates - 1, 1)
        if self.coupled:
            sigmoid_slope(self.before - candidate, keep, of_keep)
            tanh_slope(1 - keep, candidate, of_candidate)
        else:
            sigmoid_slope(candidate, writes[0], of_writes[0])
            sigmoid_slope(self.before, keep, of_keep)
            tanh_slope(writes[0], candidate, of_candidate)
        of_show, through = torch.empty_like(self.squashed), torch.empty_like(self.squashed)
        sigmoid_slope(self.squashed, show, of_show)
        tanh_slope(show, self.squashed, through)
        return slopes.unflatten(1, (self.gates - 1, self.size)), of_show, through

    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        if self.compiled:
            return self.backward_compiled(grad_output, grad_ends)
        self.grad = self.empty(self.gates * self.size, self.weight.dtype)
        self.grad_output = None if self.extras.projection is None else self.empty(self.output_size, self.weight.dtype)
        ends = (grad_ends[0].contiguous(), grad_ends[1].contiguous())
        if self.launched:
            from unrolled.layers.kernels.launched import lstm as launched

            launched.backward(self, self.loop, grad_output.contiguous(), *ends)
        else:
            self._backward(grad_output, ends)
        return self.grad, ends

    def _backward(self, grad_output: Tensor, grad_ends: State) -> None:
        n, early = self.size, (self.gates - 2) * self.size
        self.before = self.shifted(self.memory, self.first_memory)
        slopes, of_show, through = self._slopes()
        others, last = self.grad[:, :-n].unflatten(1, (self.gates - 1, n)), self.grad[:, -n:]
        hidden, memory = grad_ends
        packed = (grad_output, self.total[:, early - n : early], slopes, of_show, through, others, last, self.grad)
        projections = None if self.grad_output is None else self.split(self.grad_output)
        for step, (wanted, given, keep, slope, shown, into, other, show, grad) in self.going_back(self.fresh, *packed):
            h, c = hidden[: len(given)], memory[: len(given)]
            h += given
            stays = None if self.zones is None else [z.part(step, x) for z, x in zip(self.zones, (h, c), strict=True)]
            y = h
            if self.extras.projection is not None and projections is not None:
                y = torch.mm(projections[step].copy_(h), self.extras.projection).to(self.work)
            torch.mul(y, shown, out=show)
            if self.norm is None:
                c.addcmul_(y, into)
            else:
                c += self.norm.backward(step, y * into)
            if self.late is not None:
                self.late.backward(show, c)
            torch.mul(c.unsqueeze(1), slope, out=other)
            c *= keep
            if self.early is not None:
                self.early.backward(grad[:, :early], c)
            if wanted:
                self.product.put(step, grad, h)
            if stays is not None:
                h += stays[0]
                c += stays[1]
            if self.between is not None:
                h += self.between.backward(step, grad)

    def factors(self) -> Factors:
        if self.compiled:
            return self.loops.factors(0)
        return self.product.factors(self.grad, self.shifted(self.output, self.first_hidden))

    def extra_gradients(self) -> Extras:
        if self.compiled:
            return self.loops.extra_gradients(0)
        peephole, shift, gain, projection, memory_gain = None, None, None, None, None
        if self.early is not None and self.late is not None:
            early = self.early.gradient(0, self.shifted(self.memory, self.first_memory))
            peephole = torch.cat((early, self.late.gradient((self.gates - 1) * self.size, self.made)))
        if self.norm is not None:
            gain = self.product.gain_gradient(self.counts[0] if self.fresh else 0)
            memory_gain, shift = self.norm.gradients(0)
        if self.grad_output is not None:
            projection = weight_gradient(((self.grad_output, self.read),))
        return Extras(gain, peephole, memory_gain, shift, projection)
