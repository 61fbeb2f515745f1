"""What the kernels in Triton share: products of some rows with a weight, and the shape of a launch.

Annotations of what a kernel is given would be looked up by Triton's compiler, which knows but its own; so there are
none. All offsets are in numbers, and 64 bits wide where they count rows of a packed tensor.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, WIDE, DEEP = 16, 32, 32
"""Rows of a program, units of the state that it works on at a time, and inner numbers of a product at a time."""


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def take(at, here):
    """The numbers there, as float32; where there are none, zeros."""
    return tl.load(at, mask=here, other=0.0).to(tl.float32)


@triton.jit
def tile(column, n, real, WIDE: tl.constexpr):
    """Units of the state from a column on, whether there are such, and where in [rows, units] there are numbers."""
    units = column + tl.arange(0, WIDE)
    within = units < n
    return units, within, real[:, None] & within[None, :]


@triton.jit
def add_product(
    total, x, first, width, rows, real, weight, of_unit, of_inner, inner, units, within, seen, DEEP: tl.constexpr
):
    """total [rows, units] + (x * seen) · w.

    x's row r stands at x + (first + r) · width, w[k, u] at weight + u · of_unit + k · of_inner for k below ``inner``;
    ``seen`` [batch, inner] may be None.
    """
    for k in range(0, inner, DEEP):
        depth = k + tl.arange(0, DEEP)
        some = depth < inner
        here = real[:, None] & some[None, :]
        given = tl.load(x + (first + rows)[:, None] * width + depth[None, :], mask=here, other=0.0)
        if seen is not None:
            given = (given * take(seen + rows[:, None] * inner + depth[None, :], here)).to(weight.dtype.element_ty)
        at = weight + units[None, :] * of_unit + depth[:, None] * of_inner
        part = tl.load(at, mask=some[:, None] & within[None, :], other=0.0)
        total = tl.dot(given, part, total, input_precision="ieee")
    return total


@triton.jit
def hear(at, here, x, first, n, rows, real, weight, units, within, seen, DEEP: tl.constexpr):
    """A gate's total: what stands there, and U (h * seen), of rows of U [n, n] from ``weight`` on."""
    return add_product(take(at, here), x, first, n, rows, real, weight, n, 1, n, units, within, seen, DEEP)


@triton.jit
def heard_back(
    grad, first, width, inner, rows, real, weight, n, units, within, here, seen,
    ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """(dx · U) * seen for some units, of ``inner`` columns dx of rows ``width`` long of the packed gradient."""
    heard = tl.zeros((ROWS, WIDE), tl.float32)
    heard = add_product(heard, grad, first, width, rows, real, weight, 1, n, inner, units, within, None, DEEP)
    if seen is not None:
        heard *= take(seen + rows[:, None] * n + units[None, :], here)
    return heard


@triton.jit
def hear_back(
    carried, grad, first, width, inner, begin, count, weight, n, seen,
    ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """carried [batch, n] += `heard_back`, of all units."""
    rows = begin + tl.arange(0, ROWS)
    real = rows < count
    for column in range(0, n, WIDE):
        units, within, here = tile(column, n, real, WIDE)
        heard = heard_back(
            grad, first, width, inner, rows, real, weight, n, units, within, here, seen, ROWS, WIDE, DEEP
        )  # fmt: skip
        state = carried + rows[:, None] * n + units[None, :]
        tl.store(state, heard + take(state, here), mask=here)


class Steps(NamedTuple):
    """Of a call, on the device: rows of each step, where they begin in a packed buffer, and where those before them do.

    The last is in a buffer that has the first state's rows in front.
    """

    counts: Tensor
    starts: Tensor
    before: Tensor
    number: int
    batch: int

    @staticmethod
    def of(counts: list[int], device: torch.device) -> Steps:
        rows = torch.tensor(counts)
        starts = rows.cumsum(0) - rows
        before = torch.cat((torch.zeros(1, dtype=torch.int64), starts[:-1] + counts[0]))
        return Steps(rows.to(device), starts.to(device), before.to(device), len(counts), counts[0])

    @property
    def grid(self) -> tuple[int]:
        """The programs of a launch."""
        return (-(-self.batch // ROWS),)


class Loop(NamedTuple):
    """What the way back needs of the way forward beside the kernel's own buffers."""

    steps: Steps
    state: Tensor  # that of the cell itself at all steps, h or C, with the first one's rows in front


def after(first: Tensor | None, packed: Tensor, batch: int) -> Tensor:
    """A buffer like ``packed`` with the rows of the ``first`` state in front: zeros where there is none."""
    buffer = packed.new_empty(batch + len(packed), packed.shape[1])
    if first is None:
        buffer[:batch] = 0
    else:
        buffer[:batch] = first
    return buffer
