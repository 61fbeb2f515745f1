"""Gradients of weights: sums over rows of gradientᵀ · input, in float32 whatever the two are in.

What torch multiplies in bfloat16 it rounds to it. MKL has a product that does not, and is fast on tile registers alone.
Where the processor has the instruction for pairs (blocks.py) the product is ours: two rows of the input are woven
into one, and two of the gradient, whose columns become rows. So it is in float32 where MKL leaves half of a vector
unused.
"""

from __future__ import annotations

import ctypes
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numba import carray, types
from numba.extending import overload
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.compiled import SIDE
from unrolled.layers.kernels.compiled.amx import BYTES, turn_words, weave_words
from unrolled.layers.kernels.compiled.blocks import PAIRS, SINGLE, WORD
from unrolled.layers.kernels.compiled.functions import by_address, loop_function, step_function
from unrolled.layers.kernels.compiled.products import SYMBOLS
from unrolled.layers.kernels.compiled.threads import libraries, portions, together, worthwhile
from unrolled.layers.kernels.compiled.tiles import weave
from unrolled.layers.kernels.compiled.vectors import Panels, multiply_panels

PORTION = {torch.bfloat16: 1024, torch.float32: 256}
"""Rows that are multiplied at a time: what they are woven into stays in a cache, and shorter sums are exacter."""

COLUMNS = 384
"""Of a gradient, which are turned and multiplied at a time: they stay in the cache for all columns of the input."""


def sum_of_products(gradient: Tensor, given: Tensor, out: Tensor, *, keep: bool = False) -> None:
    """out [width, size] = gradientᵀ · given, plus what ``out``, float32, held with ``keep``.

    ``gradient`` [n, width] and ``given`` [n, size], both bfloat16 or both float32, whose columns lie side by side.
    """
    if gradient.stride(1) != 1 or given.stride(1) != 1 or not out.is_contiguous():
        raise RuntimeError("sum_of_products wants the columns of its tensors side by side")
    gradient, given = _each_in_its_place(gradient), _each_in_its_place(given)
    if _ours(out, given.dtype):
        _sum_by_columns(gradient, given, out, keep)
    elif given.dtype is torch.bfloat16:
        _sum_by_library(gradient, given, out, keep)
    else:
        torch.addmm(out, gradient.t(), given, beta=int(keep), out=out)


def _each_in_its_place(rows: Tensor) -> Tensor:
    """The rows, of which no two overlap, as those of an expanded one do."""
    return rows if len(rows) < 2 or rows.stride(0) >= rows.shape[1] else rows.contiguous()


def _ours(out: Tensor, dtype: torch.dtype) -> bool:
    faster = compiled.pairs_used() if dtype is torch.bfloat16 else compiled.library_lags(dtype)
    return faster and out.shape[1] % SIDE == 0


def _sum_by_columns(gradient: Tensor, given: Tensor, out: Tensor, keep: bool) -> None:
    (width, size), rows = out.shape, len(given)
    apart = max(gradient.stride(0), width), max(given.stride(0), size)  # of one row alone torch may say less
    from_, with_, into, step = gradient.data_ptr(), given.data_ptr(), out.data_ptr(), gradient.element_size()

    def sum_some(columns: slice) -> None:
        start, many = columns.start, columns.stop - columns.start
        _by_columns(given.dtype)(
            from_ + step * start, apart[0], with_, apart[1], rows, many, size, into + WORD * size * start, keep,
            PORTION[given.dtype], COLUMNS,
        )  # fmt: skip

    together([partial(sum_some, some) for some in portions(width, worthwhile(rows * width * size), SIDE)])


@cache
def _by_columns(dtype: torch.dtype) -> Any:
    word, number = types.CPointer(types.uint16 if dtype is torch.bfloat16 else types.uint32), types.intp
    told = (word, number, word, number, number, number, number, types.CPointer(types.float32), types.boolean)
    return by_address(sum_by_columns, types.void(*told, number, number))


def sum_by_columns(
    gradient_at: Any, gradient_apart: int, given_at: Any, given_apart: int, rows: int, width: int, size: int,
    out_at: Any, keep: bool, portion: int, columns: int,
) -> None:  # fmt: skip
    """Some rows of both at a time, and of those some columns of the gradient."""
    gradient = carray(gradient_at, (rows, gradient_apart))[:, :width]
    given = carray(given_at, (rows, given_apart))[:, :size]
    out = carray(out_at, (width, size))
    if rows == 0 and not keep:
        out[:] = 0
    longest = steps_of(given[:portion])
    panels, turned = room(longest * size), room(longest * min(columns, width))
    for start in range(0, rows, portion):
        left, right = gradient[start : start + portion], given[start : start + portion]
        steps = steps_of(right)
        laid = panels[: steps * size].reshape(size // SIDE, steps, SIDE)
        weight = Panels(laid, lay(right, laid), laid.ctypes.data, len(laid), steps)
        for column in range(0, width, columns):
            some = left[:, column : column + columns]
            factors = turned[: steps * some.shape[1]].reshape(some.shape[1], steps)
            turn(some, factors)
            multiply_panels(factors, weight, out[column : column + columns], keep or start > 0, 1)


@step_function
def room(words: int) -> Any:
    """So many words, which begin where a vector may."""
    found = np.empty(words + SIDE, np.uint32)
    skip = (BYTES - found.ctypes.data % BYTES) // WORD
    return found[skip : skip + words]


def steps_of(given: Any) -> int:
    """Words that so many rows of a column are, in pairs up to a whole tile."""
    raise TypeError(given)


@overload(steps_of, jit_options={"forceinline": True})
def _steps_of(given: Any) -> Any:
    def pairs(given: Any) -> int:
        return (len(given) + 2 * SIDE - 1) // (2 * SIDE) * SIDE

    def single(given: Any) -> int:
        return len(given)

    return pairs if given.dtype is types.uint16 else single


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
            for panel in range(len(panels)):
                panels[panel, k] = given[k, SIDE * panel : SIDE * (panel + 1)]
        return SINGLE

    return pairs if given.dtype is types.uint16 else single


def turn(gradient: Any, turned: Any) -> None:
    """Columns as rows ``turned`` [width, steps]."""
    raise TypeError(gradient)


@overload(turn)
def _turn(gradient: Any, turned: Any) -> Any:
    def pairs(gradient: Any, turned: Any) -> None:
        turn_pairs(gradient, turned)

    def single(gradient: Any, turned: Any) -> None:
        turn_single(gradient, turned)

    return pairs if gradient.dtype is types.uint16 else single


@loop_function
def turn_single(gradient: Any, turned: Any) -> None:
    """Columns as rows ``turned`` [width, rows]."""
    rows, width, stride, below = len(gradient), gradient.shape[1], gradient.strides[0], turned.strides[0]
    whole, columns = rows - rows % SIDE, width - width % SIDE
    for row in range(0, whole, SIDE):
        for column in range(0, columns, SIDE):
            start = gradient.ctypes.data + row * stride + WORD * column
            turn_words(start, stride, turned.ctypes.data + column * below + WORD * row, below)
    for row in range(rows):
        for column in range(0 if row >= whole else columns, width):
            turned[column, row] = gradient[row, column]


@loop_function
def turn_pairs(gradient: Any, turned: Any) -> None:
    """Columns as rows ``turned`` [width, pairs] of two numbers; rows that a last tile lacks are zeros."""
    rows, width, stride = len(gradient), gradient.shape[1], gradient.strides[0]
    nothing, tile = np.zeros(width, np.uint16), np.empty(SIDE * SIDE, np.uint32)
    for first in range(0, turned.shape[1], SIDE):
        for column in range(0, width - width % SIDE, SIDE):
            for pair in range(SIDE):
                upper, lower = 2 * (first + pair), 2 * (first + pair) + 1
                start = gradient.ctypes.data + 2 * column
                weave_words(
                    start + upper * stride if upper < rows else nothing.ctypes.data,
                    start + lower * stride if lower < rows else nothing.ctypes.data,
                    tile.ctypes.data + pair * BYTES,
                )
            into = turned.ctypes.data + column * turned.strides[0] + WORD * first
            turn_words(tile.ctypes.data, BYTES, into, turned.strides[0])
    for column in range(width - width % SIDE, width):
        for pair in range(turned.shape[1]):
            word = np.uint32(gradient[2 * pair, column]) if 2 * pair < rows else np.uint32(0)
            if 2 * pair + 1 < rows:
                word |= np.uint32(gradient[2 * pair + 1, column]) << np.uint32(16)
            turned[column, pair] = word


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
