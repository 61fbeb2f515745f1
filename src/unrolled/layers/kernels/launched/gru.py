"""The GRU's loop in Triton, for either place of the reset gate, zoneout, recurrent dropout. See kernels/gru.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

from unrolled.layers.kernels.launched.parts import (
    DEEP,
    ROWS,
    WIDE,
    Loop,
    Steps,
    after,
    hear,
    hear_back,
    heard_back,
    take,
    tanh,
    tile,
)

if TYPE_CHECKING:
    from unrolled.layers.kernels.gru import GRUKernel


@triton.jit
def _forward(
    total, weight, past, hidden, output, seen, kept, counts, starts, before, number, batch, n,
    AFTER: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """All steps of some rows: ``total`` becomes z, r, n; ``past`` r * h, or with ``AFTER`` U h + b, where b is already.

    ``hidden`` and ``output``, the same in the type of products, have the first state's rows in front.
    """
    begin = tl.program_id(0) * ROWS
    for step in range(number):
        count, start, place = tl.load(counts + step), tl.load(starts + step), tl.load(before + step)
        if begin < count:
            _open(
                total, weight, past, hidden, output, seen, begin, count, start, place, n, AFTER, ROWS, WIDE, DEEP
            )  # fmt: skip
        tl.debug_barrier()  # what is read next others of this program have written
        if begin < count:
            _update(
                total, weight, past, hidden, output, seen, kept, begin, count, start, place, batch, n,
                AFTER, ROWS, WIDE, DEEP,
            )  # fmt: skip
        tl.debug_barrier()


@triton.jit
def _open(
    total, weight, past, hidden, output, seen, begin, count, start, place, n,
    AFTER: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """The gates z and r, and what of the old state the candidate sees."""
    rows = begin + tl.arange(0, ROWS)
    real = rows < count
    for column in range(0, n, WIDE):
        units, within, here = tile(column, n, real, WIDE)
        gate = total + (start + rows)[:, None] * (3 * n) + units[None, :]
        own = past + (start + rows)[:, None] * n + units[None, :]
        update = hear(gate, here, output, place, n, rows, real, weight, units, within, seen, DEEP)
        reset = hear(gate + n, here, output, place, n, rows, real, weight + n * n, units, within, seen, DEEP)
        reset = tl.sigmoid(reset)
        tl.store(gate, tl.sigmoid(update), mask=here)
        tl.store(gate + n, reset, mask=here)
        if AFTER:
            inner = hear(own, here, output, place, n, rows, real, weight + 2 * n * n, units, within, seen, DEEP)
        else:
            inner = reset * take(hidden + (place + rows)[:, None] * n + units[None, :], here)
        tl.store(own, inner.to(past.dtype.element_ty), mask=here)


@triton.jit
def _update(
    total, weight, past, hidden, output, seen, kept, begin, count, start, place, batch, n,
    AFTER: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """The candidate and the new state."""
    rows = begin + tl.arange(0, ROWS)
    real = rows < count
    for column in range(0, n, WIDE):
        units, within, here = tile(column, n, real, WIDE)
        gate = total + (start + rows)[:, None] * (3 * n) + units[None, :]
        own = (start + rows)[:, None] * n + units[None, :]
        if AFTER:
            candidate = take(gate + 2 * n, here) + take(gate + n, here) * take(past + own, here)
        else:
            of = weight + 2 * n * n
            candidate = hear(gate + 2 * n, here, past, start, n, rows, real, of, units, within, seen, DEEP)
        candidate = tanh(candidate)
        old = take(hidden + (place + rows)[:, None] * n + units[None, :], here)
        new = old + take(gate, here) * (candidate - old)
        if kept is not None:
            new += take(kept + own, here) * (old - new)
        tl.store(gate + 2 * n, candidate, mask=here)
        tl.store(hidden + batch * n + own, new, mask=here)
        tl.store(output + batch * n + own, new.to(output.dtype.element_ty), mask=here)


@triton.jit
def _backward(
    total, weight, past, hidden, grad_output, grad, carried, seen, kept, counts, starts, before, number, n,
    AFTER: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """From the last step to the first; ``carried`` [batch, n] is the gradient of h.

    Columns of ``grad`` are dz, dr, dn, or with ``AFTER`` dz, dr, dp, dn.
    """
    COLUMNS: tl.constexpr = 4 if AFTER else 3
    begin = tl.program_id(0) * ROWS
    for turned in range(number):
        step = number - 1 - turned
        count, start, place = tl.load(counts + step), tl.load(starts + step), tl.load(before + step)
        if begin < count:
            _update_back(
                total, past, hidden, grad_output, grad, carried, kept, begin, count, start, place, n,
                AFTER, COLUMNS, ROWS, WIDE,
            )  # fmt: skip
        tl.debug_barrier()
        if not AFTER:
            if begin < count:
                _reset_back(
                    total, weight, hidden, grad, carried, seen, begin, count, start, place, n, ROWS, WIDE, DEEP
                )  # fmt: skip
            tl.debug_barrier()
        if begin < count:
            inner = 3 * n if AFTER else 2 * n
            hear_back(
                carried, grad, start, COLUMNS * n, inner, begin, count, weight, n, seen, ROWS, WIDE, DEEP
            )  # fmt: skip
        tl.debug_barrier()


@triton.jit
def _update_back(
    total, past, hidden, grad_output, grad, carried, kept, begin, count, start, place, n,
    AFTER: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dz, dn, with ``AFTER`` dr and dp too; and dh ← dh (1 - z)."""
    rows = begin + tl.arange(0, ROWS)
    real = rows < count
    kind = grad.dtype.element_ty
    for column in range(0, n, WIDE):
        units, _, here = tile(column, n, real, WIDE)
        gate = total + (start + rows)[:, None] * (3 * n) + units[None, :]
        to = grad + (start + rows)[:, None] * (COLUMNS * n) + units[None, :]
        own = (start + rows)[:, None] * n + units[None, :]
        state = carried + rows[:, None] * n + units[None, :]
        update, candidate = take(gate, here), take(gate + 2 * n, here)
        old = take(hidden + (place + rows)[:, None] * n + units[None, :], here)
        h = take(state, here) + take(grad_output + own, here)
        stays = tl.zeros((ROWS, WIDE), tl.float32)
        if kept is not None:
            stays = h * take(kept + own, here)
            h = h - stays
        of_candidate = h * update * (1 - candidate * candidate)
        tl.store(to, (h * (candidate - old) * update * (1 - update)).to(kind), mask=here)
        if AFTER:
            reset, inner = take(gate + n, here), take(past + own, here)
            tl.store(to + n, (of_candidate * inner * reset * (1 - reset)).to(kind), mask=here)
            tl.store(to + 2 * n, (of_candidate * reset).to(kind), mask=here)
        tl.store(to + (COLUMNS - 1) * n, of_candidate.to(kind), mask=here)
        tl.store(state, h - h * update + stays, mask=here)


@triton.jit
def _reset_back(
    total, weight, hidden, grad, carried, seen, begin, count, start, place, n,
    ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """p = dn U_n, dr = p h σ'(r), and dh += p r."""
    rows = begin + tl.arange(0, ROWS)
    real = rows < count
    for column in range(0, n, WIDE):
        units, within, here = tile(column, n, real, WIDE)
        state = rows[:, None] * n + units[None, :]
        of, at = weight + 2 * n * n, grad + 2 * n
        p = heard_back(at, start, 3 * n, n, rows, real, of, n, units, within, here, seen, ROWS, WIDE, DEEP)
        reset = take(total + (start + rows)[:, None] * (3 * n) + n + units[None, :], here)
        old = take(hidden + (place + rows)[:, None] * n + units[None, :], here)
        to = grad + (start + rows)[:, None] * (3 * n) + n + units[None, :]
        tl.store(to, (p * old * reset * (1 - reset)).to(grad.dtype.element_ty), mask=here)
        tl.store(carried + state, take(carried + state, here) + p * reset, mask=here)


def forward(kernel: GRUKernel) -> Loop:
    """Fill the kernel's buffers."""
    steps = Steps.of(kernel.counts, kernel.weight.device)
    hidden = after(kernel.first, kernel.hidden, steps.batch)
    output = hidden
    if kernel.reduced:
        output = after(kernel.operand(kernel.first), kernel.empty(kernel.size, kernel.weight.dtype), steps.batch)
    kernel.hidden, kernel.output = hidden[steps.batch :], output[steps.batch :]
    _forward[steps.grid](
        kernel.total, kernel.weight, kernel.past, hidden, output, *_options(kernel),
        steps.counts, steps.starts, steps.before, steps.number, steps.batch, kernel.size,
        kernel.columns == 4, ROWS, WIDE, DEEP,
    )  # fmt: skip
    return Loop(steps, hidden)


def backward(kernel: GRUKernel, loop: Loop, grad_output: Tensor, hidden: Tensor) -> None:
    """Fill ``kernel.grad``; ``hidden``, the gradient of the last state, becomes that of the first."""
    steps = loop.steps
    _backward[steps.grid](
        kernel.total, kernel.weight, kernel.past, loop.state, grad_output, kernel.grad, hidden, *_options(kernel),
        steps.counts, steps.starts, steps.before, steps.number, kernel.size, kernel.columns == 4, ROWS, WIDE, DEEP,
    )  # fmt: skip


def _options(kernel: GRUKernel) -> tuple[Tensor | None, ...]:
    """Recurrent dropout and zoneout."""
    seen = kernel.noise.seen
    return (
        None if seen is None else kernel.operand(seen).to(torch.float32).contiguous(),
        kernel.noise.kept[0].contiguous() if kernel.noise.kept else None,
    )
