"""How a batch's real symbols lie packed: step after step, in each the rows still running, the longest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from unrolled.base.errors import UsageError
from unrolled.layers.kernels import compiled


class Rows:
    """Where the rows of packed steps lie: step t has the first ``counts[t]`` rows, from place ``starts[t]`` on.

    ``each_place``, ``before_places`` and ``last_places`` are what `each`, `before` and `last` are, as NumPy has them.
    """

    def __init__(
        self,
        counts: Sequence[int] | np.ndarray,
        device: torch.device,
        followed: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """``followed``: what `follow` finds of the counts, where it is known."""
        self.counts, self.device = np.asarray(counts, np.int64), device
        self.starts, self.each_place, self.before_places, self.last_places = followed or _followed(self.counts)
        self.size = len(self.each_place)

    @cached_property
    def each(self) -> Tensor:
        """Of each place its row."""
        return torch.from_numpy(self.each_place).to(self.device)

    @cached_property
    def before(self) -> Tensor:
        """Of each place but the first step's the same row's place before."""
        return torch.from_numpy(self.before_places).to(self.device)

    @cached_property
    def last(self) -> Tensor:
        """Of each row its last place."""
        return torch.from_numpy(self.last_places).to(self.device)


def _followed(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from unrolled.layers.kernels.compiled.order import follow

    size, rows = int(counts.sum()), int(counts[0])
    starts, last = np.empty_like(counts), np.empty(rows, np.int64)
    each, before = np.empty(size, np.int64), np.empty(size - rows, np.int64)
    follow(counts, starts, each, before, last)
    return starts, each, before, last


class Order:
    """The packed order of a batch [batch, time] whose real symbols come first in each row.

    ``counts[t]`` rows have a symbol at step t, so a packed tensor is [Σ counts, size] and the steps are
    ``packed.split(counts)``; ``size`` is the number of symbols. Rows are sorted by length, the longest first. Between
    `pack` and `unpack` there is no padding, so nothing can leak from it. ``fill`` is the share of real symbols in a
    block of [longest, batch]; ``even`` says that all rows are equally long. As whole numbers of NumPy, ``lengths`` are
    those of the rows as they came, and ``places`` of each packed symbol its position in the batch, the place from the
    row's other end, and the position of what is there.
    """

    def __init__(self, batch: int, time: int, lengths: Sequence[int] | np.ndarray, device: torch.device) -> None:
        from unrolled.layers.kernels.compiled.order import arrange

        self.batch, self.time, self.device = batch, time, device
        self.lengths = np.asarray(lengths, np.int64)
        found = self.lengths.tolist()  # Python is faster with a few numbers
        steps, self.size = max(found), sum(found)
        counts, starts = np.empty((2, steps), np.int64)
        self._moves = np.empty((3, batch), np.int64)
        each, before = np.empty(self.size, np.int64), np.empty(self.size - batch, np.int64)
        self.places = np.empty((4, self.size), np.int64)
        self._sorted: bool = arrange(self.lengths, time, counts, starts, self._moves, each, before, self.places)
        self.rows = Rows(counts, device, (starts, each, before, self._moves[2]))
        self.counts = counts.tolist()
        self.fill = self.size / (steps * batch)
        self.even = self.fill == 1.0

    @cached_property
    def turned(self) -> Tensor:
        """Of each place the one from the row's other end."""
        return torch.from_numpy(self.places[3]).to(self.device)

    @cached_property
    def _symbols(self) -> Tensor:
        return torch.from_numpy(self.places[0]).to(self.device)

    def pack(self, x: Tensor) -> Tensor:
        """[batch, time, size] → packed [Σ counts, size]."""
        return _take(x.reshape(self.batch * self.time, -1), self._symbols)

    def check_finite(self, packed: Tensor) -> None:
        """UsageError where a real position of ``packed`` holds a number that is not finite."""
        if math.isfinite(packed.detach().sum(dtype=torch.promote_types(packed.dtype, torch.float32)).item()):
            return
        found = (~packed.isfinite()).nonzero()
        if len(found):  # else only the sum ran over
            place, column = found[0].tolist()
            row, step = divmod(int(self._symbols[place]), self.time)
            raise UsageError(
                f"x of Recurrent holds {packed[place, column].item()} at row {row}, step {step}, which is a real "
                "position; its numbers must be finite. Look at what made them, e.g. the data or a weight."
            )

    def unpack(self, packed: Tensor) -> Tensor:
        """Packed → [batch, time, size], exactly 0 at padding."""
        return _put(packed, self._symbols, self.batch * self.time).view(self.batch, self.time, -1)

    def turn(self, packed: Tensor) -> Tensor:
        """Each row reversed within its true length; turning twice changes nothing."""
        return _Turn.apply(packed, self.turned)

    def spread(self, rows: Tensor) -> Tensor:
        """One vector for each sorted row [batch, size] → packed, the same at all steps of the row."""
        return rows.index_select(0, self.rows.each)

    def sort(self, rows: Tensor) -> Tensor:
        """Rows in the caller's order → the longest first."""
        return rows if self._sorted else rows.index_select(0, self._moved(0))

    def unsort(self, rows: Tensor) -> Tensor:
        """Rows with the longest first → the caller's order."""
        return rows if self._sorted else rows.index_select(0, self._moved(1))

    def _moved(self, way: int) -> Tensor:
        return torch.from_numpy(self._moves[way]).to(self.device)

    def last(self, packed: Tensor) -> Tensor:
        """Each sorted row's last step, [batch, size]."""
        return packed.index_select(0, self.rows.last)

    def pad(self, packed: Tensor) -> Tensor:
        """Packed → a block [steps, sorted rows, size], 0 at padding."""
        steps = len(self.counts)
        block = packed if self.even else _put(packed, self._block(), steps * self.batch)
        return block.view(steps, self.batch, -1)

    def unpad(self, block: Tensor) -> Tensor:
        """A block [steps, sorted rows, size] → packed."""
        rows = block.reshape(len(self.counts) * self.batch, -1)
        return rows if self.even else _take(rows, self._block())

    def padding(self) -> Tensor:
        """Where the block has padding, bool [steps, sorted rows]."""
        counts = torch.tensor(self.counts, device=self.rows.device)
        return torch.arange(self.batch, device=counts.device) >= counts.unsqueeze(1)

    def _block(self) -> Tensor:
        return (~self.padding()).flatten().nonzero().flatten()


def order_of(mask: Tensor | None, x: Tensor) -> Order:
    """The order of ``x`` [batch, time, …] under ``mask`` bool [batch, time]; None = all real.

    UsageError where the mask is not a prefix mask of x's shape, or a row has no real position.
    """
    batch, time = x.shape[:2]
    if mask is None:
        return Order(batch, time, [time] * batch, x.device)
    if not isinstance(mask, Tensor):
        raise UsageError(f"mask of Recurrent must be a tensor of torch.bool, not a {type(mask).__name__}.")
    if mask.dtype is not torch.bool or mask.shape != x.shape[:2]:
        raise UsageError(
            f"mask of Recurrent is {mask.dtype} {list(mask.shape)}; "
            f"it must be torch.bool {[batch, time]}, True = real, for this x."
        )
    from unrolled.layers.kernels.compiled.order import measure

    found = np.empty(batch, np.int64)
    if not measure(mask.cpu().contiguous().numpy(), found):
        row = next(row for row, length in enumerate(found) if length < 1)
        if found[row] == 0:
            raise UsageError(
                f"mask of Recurrent: row {row} has no real position; every row needs one. Leave empty rows out."
            )
        shown = "".join("01"[real] for real in mask[row, :40].int().tolist())
        raise UsageError(
            f"mask of Recurrent: row {row} is {shown}{'…' if time > 40 else ''} (1 = real); "
            "real positions must come first, padding last."
        )
    return Order(batch, time, found, x.device)


def _take(x: Tensor, index: Tensor) -> Tensor:
    """Rows of a matrix by distinct indices; a node of the graph only where there is a graph."""
    return _Take.apply(x, index) if x.requires_grad and torch.is_grad_enabled() else x.index_select(0, index)


def _put(x: Tensor, index: Tensor, rows: int) -> Tensor:
    """The inverse of `_take`: rows put at distinct indices of a matrix of zeros."""
    return _Place.apply(x, index, rows) if x.requires_grad and torch.is_grad_enabled() else _placed(x, index, rows)


MANY = 1 << 15
"""Numbers from which on rows are put at their places by compiled code: torch makes a call for each row."""


def _placed(x: Tensor, index: Tensor, rows: int) -> Tensor:
    """`_put` without a graph."""
    placed = x.new_empty(rows, x.shape[1]) if index.shape[0] == rows else x.new_zeros(rows, x.shape[1])
    if x.numel() >= MANY and compiled.possible(x) and x.is_contiguous():
        from unrolled.layers.kernels.compiled.arrays import array
        from unrolled.layers.kernels.compiled.packing import scatter

        scatter(array(x), array(index), array(placed), False)
        return placed
    return placed.index_copy_(0, index, x)


class _Take(Function):
    """`_take`, whose gradient is placed, not summed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.index, ctx.rows = index, x.shape[0]
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _put(grad, ctx.index, ctx.rows), None


class _Place(Function):
    """`_put`, whose gradient is taken."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, rows: int) -> Tensor:
        ctx.index = index
        return _placed(x, index, rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _take(grad, ctx.index), None, None


class _Turn(Function):
    """A permutation of rows that is its own inverse."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor) -> Tensor:
        ctx.index = index
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Turn.apply(grad, ctx.index), None
