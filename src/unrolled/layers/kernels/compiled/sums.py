"""Gradients of weights: sums over rows of gradientᵀ · input, two in bfloat16, sums in float32.

What torch multiplies in bfloat16 it rounds to it. MKL has a product that does not, and is fast on tile registers alone.
Where the processor has the instruction for pairs (blocks.py) the product is ours: two rows of the input are woven
into one, and two of the gradient, whose columns become rows.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.compiled import SIDE, amx
from unrolled.layers.kernels.compiled.amx import BYTES, DEEP, turn_words, weave_words
from unrolled.layers.kernels.compiled.blocks import HAS_PAIRS
from unrolled.layers.kernels.compiled.functions import loop_function
from unrolled.layers.kernels.compiled.products import SYMBOLS, libraries
from unrolled.layers.kernels.compiled.tiles import weave
from unrolled.layers.kernels.compiled.vectors import multiply_at, of_pairs

PORTION = 1024
"""Rows that are multiplied at a time: what they are woven into stays in a cache."""


def sum_of_products(gradient: Tensor, given: Tensor, out: Tensor, *, keep: bool = False) -> None:
    """out [width, size] = gradientᵀ · given, plus what ``out`` held with ``keep``.

    ``gradient`` [n, width] and ``given`` [n, size]; the columns of each lie side by side.
    """
    if gradient.stride(1) != 1 or given.stride(1) != 1 or not out.is_contiguous():
        raise RuntimeError("sum_of_products wants the columns of its tensors side by side")
    if _pairs_worthwhile(out):
        _sum_pairs(gradient, given, out, keep)
    else:
        _sum_by_library(gradient, given, out, keep)


def _pairs_worthwhile(out: Tensor) -> bool:
    few_threads = torch.get_num_threads() <= compiled.MOST_THREADS
    return HAS_PAIRS and few_threads and out.shape[1] % SIDE == 0 and not amx.found()


def _sum_pairs(gradient: Tensor, given: Tensor, out: Tensor, keep: bool) -> None:
    if not keep:
        out.zero_()
    for start in range(0, len(given), PORTION):
        factors = (one[start : start + PORTION].view(torch.uint16).numpy() for one in (gradient, given))
        pairs = -(-min(PORTION, len(given) - start) // DEEP) * SIDE
        turned = torch.empty(len(out), pairs, dtype=torch.int32)
        woven = torch.empty(out.shape[1] // SIDE, pairs // SIDE, SIDE, SIDE, dtype=torch.int32)
        _turn_pairs(next(factors), turned.numpy())
        weave(next(factors), woven.numpy())
        panels, below = of_pairs(woven.numpy().reshape(len(woven), pairs, SIDE)), 4 * out.shape[1]
        multiply_at(len(out), turned.data_ptr(), 4 * pairs, panels, out.data_ptr(), below, out.data_ptr(), below)


@loop_function
def _turn_pairs(gradient: Any, turned: Any) -> None:
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
            into = turned.ctypes.data + column * turned.strides[0] + 4 * first
            turn_words(tile.ctypes.data, BYTES, into, turned.strides[0])
    for column in range(width - width % SIDE, width):
        for pair in range(turned.shape[1]):
            word = np.uint32(gradient[2 * pair, column]) if 2 * pair < rows else np.uint32(0)
            if 2 * pair + 1 < rows:
                word |= np.uint32(gradient[2 * pair + 1, column]) << np.uint32(16)
            turned[column, pair] = word


def _sum_by_library(gradient: Tensor, given: Tensor, out: Tensor, keep: bool) -> None:
    sizes = (ctypes.c_int * 6)(
        given.shape[1], gradient.shape[1], len(given), given.stride(0), gradient.stride(0), out.shape[1]
    )
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
