"""Products of bfloat16 in tile registers (amx.py), faster than a library's where it would lay out a matrix each time.

A loop over time multiplies few rows with the same weight in every step: its tiles are made once for all. What a row of
a result is does not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray, types

from unrolled.layers.kernels.compiled.amx import (
    BYTES,
    CLEAR,
    DEEP,
    LOAD,
    MULTIPLY,
    SHAPES,
    SIDE,
    STORE,
    TILE,
    configure,
    found,
    release,
    turn_words,
    weave_words,
)
from unrolled.layers.kernels.compiled.blocks import HAS_PAIRS, PAIRS
from unrolled.layers.kernels.compiled.functions import by_address, loop_function, row_function
from unrolled.layers.kernels.compiled.vectors import Panels

load_0, load_1, load_2, load_3, load_4, load_5, load_6, load_7 = LOAD
store_0, store_1, store_2, store_3 = STORE
clear_0, clear_1, clear_2, clear_3 = CLEAR
multiply_0, multiply_1, multiply_2, multiply_3 = MULTIPLY

GROUP = 1 << 18
"""Bytes of a weight that all rows are multiplied with before the next ones come."""

FEW = 4 * DEEP
"""Rows up to which a pair of columns of a weight's tiles stays in the nearest cache for all of them."""


class Tiles(NamedTuple):
    """A weight [inner, width] of products, laid out in tiles: those of 16 columns one after the other, down the rows.

    ``upwards`` [1] is turned in every product, whose columns then come from the other end: the part of a large weight
    that was read last is still in the cache.
    """

    numbers: Any  # [width / 16, inner / 32, 16, 16], two numbers of bfloat16 in each uint32
    upwards: Any

    @property
    def width(self) -> int:
        return len(self.numbers) * SIDE


def laid_out(weight: int, apart: int, shape: Sequence[int], turned: bool) -> Tiles | Panels:
    """A bfloat16 weight [inner, width] of ``shape`` at an address in tiles; rows that a last tile lacks are zeros.

    Its rows are ``apart`` numbers apart, or with ``turned`` its columns. Where there are no registers for tiles, but an
    instruction for pairs, the same numbers are panels of pairs: a column of tiles is one.
    """
    if not (found() or HAS_PAIRS):  # without permission a product ends the process
        raise RuntimeError("tiles were asked for on a machine without them: ask tiles_worthwhile first")
    inner, width = shape
    columns, deep = width // SIDE, (inner + DEEP - 1) // DEEP
    # torch's memory begins where a vector may
    room = torch.empty(columns, deep * SIDE, SIDE, dtype=torch.int32, device="cpu")
    _laying()(weight, apart, inner, width, turned, room.data_ptr())
    numbers = room.numpy().view(np.uint32)
    if found():
        return Tiles(numbers.reshape(columns, deep, SIDE, SIDE), np.zeros(1, np.int64))
    return Panels(numbers, PAIRS, room.data_ptr(), columns, deep * SIDE)


@cache
def _laying() -> Any:
    number = types.CPointer(types.uint16)
    return by_address(_lay, types.void(number, *[types.intp] * 3, types.boolean, types.CPointer(types.uint32)))


def _lay(weight_at: Any, apart: int, inner: int, width: int, turned: bool, numbers_at: Any) -> None:
    numbers = carray(numbers_at, (width // SIDE, (inner + DEEP - 1) // DEEP, SIDE, SIDE))
    if turned:
        turn(carray(weight_at, (width, apart))[:, :inner], numbers)
    else:
        weave(carray(weight_at, (inner, apart))[:, :width], numbers)


@loop_function
def weave(weight: Any, numbers: Any) -> None:
    """Two rows of ``weight`` side by side; rows that a last tile lacks are zeros."""
    rows, stride = len(weight), weight.strides[0]
    nothing = np.zeros(weight.shape[1], weight.dtype)
    steps = numbers.shape[1] * SIDE
    for pair in range(steps):
        upper = weight.ctypes.data + 2 * pair * stride if 2 * pair < rows else nothing.ctypes.data
        lower = weight.ctypes.data + (2 * pair + 1) * stride if 2 * pair + 1 < rows else nothing.ctypes.data
        for column in range(len(numbers)):
            into = numbers.ctypes.data + (column * steps + pair) * BYTES
            weave_words(upper + DEEP * column, lower + DEEP * column, into)


@loop_function
def turn(weight: Any, numbers: Any) -> None:
    """Rows as columns; the numbers that `weave` puts side by side are so already."""
    into, stride = numbers.ctypes.data, weight.strides[0]
    for column in range(len(numbers)):
        rows = weight.ctypes.data + SIDE * column * stride
        for tile in range(numbers.shape[1]):
            turn_words(rows + tile * BYTES, stride, into, BYTES)
            into += TILE


# --- products ---------------------------------------------------------------------------------------------------------


@loop_function
def multiply_tiles(x: Any, weight: Any, out: Any, keep: bool) -> None:
    """out = x · weight, plus what ``out`` held with ``keep``; see `products.multiply`."""
    into, below = out.ctypes.data, out.strides[0]
    multiply_at(len(x), x.ctypes.data, x.strides[0], weight, into, below, into if keep else 0, below)


@loop_function
def project_tiles(x: Any, weight: Any, bias: Any, out: Any) -> None:
    """out = x · weight + bias [width]."""
    multiply_at(len(x), x.ctypes.data, x.strides[0], weight, out.ctypes.data, out.strides[0], bias.ctypes.data, 0)


@loop_function
def multiply_at(rows: int, x: int, apart: int, weight: Any, out: int, below: int, first: int, first_below: int) -> None:
    """out = x · weight, plus what stands at the address ``first``: ``rows`` of x at an address, ``apart`` bytes apart.

    Rows of ``out`` are ``below`` and those of ``first`` ``first_below`` bytes apart: 0, and the same is added to all;
    ``first`` 0, and nothing is. A register takes another shape in as long as many products take; so it does only
    between groups of columns.
    """
    count, deep, _, _ = weight.numbers.shape
    tiles, pair, pairs = weight.numbers.ctypes.data, 2 * deep * TILE, count // 2
    size = max(1, GROUP // pair)
    groups, shape = (pairs + size - 1) // size, 0
    upwards = 1 - weight.upwards[0]  # looked at once: another thread may turn it meanwhile
    weight.upwards[0] = upwards
    for turned in range(groups):
        group = groups - 1 - turned if upwards else turned
        start, columns = group * size, min(size, pairs - group * size)
        for ending in range(2):  # blocks of 32 rows, then the rest of the rows
            some, blocks = (rows % DEEP, 1) if ending else (DEEP, rows // DEEP)
            if some * blocks and shape != some:
                shape = some
                configure(SHAPES.ctypes.data + shape * BYTES)
            for step in range(blocks * columns if some else 0):
                block, column = (step % blocks, step // blocks) if rows <= FEW else (step // columns, step % columns)
                row, at = rows - some if ending else DEEP * block, 2 * BYTES * (start + column)
                begin = first + row * first_below + at if first else 0
                x_at, tiles_at, out_at = x + row * apart, tiles + (start + column) * pair, out + row * below + at
                _multiply(x_at, apart, tiles_at, deep, out_at, below, begin, first_below, some > SIDE)
    release()


@row_function
def _multiply(
    x: int, apart: int, tiles: int, deep: int, out: int, below: int, first: int, first_below: int, many: bool
) -> None:
    """Up to 32 rows of x with two columns of tiles; ``many``: more than 16, the lower ones in tiles of their own."""
    lower_first, lower_out = first + SIDE * first_below, out + SIDE * below
    if first:
        load_0(first, first_below)
        load_1(first + BYTES, first_below)
    else:
        clear_0()
        clear_1()
    if many and first:
        load_2(lower_first, first_below)
        load_3(lower_first + BYTES, first_below)
    elif many:
        clear_2()
        clear_3()
    for k in range(deep):
        load_4(x + k * BYTES, apart)
        load_6(tiles + k * TILE, BYTES)
        multiply_0()
        load_7(tiles + (deep + k) * TILE, BYTES)
        multiply_1()
        if many:
            load_5(x + SIDE * apart + k * BYTES, apart)
            multiply_2()
            multiply_3()
    store_0(out, below)
    store_1(out + BYTES, below)
    if many:
        store_2(lower_out, below)
        store_3(lower_out + BYTES, below)
