"""Products on a processor's vectors, with a weight that was laid out for them once.

A library's product lays out its weight in each call, which few rows do not pay for. Here sixteen columns of a weight
lie together, a panel, down all its rows, and each row of a panel is a vector:

    total[m, :] += x[m, k] panel[k, :]        k = 0 .. inner - 1, for up to six rows m and four panels at a time

(Goto & van de Geijn 2008, Anatomy of High-Performance Matrix Multiplication, section 4). The totals stay in registers.
Every sum is made in the order of k, so that what a row of a result is does not depend on the rows beside it. What a
panel may hold, and what x then is: blocks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import binding
from numba import carray, types

from unrolled.layers.kernels.compiled import SIDE
from unrolled.layers.kernels.compiled.amx import turn_words
from unrolled.layers.kernels.compiled.blocks import (
    BYTES,
    FETCHING,
    HALF,
    HAS_LONG,
    LIBRARY_LAGS,
    PAIRS,
    ROWS,
    SINGLE,
    WIDE,
    WIDENED,
    WORD,
    block,
    copy,
    widen,
)
from unrolled.layers.kernels.compiled.functions import by_address, c_function, loop_function, step_function
from unrolled.layers.kernels.compiled.threads import available, sharing, thread_count, thread_number

MOST_ROWS = 48 if HAS_LONG and not LIBRARY_LAGS else 1024
"""Up to how many rows a product of one thread is faster than a library's, which lays out its weight in each call."""

FEW_BLOCKS = 2
"""Up to how many blocks of rows bfloat16 is widened as it is read; for more it is written down."""

WIDEST = 4
"""Panels that all rows are multiplied with before the next ones come."""


class Panels(NamedTuple):
    """A weight [inner, width] in panels of sixteen columns."""

    numbers: Any  # [width / 16, steps, 16] of float32, of bfloat16 as uint16, or of two of it as uint32
    kind: int  # which of these
    at: int  # address of the numbers
    columns: int  # panels
    steps: int  # inner, or half of it in pairs

    @property
    def width(self) -> int:
        return self.columns * SIDE


def laid_out(weight: int, apart: int, shape: Sequence[int], turned: bool, kind: torch.dtype) -> Panels:
    """A weight [inner, width] of ``shape`` at an address, float32 or bfloat16, in panels.

    Its rows are ``apart`` numbers apart, or with ``turned`` its columns.
    """
    inner, width = shape
    # torch's memory begins where a vector may
    numbers = torch.empty(width // SIDE, inner, SIDE, dtype=kind, device="cpu")
    single = kind is torch.float32
    _laying(single)(weight, apart, inner, width, turned, numbers.data_ptr())
    panels = (numbers if single else numbers.view(torch.uint16)).numpy()
    return Panels(panels, SINGLE if single else WIDENED, numbers.data_ptr(), width // SIDE, inner)


@cache
def _laying(single: bool) -> Any:
    number = types.CPointer(types.float32 if single else types.uint16)
    return by_address(_lay, types.void(number, *[types.intp] * 3, types.boolean, number))


def _lay(weight_at: Any, apart: int, inner: int, width: int, turned: bool, panels_at: Any) -> None:
    panels = carray(panels_at, (width // SIDE, inner, SIDE))
    if turned:
        turn_over(carray(weight_at, (width, apart))[:, :inner], panels)
    else:
        split_up(carray(weight_at, (inner, apart))[:, :width], panels)


@loop_function
def split_up(weight: Any, panels: Any) -> None:
    """Of all panels of a group, row by row: what is read lies together."""
    count, inner, size = len(panels), panels.shape[1], SIDE * panels.itemsize
    for group in range(0, count, WIDEST):
        given = weight.ctypes.data + group * size
        for k in range(inner):
            for panel in range(min(WIDEST, count - group)):
                from_, to = given + panel * size, panels.ctypes.data + ((group + panel) * inner + k) * size
                for half in range(0, size, HALF):
                    copy(from_ + half, to + half)
            given += weight.strides[0]


@loop_function
def turn_over(weight: Any, panels: Any) -> None:
    inner, size = panels.shape[1], panels.itemsize
    whole = inner // SIDE if size == 4 else 0
    for panel in range(len(panels)):
        rows, into = weight.ctypes.data + SIDE * panel * weight.strides[0], panels[panel].ctypes.data
        for tile in range(whole):
            turn_words(rows + tile * BYTES, weight.strides[0], into + tile * SIDE * BYTES, BYTES)
        for k in range(whole * SIDE, inner):
            for j in range(SIDE):
                panels[panel, k, j] = weight[SIDE * panel + j, k]


# --- products ---------------------------------------------------------------------------------------------------------

_SIGNATURE = types.void(*[types.intp] * 13)
PRODUCT: Any = types.ExternalFunction("unrolled_product_panels", _SIGNATURE)
"""`product`, as compiled code calls it."""


@loop_function
def multiply_panels(x: Any, weight: Any, out: Any, keep: bool, threads: int) -> None:
    """out = x · weight, plus what ``out`` held with ``keep``; see `products.multiply`."""
    into, below = out.ctypes.data, out.strides[0]
    PRODUCT(
        threads, weight.kind, weight.at, weight.columns, weight.steps,
        len(x), x.ctypes.data, x.strides[0], WORD, into, below, into if keep else 0, below,
    )  # fmt: skip


@loop_function
def project_panels(x: Any, weight: Any, bias: Any, out: Any, threads: int) -> None:
    """out = x · weight + bias [width]."""
    PRODUCT(
        threads, weight.kind, weight.at, weight.columns, weight.steps,
        len(x), x.ctypes.data, x.strides[0], WORD, out.ctypes.data, out.strides[0], bias.ctypes.data, 0,
    )  # fmt: skip


def multiply_at(
    rows: int, x: int, apart: int, weight: Panels, out: int, below: int, first: int, first_below: int
) -> None:
    """out = x · weight, plus what stands at the address ``first``; as `tiles.multiply_at`."""
    called(available(), *weight[1:], rows, x, apart, WORD, out, below, first, first_below)


SHARED = 1 << 22
"""Words of a weight times rows of x from which on threads share a product.

To call them takes 2 µs, and more than half could be won from 2¹⁹ on; but where something else keeps a thread from its
core, all wait for it for milliseconds, and those of many small products add up.
"""

FEW_GROUPS = 2
"""Of panels, for each thread, from which on threads share the columns of a product, and else its rows."""


def product(
    threads: int, kind: int, panels: int, count: int, steps: int,
    rows: int, x: int, apart: int, along: int, out: int, below: int, first: int, first_below: int,
) -> None:  # fmt: skip
    """What `multiply_at` says, of ``count`` panels [steps, 16] of a ``kind``, by up to so many threads.

    The words of a row of x are ``along`` bytes apart.
    """
    if threads == 1 or count * SIDE * steps * rows < SHARED:
        _multiply(kind, panels, count, steps, rows, x, apart, along, out, below, first, first_below)
        return
    told = np.empty(12, np.int64)
    told[0], told[1], told[2], told[3] = kind, panels, count, steps
    told[4], told[5], told[6], told[7] = rows, x, apart, along
    told[8], told[9], told[10], told[11] = out, below, first, first_below
    _share(told.ctypes.data, threads)


_share = sharing("unrolled_product_part")


def part(told_at: Any) -> None:
    """What of a product this thread makes."""
    told = carray(told_at, 12)
    kind, panels, count, steps = told[0], told[1], told[2], told[3]
    rows, x, apart, along = told[4], told[5], told[6], told[7]
    out, below, first, first_below = told[8], told[9], told[10], told[11]
    number, threads = np.int64(thread_number()), np.int64(thread_count())
    groups = (count + WIDEST - 1) // WIDEST
    if groups >= FEW_GROUPS * threads:
        start, stop = WIDEST * (groups * number // threads), min(count, WIDEST * (groups * (number + 1) // threads))
        at, size = start * BYTES, HALF if kind == WIDENED else BYTES
        _multiply(
            kind, panels + start * steps * size, stop - start, steps,
            rows, x, apart, along, out + at, below, first + at if first else 0, first_below,
        )  # fmt: skip
    else:
        start, stop = rows * number // threads, rows * (number + 1) // threads
        _multiply(
            kind, panels, count, steps, stop - start, x + start * apart, apart, along,
            out + start * below, below, first + start * first_below if first else 0, first_below,
        )  # fmt: skip


@step_function
def _multiply(
    kind: int, panels: int, count: int, steps: int,
    rows: int, x: int, apart: int, along: int, out: int, below: int, first: int, first_below: int,
) -> None:  # fmt: skip
    """Rows are shared out evenly: seven are four and three. For many a group of bfloat16 panels is widened once.

    While the first blocks are multiplied with a group of pairs the next one is fetched, a panel a block: other work has
    driven the weight out of the near caches, and a block takes longer to read it from a far one than to multiply.
    """
    blocks = (rows + ROWS - 1) // ROWS
    widened = kind == WIDENED and blocks > FEW_BLOCKS
    room = np.empty(WIDEST * steps * SIDE if widened else 0, np.float32)
    given = HALF if kind == WIDENED else BYTES
    panel = steps * (BYTES if widened else given)
    for group in range(0, count, WIDEST):
        stop, row = min(group + WIDEST, count), 0
        start = panels + group * steps * given
        if widened:
            for k in range((stop - group) * steps):
                widen(start + k * HALF, room.ctypes.data + k * BYTES)
            start = room.ctypes.data
        for part in range(blocks):
            some = (rows + part) // blocks
            wide, column = WIDE[some], group
            ahead, used = 0, SINGLE if widened else kind
            if kind == PAIRS and blocks >= WIDEST and part < WIDEST and stop + part < count:
                ahead, used = panels + (stop + part) * steps * given, FETCHING
            while column < stop:
                many = wide if column + wide <= stop else 1
                at = column * BYTES
                block(
                    used, some, many, x + row * apart, apart, along, start + (column - group) * panel, panel, steps,
                    out + row * below + at, below, first + row * first_below + at if first else 0, first_below, ahead,
                )  # fmt: skip
                column += many
            row += some


# --- one function for all callers -------------------------------------------------------------------------------------


_part_code = c_function(part, types.void(types.CPointer(types.int64)))
binding.add_symbol("unrolled_product_part", _part_code.address)
_code = c_function(product, _SIGNATURE)
called = _code.ctypes
binding.add_symbol("unrolled_product_panels", _code.address)
