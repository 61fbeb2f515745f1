"""The LSTM's compiled loops, with each of its options: the equations are those of kernels/lstm.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from unrolled.layers.kernels.base import Extras
from unrolled.layers.kernels.compiled import lstm as loops
from unrolled.layers.kernels.compiled.arrays import array
from unrolled.layers.kernels.compiled.projection import sum_of_looks
from unrolled.layers.kernels.compiled.shares import Share
from unrolled.layers.kernels.gradients import Factors, weight_gradient
from unrolled.layers.kernels.loops.base import Job, Loops, Norms, Room, Told
from unrolled.layers.kernels.order import Rows


class LSTMLoops(Loops):
    """Rows of the weight: i, f, g, o, or with ``coupled`` f, g, o. State: (h, C)."""

    states = 2

    def __init__(
        self, rows: Rows, told: Sequence[Told], threads: int, total: Room | None = None, *, coupled: bool
    ) -> None:
        self.gates = self.columns = 3 if coupled else 4
        super().__init__(rows, told, threads, total)
        n, extras, self.coupled = self.size, told[0].extras, True if coupled else None
        self.made, self.squashed = self.room(n, self.work), self.room(n, self.work)
        self.memory = self.room(n, self.work) if told[0].noise.kept else self.made
        self.output = self.room(self.output_size, self.inner)
        self.read = self.output if extras.projection is None else self.room(n, self.inner)
        looks = 0 if extras.peephole is None else len(extras.peephole)
        self.diagonal, self.full = looks == self.gates - 1, looks > self.gates - 1
        if extras.hidden_gain is not None:
            gains, of_memory, shifts = (
                [cast(Tensor, getattr(one.extras, name)) for one in told]
                for name in ("hidden_gain", "memory_gain", "memory_shift")
            )
            product = Norms(self, gains, [None] * len(told), self.room(self.gates * n, self.work))
            self.norms = [product, Norms(self, of_memory, shifts, self.made)]
            self.of_product = self.room(self.gates * n, self.inner)
        self.memories = [self.first(direction, 1) for direction in range(len(told))]

    def weights(self, direction: int) -> Sequence[Tensor | None]:
        told, projection = self.told[direction], self.told[direction].extras.projection
        early, late = (None if part is None else self.turned(part) for part in self._peepholes(direction))
        return self.turned(told.weight), early, late, None if projection is None else projection.t()

    def forward(self, direction: int, weights: Sequence[Any]) -> list[Job]:
        told, laid = self.told[direction], loops.Weights(*weights)
        packed, hidden = self._packed(direction), array(self.first_operand(direction))

        def tell(share: Share) -> tuple[Any, ...]:
            state = share.of(hidden), share.of(self.memories[direction])
            return share.steps(self.fresh), laid, *state, packed, self._options(direction, share), told.outside

        return self.jobs(loops.forward, tell)

    def packed_state(self, number: int) -> Room:
        return (self.output, self.memory)[number]

    def begin_back(self) -> None:
        super().begin_back()
        if self.read is not self.output:
            self.of_output = self.room(self.output_size, self.inner)

    def weights_back(self, direction: int) -> Sequence[Tensor | None]:
        told = self.told[direction]
        return told.weight, *self._peepholes(direction), told.extras.projection

    def backward(self, direction: int, weights: Sequence[Any], wanted: Any, ends: Sequence[Any]) -> list[Job]:
        told, laid = self.told[direction], loops.Weights(*weights)
        projected = None if told.extras.projection is None else self.of_output.array[direction]
        packed, memory, grad = self._packed(direction), self.memories[direction], self.grad.array[direction]

        def tell(share: Share) -> tuple[Any, ...]:
            grads = loops.Gradients(grad, projected, *map(share.of, ends))
            steps, options = share.steps(self.fresh), self._options(direction, share)
            return steps, laid, share.of(memory), packed, wanted, grads, options, told.outside

        return self.jobs(loops.backward, tell)

    def _packed(self, direction: int) -> loops.Packed:
        buffers = self.total, self.made, self.squashed, self.memory, self.read, self.output
        return loops.Packed(*[buffer.array[direction] for buffer in buffers])

    def _peepholes(self, direction: int) -> tuple[Tensor | None, Tensor | None]:
        """The full ones, of the gates that see the old memory and of the one that sees the new."""
        peephole = self.told[direction].extras.peephole
        if peephole is None or not self.full:
            return None, None
        rows = (self.gates - 2) * self.size
        return peephole[:rows], peephole[rows:]

    def _options(self, direction: int, share: Share) -> loops.Options:
        """What the loops are told of the cell's options."""
        norm = memory_norm = diagonal = None
        if self.norms:
            norm = self.norms[0].told(direction, share, self.of_product)
            memory_norm = self.norms[1].told(direction, share, self.made)
        if self.diagonal:
            diagonal = cast(Tensor, self.told[direction].extras.peephole).detach().numpy()
        kept = self.kept(direction, 0), self.kept(direction, 1)
        return loops.Options(self.coupled, diagonal, share.of(self.seen(direction)), norm, memory_norm, *kept)

    def factors(self, direction: int) -> Factors:
        grad, given = self.product().tensor[direction], self.shifted(self.output, direction)
        return ((grad[self.places - len(given) :], self.dropped(direction, given)),)

    def extra_gradients(self, direction: int) -> Extras:
        extras, gain, memory_gain, shift, projection = self.told[direction].extras, None, None, None, None
        if self.norms:
            gain, _ = self.norms[0].gradients(direction)
            memory_gain, shift = self.norms[1].gradients(direction)
        if extras.projection is not None:
            projection = weight_gradient(((self.of_output.tensor[direction], self.read.tensor[direction]),))
        peephole = None if extras.peephole is None else self._peephole_gradient(direction, extras.peephole)
        return Extras(gain, peephole, memory_gain, shift, projection)

    def _peephole_gradient(self, direction: int, peephole: Tensor) -> Tensor:
        n, grad, made = self.size, self.grad.tensor[direction], self.made.tensor[direction]
        later = self.memory.tensor[direction].index_select(0, self.rows.before)
        before, early = torch.cat((torch.from_numpy(self.memories[direction]), later)), (self.gates - 2) * n
        if self.full:
            looks = (grad[:, :early], before), (grad[:, -n:], made)
            return torch.cat([weight_gradient(((part, self.operand(memory)),)) for part, memory in looks])
        found = torch.empty_like(peephole, dtype=self.work)
        sum_of_looks(array(grad), 0, array(before), array(found[:-1]))
        sum_of_looks(array(grad), early + n, array(made), array(found[-1:]))
        return found
