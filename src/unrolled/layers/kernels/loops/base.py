"""What the compiled loops of every cell share: buffers for all directions of a layer, and the rows of each thread."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.layers.cells.base import Noise
from unrolled.layers.cells.checks import State
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.base import NO_EXTRAS, Extras, turned
from unrolled.layers.kernels.compiled.arrays import array
from unrolled.layers.kernels.compiled.derive import Heard, Made
from unrolled.layers.kernels.compiled.norms import Normed
from unrolled.layers.kernels.compiled.rows import Outside
from unrolled.layers.kernels.compiled.shares import Share, shares
from unrolled.layers.kernels.gradients import Factors
from unrolled.layers.kernels.order import Rows


class Job(NamedTuple):
    """A loop over the steps of some rows."""

    loop: Callable[..., None]
    steps: int
    told: tuple[Any, ...]

    def do(self, begin: int, end: int) -> None:
        self.loop(begin, min(end, self.steps), *self.told)

    def __call__(self) -> None:
        self.do(0, self.steps)


class Told(NamedTuple):
    """What the loop of one direction is told."""

    weight: Tensor  # the hidden one [gates * hidden, output], in the type of the products
    bias: Tensor | None  # what is added to its product, in the type of sums
    extras: Extras
    noise: Noise
    state: State | None  # in the type of sums; None is zeros
    outside: Outside | None = None


class Room(NamedTuple):
    """Rows of each direction, [directions, rows, width], as torch has them and as compiled loops do."""

    tensor: Tensor
    array: Any


def room(directions: int, rows: int, width: int, dtype: torch.dtype) -> Room:
    """To be filled."""
    return room_over(torch.empty(directions, rows, width, dtype=dtype, device="cpu"))


def room_over(tensor: Tensor) -> Room:
    """Over what is there, [directions, rows, width], side by side."""
    dtype = tensor.dtype
    return Room(tensor, (tensor.view(torch.uint16) if dtype is torch.bfloat16 else tensor).numpy())


class Loops(abc.ABC):
    """A cell's loops over packed steps, one for each direction of a layer, and their way back; an object serves a call.

    Before `forward`, ``total`` is to hold the projected inputs; they are overwritten. The work of a direction comes as
    jobs that may be done at once: each is of other rows.
    """

    gates: int
    """Number of gates: the hidden weight's rows are gates * hidden."""

    columns: int
    """Blocks of ``hidden`` columns in ``grad``."""

    states: int = 1
    """Tensors of the state."""

    output: Room
    """What each step makes, in the type of products."""

    of_product: Room
    """The gradient of the hidden product, where that is normalised."""

    grad: Room
    """After `begin_back`: the gradient, in the type of products, of what is in the loop; see `of_total`."""

    def __init__(self, rows: Rows, told: Sequence[Told], threads: int, total: Room | None = None) -> None:
        """``threads`` share the rows of a direction; ``total``: where the projected inputs are, if they are there."""
        weight = told[0].weight
        self.rows, self.told = rows, told
        self.places, self.batch, self.steps = rows.size, int(rows.counts[0]), len(rows.counts)
        self.size, self.output_size = weight.shape[0] // self.gates, weight.shape[1]
        self.inner, self.work = weight.dtype, torch.promote_types(weight.dtype, torch.float32)
        self.reduced, self.fresh = self.inner is not self.work, told[0].state is None
        self.shares: list[Share] = shares(rows, threads, compiled.side_of_tiles(weight) if threads > 1 else 1)
        self.norms: list[Norms] = []
        self.total = self.room(self.gates * self.size, self.work) if total is None else total

    def room(self, width: int, dtype: torch.dtype) -> Room:
        return room(len(self.told), self.places, width, dtype)

    def empty(self, *shape: int) -> Tensor:
        """To be filled, in the type of sums."""
        return torch.empty(shape, dtype=self.work, device="cpu")

    @abc.abstractmethod
    def weights(self, direction: int) -> Sequence[Tensor | None]:
        """What `forward` multiplies with, [inner, width] each; None for what a cell has not."""

    @abc.abstractmethod
    def forward(self, direction: int, weights: Sequence[Any]) -> list[Job]:
        """What fills ``output``, and the buffers of the way back; `weights` as compiled loops have them."""

    @abc.abstractmethod
    def packed_state(self, number: int) -> Room:
        """After `forward`: a tensor of the state, packed."""

    def begin_back(self) -> None:
        """Before `backward` of any direction: nothing has been added up."""
        for norm in self.norms:
            norm.sums[:] = 0
        self.grad = self.room(self.columns * self.size, self.inner)

    @abc.abstractmethod
    def weights_back(self, direction: int) -> Sequence[Tensor | None]:
        """What `backward` multiplies with."""

    @abc.abstractmethod
    def backward(self, direction: int, weights: Sequence[Any], wanted: Any, ends: Sequence[Any]) -> list[Job]:
        """What fills ``grad``, from the outputs' gradient and that of the last state, which becomes the first's."""

    @abc.abstractmethod
    def factors(self, direction: int) -> Factors:
        """After `backward`: what the hidden weight's gradient is the product of."""

    def extra_gradients(self, direction: int) -> Extras:  # noqa: ARG002
        """After `backward`: the gradients of the extras that were given, in the type of sums."""
        return NO_EXTRAS

    def of_total(self, direction: int) -> Tensor:
        """After `backward`: the gradient of the projected input."""
        return self.grad.tensor[direction]

    def product(self) -> Room:
        """After `backward`: the gradient of the hidden product, in the first columns."""
        return self.of_product if self.norms else self.grad

    def left(self, direction: int, rows: Tensor) -> Made:
        """After `backward`: what the gradients of weights are made of; ``rows`` came in."""
        grad, product, output = (one.array[direction] for one in (self.grad, self.product(), self.output))
        return Made(array(rows), grad, product, output, None, None)

    def heard(self, direction: int) -> Heard:
        """What the hidden product saw."""
        rows = self.rows
        return Heard(array(self.first_operand(direction)), rows.before_places, rows.each_place, self.seen(direction))

    def jobs(self, loop: Callable[..., None], told: Callable[[Share], tuple[Any, ...]]) -> list[Job]:
        """A loop over all steps of each share, and what it is ``told`` beside the first step and the last one's end."""
        return [Job(loop, len(share.counts), told(share)) for share in self.shares]

    def turned(self, weight: Tensor) -> Tensor:
        """The weight for h·Wᵀ."""
        laid = compiled.laying_out_pays(weight.t().shape, weight.dtype, self.steps)
        return weight.t() if laid else turned(weight, self.steps)

    def first(self, direction: int, number: int) -> Any:
        """A tensor of the state before the first step, in the type of sums."""
        state = self.told[direction].state
        if state is None:
            return np.zeros((self.batch, (self.output_size, self.size)[number]), self.total.array.dtype)
        return state[number].detach().contiguous().numpy()

    def operand(self, tensor: Tensor) -> Tensor:
        """In the type of products."""
        return tensor.detach().to(self.inner).contiguous()

    def first_operand(self, direction: int) -> Tensor:
        """h before the first step as products see it; of no rows where none does."""
        state = self.told[direction].state
        if state is None:
            return self.told[direction].weight.new_empty(0, self.output_size)
        return self.operand(state[0])

    def shifted(self, packed: Room, direction: int) -> Tensor:
        """The h that the products of each step saw, from all ``packed``; without the first step where it saw none."""
        later = packed.tensor[direction].index_select(0, self.rows.before)
        return later if self.fresh else torch.cat((self.first_operand(direction), later))

    def seen(self, direction: int) -> Any:
        """The recurrent dropout, as products see it, or None."""
        seen = self.told[direction].noise.seen
        return None if seen is None else seen.to(self.inner).to(self.work).numpy()

    def kept(self, direction: int, number: int) -> Any:
        """The zoneout of a tensor of the state, or None."""
        kept = self.told[direction].noise.kept
        return kept[number].contiguous().numpy() if kept else None

    def dropped(self, direction: int, given: Tensor) -> Tensor:
        """``given``, what products had of the state, as they saw it: with recurrent dropout."""
        seen = self.told[direction].noise.seen
        if seen is None:
            return given
        return given * seen.to(self.inner).index_select(0, self.rows.each)[self.places - len(given) :]


class Norms:
    """A layer normalisation in the loops of each direction: its buffers, and for each share its gradients' sums."""

    def __init__(self, loops: Loops, gains: Sequence[Tensor], shifts: Sequence[Tensor | None], given: Room) -> None:
        """``given``: where what is normalised will be, packed."""
        width = len(gains[0])
        self.gains = [gain.detach().numpy() for gain in gains]
        self.shifts = [None if shift is None else shift.detach().numpy() for shift in shifts]
        self.given, self.mean, self.spread = given.array, *(loops.room(1, loops.work).array for _ in range(2))
        self.sums = np.empty((len(gains), len(loops.shares), 2, width), self.given.dtype)

    def told(self, direction: int, share: Share, grad: Room, at: int = 0) -> Normed:
        """``grad`` takes, from column ``at``, the gradient of what is normalised."""
        own = self.given[direction], self.mean[direction], self.spread[direction], grad.array[direction]
        of_gain, of_shift = self.sums[direction, share.number]
        return Normed(self.gains[direction], self.shifts[direction], *own, at, of_gain, of_shift)

    def gradients(self, direction: int) -> tuple[Tensor, Tensor]:
        """Of gain and shift."""
        of_gain, of_shift = torch.from_numpy(self.sums[direction].sum(0))
        return of_gain, of_shift
