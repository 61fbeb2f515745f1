"""The simple recurrent network's compiled loops: the equations are those of kernels/elman.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from unrolled.layers.kernels.compiled import elman as loops
from unrolled.layers.kernels.compiled.arrays import array
from unrolled.layers.kernels.compiled.shares import Share
from unrolled.layers.kernels.gradients import Factors
from unrolled.layers.kernels.loops.base import Job, Loops, Room, Told
from unrolled.layers.kernels.order import Rows


class ElmanLoops(Loops):
    """State: (h,)."""

    gates = columns = 1

    def __init__(
        self, rows: Rows, told: Sequence[Told], threads: int, total: Room | None = None, *, rectified: bool
    ) -> None:
        super().__init__(rows, told, threads, total)
        self.rectified = True if rectified else None
        self.output = self.room(self.size, self.inner) if self.reduced else self.total

    def weights(self, direction: int) -> Sequence[Tensor | None]:
        return (self.turned(self.told[direction].weight),)

    def forward(self, direction: int, weights: Sequence[Any]) -> list[Job]:
        told, total = self.told[direction], self.total.array[direction]
        (weight,), first = weights, array(self.first_operand(direction))
        output = self.output.array[direction] if self.reduced else None

        def tell(share: Share) -> tuple[Any, ...]:
            return share.steps(self.fresh), weight, share.of(first), total, output, self.rectified, told.outside

        return self.jobs(loops.forward, tell)

    def packed_state(self, number: int) -> Room:  # noqa: ARG002
        return self.total

    def weights_back(self, direction: int) -> Sequence[Tensor | None]:
        return (self.told[direction].weight,)

    def backward(self, direction: int, weights: Sequence[Any], wanted: Any, ends: Sequence[Any]) -> list[Job]:
        told, total, grad = self.told[direction], self.total.array[direction], self.grad.array[direction]
        (weight,) = weights

        def tell(share: Share) -> tuple[Any, ...]:
            own = share.of(ends[0])
            return share.steps(self.fresh), weight, total, wanted, own, grad, self.rectified, told.outside

        return self.jobs(loops.backward, tell)

    def factors(self, direction: int) -> Factors:
        given = self.shifted(self.output, direction)
        return ((self.grad.tensor[direction][self.places - len(given) :], self.dropped(direction, given)),)
