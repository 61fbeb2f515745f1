"""The gated recurrent unit's compiled loops: the equations are those of kernels/gru.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from unrolled.layers.kernels.base import Extras
from unrolled.layers.kernels.compiled import gru as loops
from unrolled.layers.kernels.compiled.arrays import array
from unrolled.layers.kernels.compiled.derive import Made
from unrolled.layers.kernels.compiled.shares import Share
from unrolled.layers.kernels.gradients import Factors
from unrolled.layers.kernels.loops.base import Job, Loops, Norms, Room, Told, room
from unrolled.layers.kernels.order import Rows


class GRULoops(Loops):
    """Rows of the weight: update, reset, candidate. State: (h,). With ``after`` the reset gate comes after the product.

    The columns of the gradient are dz, dr, dn, and with ``after`` dz, dr, dp, dn.
    """

    gates = 3

    def __init__(
        self, rows: Rows, told: Sequence[Told], threads: int, total: Room | None = None, *, after: bool
    ) -> None:
        super().__init__(rows, told, threads, total)
        n, self.after, self.columns = self.size, after, 4 if after else 3
        self.hidden = self.room(n, self.work)
        self.output = self.room(n, self.inner) if self.reduced else self.hidden
        self.past = self.room(n, self.work if after else self.inner)
        if told[0].extras.hidden_gain is not None:
            gains = [cast(Tensor, one.extras.hidden_gain) for one in told]
            self.of_product = self.room(3 * n, self.inner)
            for begin, end in ((0, 2 * n), (2 * n, 3 * n)):
                given = self.room(end - begin, self.work)
                self.norms.append(Norms(self, [gain[begin:end] for gain in gains], [None] * len(told), given))
        self.firsts = [self.first(direction, 0) for direction in range(len(told))]

    def weights(self, direction: int) -> Sequence[Tensor | None]:
        n, weight = self.size, self.told[direction].weight
        if not self.after:
            return self.turned(weight[: 2 * n]), self.turned(weight[2 * n :]), None
        turned = self.turned(weight)
        return turned[:, : 2 * n], turned[:, 2 * n :], None

    def forward(self, direction: int, weights: Sequence[Any]) -> list[Job]:
        told, laid, packed = self.told[direction], loops.Weights(*weights), self._packed(direction)
        if self.after:
            packed.past[:] = 0 if told.bias is None else told.bias.detach().numpy()[2 * self.size :]
        operand = array(self.first_operand(direction))

        def tell(share: Share) -> tuple[Any, ...]:
            states = share.of(self.firsts[direction]), share.of(operand)
            return share.steps(self.fresh), laid, *states, packed, self._options(direction, share), told.outside

        return self.jobs(loops.after if self.after else loops.before, tell)

    def packed_state(self, number: int) -> Room:  # noqa: ARG002
        return self.hidden

    def weights_back(self, direction: int) -> Sequence[Tensor | None]:
        n, weight = self.size, self.told[direction].weight
        return (None, None, weight) if self.after and not self.norms else (weight[: 2 * n], weight[2 * n :], None)

    def backward(self, direction: int, weights: Sequence[Any], wanted: Any, ends: Sequence[Any]) -> list[Job]:
        told, laid = self.told[direction], loops.Weights(*weights)
        packed, first, grad = self._packed(direction), self.firsts[direction], self.grad.array[direction]

        def tell(share: Share) -> tuple[Any, ...]:
            steps, options = share.steps(self.fresh), self._options(direction, share)
            return steps, laid, share.of(first), packed, wanted, share.of(ends[0]), grad, options, told.outside

        return self.jobs(loops.after_back if self.after else loops.before_back, tell)

    def _packed(self, direction: int) -> loops.Packed:
        output = self.output.array[direction] if self.reduced else None
        return loops.Packed(
            self.total.array[direction], self.past.array[direction], self.hidden.array[direction], output
        )

    def _options(self, direction: int, share: Share) -> loops.Options:
        """What the loops are told of the cell's options."""
        ask = recall = None
        if self.norms:
            ask = self.norms[0].told(direction, share, self.of_product)
            recall = self.norms[1].told(direction, share, self.of_product, 2 * self.size)
        return loops.Options(share.of(self.seen(direction)), ask, recall, self.kept(direction, 0))

    def left(self, direction: int, rows: Tensor) -> Made:
        made = super().left(direction, rows)
        if not self.after:
            return made._replace(past=self.past.array[direction])
        return made._replace(total=room(1, self.places, 3 * self.size, self.inner).array[0])

    def factors(self, direction: int) -> Factors:
        n, given = self.size, self.dropped(direction, self.shifted(self.output, direction))
        grad = self.product().tensor[direction][self.places - len(given) :]
        if self.after:
            return ((grad[:, : 3 * n], given),)
        past = self.dropped(direction, self.past.tensor[direction][self.places - len(given) :])
        return (grad[:, : 2 * n], given), (grad[:, 2 * n : 3 * n], past)

    def of_total(self, direction: int) -> Tensor:
        grad = self.grad.tensor[direction]
        return torch.cat((grad[:, : 2 * self.size], grad[:, 3 * self.size :]), 1) if self.after else grad

    def extra_gradients(self, direction: int) -> Extras:
        return Extras(torch.cat([norm.gradients(direction)[0] for norm in self.norms])) if self.norms else Extras()
