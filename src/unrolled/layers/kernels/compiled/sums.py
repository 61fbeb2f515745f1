"""Gradients of weights: sums over rows of gradientᵀ · input, in float32 whatever the two are in.

What torch multiplies in bfloat16 it rounds to it. MKL has a product that does not, and is fast on tile registers alone.
Where the processor has the instruction for pairs (blocks.py) the product is ours: two rows of the input are woven
into one, a panel's, and two of the gradient, of which a block reads down the columns. So it is in float32, of single
rows, where MKL leaves half of a vector unused.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray, types
from numba.extending import overload
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.compiled import SIDE
from unrolled.layers.kernels.compiled.amx import BYTES, weave_words
from unrolled.layers.kernels.compiled.blocks import HALF, PAIRS, SINGLE, WORD, copy
from unrolled.layers.kernels.compiled.functions import by_address, loop_function, step_function
from unrolled.layers.kernels.compiled.products import SYMBOLS
from unrolled.layers.kernels.compiled.threads import libraries, portions, together, worthwhile
from unrolled.layers.kernels.compiled.tiles import weave
from unrolled.layers.kernels.compiled.vectors import PRODUCT

PORTION = {torch.bfloat16: 1024, torch.float32: 256}
"""Rows that are multiplied at a time: what they are woven into stays in a cache, and shorter sums are exacter."""

COLUMNS = 384
"""Of a gradient, which are laid out and multiplied at a time: they stay in the cache for all columns of the input."""


def sum_of_products(gradient: Tensor, given: Tensor, out: Tensor, *, keep: bool = False) -> None:
    """out [width, size] = gradientᵀ · given, plus what ``out``, float32, held with ``keep``.

    ``gradient`` [n, width] and ``given`` [n, size], both bfloat16 or both float32, whose columns lie side by side.
    """
    if gradient.stride(1) != 1 or given.stride(1) != 1 or not out.is_contiguous():
        raise RuntimeError("sum_of_products wants the columns of its tensors side by side")
    gradient, given = _each_in_its_place(gradient), _each_in_its_place(given)
    if ours(out.shape[1], given.dtype):
        _sum_by_columns(gradient, given, out, keep)
    elif given.dtype is torch.bfloat16:
        _sum_by_library(gradient, given, out, keep)
    else:
        torch.addmm(out, gradient.t(), given, beta=int(keep), out=out)


def _each_in_its_place(rows: Tensor) -> Tensor:
    """The rows, of which no two overlap, as those of an expanded one do."""
    return rows if len(rows) < 2 or rows.stride(0) >= rows.shape[1] else rows.contiguous()


def ours(size: int, dtype: torch.dtype) -> bool:
    """Whether a sum whose result has so many columns is made here, and not by a library."""
    faster = compiled.pairs_used() if dtype is torch.bfloat16 else compiled.library_lags(dtype)
    return faster and size % SIDE == 0


def _sum_by_columns(gradient: Tensor, given: Tensor, out: Tensor, keep: bool) -> None:
    (width, size), rows = out.shape, len(given)
    apart = max(gradient.stride(0), width), max(given.stride(0), size)  # of one row alone torch may say less
    from_, with_, into, step = gradient.data_ptr(), given.data_ptr(), out.data_ptr(), gradient.element_size()

    parts = portions(width, worthwhile(rows * width * size), SIDE)
    words = _words(rows, width, size, given.dtype)
    room = _room(words * len(parts))

    def sum_some(number: int, columns: slice) -> None:
        start, many = columns.start, columns.stop - columns.start
        _by_columns(given.dtype)(
            from_ + step * start, apart[0], with_, apart[1], rows, many, size, into + WORD * size * start, keep,
            PORTION[given.dtype], COLUMNS, room.data_ptr() + WORD * words * number,
        )  # fmt: skip

    together([partial(sum_some, number, some) for number, some in enumerate(parts)])


class Room(NamedTuple):
    """Words for the sums of `sum_arrays`, and how many rows and columns of a gradient are taken at a time."""

    words: Any
    portion: int
    columns: int


def room_of(rows: int, width: int, size: int, dtype: torch.dtype) -> Room:
    """For sums of so many rows whose results are at most [width, size]."""
    words = _room(_words(rows, width, size, dtype)).numpy().view(np.uint32)
    return Room(words, PORTION[dtype], COLUMNS)


def _words(rows: int, width: int, size: int, dtype: torch.dtype) -> int:
    steps: int = steps_of.py_func(min(rows, PORTION[dtype]), dtype.itemsize)
    return steps * (size + min(COLUMNS, width) + SIDE)


_kept = threading.local()

MOST_KEPT = 1 << 20
"""Words of room that a thread keeps for the next sum: what is given back may have to be cleared to be had again."""


def _room(words: int) -> Tensor:
    """So many words, or more, which begin where a vector may; this thread's next call gets the same ones."""
    room: Tensor | None = getattr(_kept, "room", None)
    if room is None or len(room) < words:
        room = torch.empty(words, dtype=torch.int32, device="cpu")
        if words <= MOST_KEPT:
            _kept.room = room
    return room


@cache
def _by_columns(dtype: torch.dtype) -> Any:
    word, number = types.CPointer(types.uint16 if dtype is torch.bfloat16 else types.uint32), types.intp
    told = (word, number, word, number, number, number, number, types.CPointer(types.float32), types.boolean)
    return by_address(sum_by_columns, types.void(*told, number, number, types.CPointer(types.uint32)))


def sum_by_columns(
    gradient_at: Any, gradient_apart: int, given_at: Any, given_apart: int, rows: int, width: int, size: int,
    out_at: Any, keep: bool, portion: int, columns: int, room_at: Any,
) -> None:  # fmt: skip
    """`sum_arrays`, of what lies at addresses."""
    gradient = carray(gradient_at, (rows, gradient_apart))[:, :width]
    given = carray(given_at, (rows, given_apart))[:, :size]
    longest = steps_of(min(rows, portion), given.itemsize)
    words = carray(room_at, longest * (size + min(columns, width) + SIDE))
    _sum(gradient, given, carray(out_at, (width, size)), keep, Room(words, portion, columns))


@loop_function
def sum_arrays(gradient: Any, given: Any, out: Any, keep: bool, room: Any) -> None:
    """out [width, size] = gradientᵀ · given [n, size], plus what ``out`` held with ``keep``; ``room``: see `Room`."""
    _sum(gradient, given, out, keep, room)


@step_function
def _sum(gradient: Any, given: Any, out: Any, keep: bool, room: Any) -> None:
    """Some rows of both at a time, and of those some columns of the gradient."""
    (width, size), rows = out.shape, len(given)
    if rows == 0 and not keep:
        out[:] = 0
    longest = steps_of(min(rows, room.portion), given.itemsize)
    apart = min(room.columns, width) + SIDE  # at a power of two they crowd a cache
    panels, woven = room.words[: longest * size], room.words[longest * size : longest * (size + apart)]
    for start in range(0, rows, room.portion):
        left, right = gradient[start : start + room.portion], given[start : start + room.portion]
        steps = steps_of(len(right), given.itemsize)
        laid = panels[: steps * size].reshape(size // SIDE, steps, SIDE)
        kind = lay(right, laid)
        for column in range(0, width, room.columns):
            some, into = left[:, column : column + room.columns], out[column : column + room.columns]
            factors = woven[: steps * apart].reshape(steps, apart)
            lay_rows(some, factors)
            multiply_columns(factors, kind, laid, into, keep or start > 0)


@step_function
def multiply_columns(factors: Any, kind: int, panels: Any, out: Any, keep: bool) -> None:
    """out = factorsᵀ · panels, plus what ``out`` held with ``keep``: a word's next one is that of the row below."""
    into, below = out.ctypes.data, out.strides[0]
    PRODUCT(
        1, kind, panels.ctypes.data, len(panels), panels.shape[1],
        len(out), factors.ctypes.data, WORD, factors.strides[0], into, below, into if keep else 0, below,
    )  # fmt: skip


@step_function
def steps_of(rows: int, size: int) -> int:
    """Words that so many rows of a column are; of numbers of two bytes pairs, up to a whole tile."""
    return (rows + 2 * SIDE - 1) // (2 * SIDE) * SIDE if size < WORD else rows


def lay(given: Any, panels: Any) -> int:
    """Rows in ``panels`` [size / 16, steps, 16]; the kind of these."""
    raise TypeError(given)


@overload(lay)
def _lay(given: Any, panels: Any) -> Any:
    def pairs(given: Any, panels: Any) -> int:
        weave(given, panels.reshape(len(panels), panels.shape[1] // SIDE, SIDE, SIDE))
        return PAIRS

    def single(given: Any, panels: Any) -> int:
        for k in range(len(given)):
            from_, into = given.ctypes.data + k * given.strides[0], panels.ctypes.data + k * BYTES
            for _ in range(len(panels)):
                copy(from_, into)
                copy(from_ + HALF, into + HALF)
                from_ += BYTES
                into += panels.strides[0]
        return SINGLE

    return pairs if given.dtype is types.uint16 else single


def lay_rows(gradient: Any, out: Any) -> None:
    """Rows, or in bfloat16 two woven into one, in ``out`` [steps, at least width]."""
    raise TypeError(gradient)


@overload(lay_rows)
def _lay_rows(gradient: Any, out: Any) -> Any:
    def pairs(gradient: Any, out: Any) -> None:
        weave_rows(gradient, out)

    def single(gradient: Any, out: Any) -> None:
        whole = gradient.shape[1] - gradient.shape[1] % SIDE
        for k in range(len(gradient)):
            from_, into = gradient.ctypes.data + k * gradient.strides[0], out.ctypes.data + k * out.strides[0]
            for at in range(0, WORD * whole, HALF):
                copy(from_ + at, into + at)
            for j in range(whole, gradient.shape[1]):
                out[k, j] = bits(gradient[k, j])

    return pairs if gradient.dtype is types.uint16 else single


def bits(x: Any) -> Any:
    """Of a number in float32 its word, which may be given as one."""
    raise TypeError(x)


@overload(bits)
def _bits(x: Any) -> Any:
    def same(x: Any) -> Any:
        return x

    def of_number(x: Any) -> Any:
        return np.float32(x).view(np.uint32)

    return same if x is types.uint32 else of_number


@loop_function
def weave_rows(gradient: Any, out: Any) -> None:
    """Two rows as one; rows that a last tile lacks are zeros."""
    rows, width, stride = len(gradient), gradient.shape[1], gradient.strides[0]
    nothing, whole = np.zeros(width, np.uint16), width - width % SIDE
    for pair in range(len(out)):
        upper, lower = gradient.ctypes.data + 2 * pair * stride, gradient.ctypes.data + (2 * pair + 1) * stride
        if 2 * pair >= rows:
            upper = nothing.ctypes.data
        if 2 * pair + 1 >= rows:
            lower = nothing.ctypes.data
        into = out.ctypes.data + pair * out.strides[0]
        for column in range(0, whole, SIDE):
            weave_words(upper + 2 * column, lower + 2 * column, into + WORD * column)
        for column in range(whole, width):
            word = np.uint32(gradient[2 * pair, column]) if 2 * pair < rows else np.uint32(0)
            if 2 * pair + 1 < rows:
                word |= np.uint32(gradient[2 * pair + 1, column]) << np.uint32(16)
            out[pair, column] = word


def _sum_by_library(gradient: Tensor, given: Tensor, out: Tensor, keep: bool) -> None:
    size, width = given.shape[1], gradient.shape[1]
    apart = max(given.stride(0), size), max(gradient.stride(0), width)  # of one row alone torch may say less
    sizes = (ctypes.c_int * 6)(size, width, len(given), *apart, out.shape[1])
    at = [ctypes.addressof(sizes) + place * ctypes.sizeof(ctypes.c_int) for place in range(6)]
    one, held = ctypes.c_float(1.0), ctypes.c_float(keep)
    _half_product()(
        b"N", b"T", *at[:3], ctypes.byref(one), given.data_ptr(), at[3], gradient.data_ptr(), at[4],
        ctypes.byref(held), out.data_ptr(), at[5],
    )  # fmt: skip


@cache
def _half_product() -> Any:
    """MKL's product as Python calls it."""
    function = ctypes.CDLL(str(libraries()[0]))[SYMBOLS[torch.bfloat16]]
    function.restype, function.argtypes = None, [ctypes.c_char_p] * 2 + [ctypes.c_void_p] * 11
    return function
