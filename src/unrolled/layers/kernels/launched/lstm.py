"""The LSTM's loop in Triton: coupled or not, diagonal peepholes, zoneout, recurrent dropout. See kernels/lstm.py."""

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
    take,
    tanh,
    tile,
)

if TYPE_CHECKING:
    from unrolled.layers.kernels.lstm import LSTMKernel


@triton.jit
def _forward(
    total, weight, made, squashed, memory, output, diagonal, seen, kept_hidden, kept_memory,
    counts, starts, before, number, batch, n,
    GATES: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """All steps of some rows: ``total`` becomes the gates i, f, g, o, or of a coupled cell f, g, o.

    ``memory`` and ``output`` have the first state's rows in front.
    """
    begin = tl.program_id(0) * ROWS
    rows = begin + tl.arange(0, ROWS)
    o, g, f = (GATES - 1) * n, (GATES - 2) * n, (GATES - 3) * n  # the gates' first columns; that of i is 0
    for step in range(number):
        count, start, past = tl.load(counts + step), tl.load(starts + step), tl.load(before + step)
        if begin < count:
            real = rows < count
            for column in range(0, n, WIDE):
                units, within, here = tile(column, n, real, WIDE)
                gate = total + (start + rows)[:, None] * (GATES * n) + units[None, :]
                own = (start + rows)[:, None] * n + units[None, :]
                place = (past + rows)[:, None] * n + units[None, :]
                keep = hear(gate + f, here, output, past, n, rows, real, weight + f * n, units, within, seen, DEEP)
                candidate = hear(gate + g, here, output, past, n, rows, real, weight + g * n, units, within, seen, DEEP)
                show = hear(gate + o, here, output, past, n, rows, real, weight + o * n, units, within, seen, DEEP)
                old = take(memory + place, here)
                if diagonal is not None:
                    keep += take(diagonal + f + units, within)[None, :] * old
                keep, candidate = tl.sigmoid(keep), tanh(candidate)
                if GATES == 3:
                    new = candidate + keep * (old - candidate)
                else:
                    write = hear(gate, here, output, past, n, rows, real, weight, units, within, seen, DEEP)
                    if diagonal is not None:
                        write += take(diagonal + units, within)[None, :] * old
                    write = tl.sigmoid(write)
                    tl.store(gate, write, mask=here)
                    new = keep * old + write * candidate
                if diagonal is not None:
                    show += take(diagonal + g + units, within)[None, :] * new
                show, level = tl.sigmoid(show), tanh(new)
                h = show * level
                tl.store(gate + f, keep, mask=here)
                tl.store(gate + g, candidate, mask=here)
                tl.store(gate + o, show, mask=here)
                tl.store(squashed + own, level, mask=here)
                tl.store(made + own, new, mask=here)
                if kept_hidden is not None:
                    h += take(kept_hidden + own, here) * (take(output + place, here) - h)
                    new += take(kept_memory + own, here) * (old - new)
                tl.store(memory + batch * n + own, new, mask=here)
                tl.store(output + batch * n + own, h.to(output.dtype.element_ty), mask=here)
        tl.debug_barrier()  # what the next step reads others of this program have written


@triton.jit
def _backward(
    total, weight, squashed, memory, grad_output, grad, hidden, carried, diagonal, seen, kept_hidden, kept_memory,
    counts, starts, before, number, n,
    GATES: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    """From the last step to the first; ``hidden`` and ``carried`` [batch, n] are the gradients of h and C."""
    begin = tl.program_id(0) * ROWS
    for turned in range(number):
        step = number - 1 - turned
        count, start, past = tl.load(counts + step), tl.load(starts + step), tl.load(before + step)
        if begin < count:
            _step_back(
                total, squashed, memory, grad_output, grad, hidden, carried, diagonal, kept_hidden, kept_memory,
                begin, count, start, past, n, GATES, ROWS, WIDE,
            )  # fmt: skip
        tl.debug_barrier()
        if begin < count:
            hear_back(
                hidden, grad, start, GATES * n, GATES * n, begin, count, weight, n, seen, ROWS, WIDE, DEEP
            )  # fmt: skip
        tl.debug_barrier()


@triton.jit
def _step_back(
    total, squashed, memory, grad_output, grad, hidden, carried, diagonal, kept_hidden, kept_memory,
    begin, count, start, past, n, GATES: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The gates' gradients and that of C before the step; ``hidden`` keeps what goes straight to the h before."""
    rows = begin + tl.arange(0, ROWS)
    real = rows < count
    o, g, f = (GATES - 1) * n, (GATES - 2) * n, (GATES - 3) * n
    kind = grad.dtype.element_ty
    for column in range(0, n, WIDE):
        units, within, here = tile(column, n, real, WIDE)
        gate = (start + rows)[:, None] * (GATES * n) + units[None, :]
        own = (start + rows)[:, None] * n + units[None, :]
        state = rows[:, None] * n + units[None, :]
        keep, candidate = take(total + gate + f, here), take(total + gate + g, here)
        show, level = take(total + gate + o, here), take(squashed + own, here)
        old = take(memory + (past + rows)[:, None] * n + units[None, :], here)
        h, c = take(hidden + state, here) + take(grad_output + own, here), take(carried + state, here)
        h_stays, c_stays = tl.zeros((ROWS, WIDE), tl.float32), tl.zeros((ROWS, WIDE), tl.float32)
        if kept_hidden is not None:
            h_stays, c_stays = h * take(kept_hidden + own, here), c * take(kept_memory + own, here)
            h, c = h - h_stays, c - c_stays
        of_show = h * level * show * (1 - show)
        c += h * show * (1 - level * level)
        if diagonal is not None:
            c += take(diagonal + g + units, within)[None, :] * of_show
        if GATES == 3:
            of_keep = c * (old - candidate) * keep * (1 - keep)
            of_candidate = c * (1 - keep) * (1 - candidate * candidate)
            c = c * keep
        else:
            write = take(total + gate, here)
            of_write = c * candidate * write * (1 - write)
            of_keep = c * old * keep * (1 - keep)
            of_candidate = c * write * (1 - candidate * candidate)
            c = c * keep
            tl.store(grad + gate, of_write.to(kind), mask=here)
            if diagonal is not None:
                c += take(diagonal + units, within)[None, :] * of_write
        if diagonal is not None:
            c += take(diagonal + f + units, within)[None, :] * of_keep
        tl.store(grad + gate + f, of_keep.to(kind), mask=here)
        tl.store(grad + gate + g, of_candidate.to(kind), mask=here)
        tl.store(grad + gate + o, of_show.to(kind), mask=here)
        tl.store(hidden + state, h_stays, mask=here)
        tl.store(carried + state, c + c_stays, mask=here)


def forward(kernel: LSTMKernel) -> Loop:
    """Fill the kernel's buffers."""
    steps = Steps.of(kernel.counts, kernel.weight.device)
    hidden = after(kernel.first_hidden, kernel.output, steps.batch)
    memory = after(kernel.first_memory, kernel.memory, steps.batch)
    kernel.output, kernel.memory = hidden[steps.batch :], memory[steps.batch :]
    _forward[steps.grid](
        kernel.total, kernel.weight, kernel.made, kernel.squashed, memory, hidden, *_options(kernel),
        steps.counts, steps.starts, steps.before, steps.number, steps.batch, kernel.size,
        kernel.gates, ROWS, WIDE, DEEP,
    )  # fmt: skip
    return Loop(steps, memory)


def backward(kernel: LSTMKernel, loop: Loop, grad_output: Tensor, hidden: Tensor, memory: Tensor) -> None:
    """Fill ``kernel.grad``; the gradients of the last state become those of the first."""
    steps = loop.steps
    _backward[steps.grid](
        kernel.total, kernel.weight, kernel.squashed, loop.state, grad_output, kernel.grad, hidden, memory,
        *_options(kernel), steps.counts, steps.starts, steps.before, steps.number, kernel.size,
        kernel.gates, ROWS, WIDE, DEEP,
    )  # fmt: skip


def _options(kernel: LSTMKernel) -> tuple[Tensor | None, ...]:
    """Diagonal peepholes, recurrent dropout, and zoneout of h and C."""
    seen, peephole = kernel.noise.seen, kernel.extras.peephole
    return (
        None if peephole is None else peephole.contiguous(),
        None if seen is None else kernel.operand(seen).to(torch.float32).contiguous(),
        *([part.contiguous() for part in kernel.noise.kept] or (None, None)),
    )
