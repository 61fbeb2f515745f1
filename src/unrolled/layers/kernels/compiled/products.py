"""Matrix products for compiled loops: those of the library that torch itself multiplies with, called by their address.

A loop over time makes a product in each step. Called from Python it costs a few microseconds, which for a small layer
is more than the product itself.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import binding
from numba import types
from numba.extending import overload

from unrolled.layers.kernels.compiled.threads import libraries
from unrolled.layers.kernels.compiled.tiles import Tiles, multiply_tiles, project_tiles
from unrolled.layers.kernels.compiled.vectors import Panels, multiply_panels, project_panels

SYMBOLS = {torch.float32: "sgemm_", torch.float64: "dgemm_", torch.bfloat16: "gemm_bf16bf16f32_"}
"""The general product C ← α A B + β C of each type in BLAS; the last is MKL's own: A and B bfloat16, C float32."""

_SIGNATURE = types.void(*[types.intp] * 13)
_SINGLE = types.ExternalFunction("unrolled_product_f4", _SIGNATURE)
_DOUBLE = types.ExternalFunction("unrolled_product_f8", _SIGNATURE)
_HALF = types.ExternalFunction("unrolled_product_b2", _SIGNATURE)
PLAIN, TURNED = ord("N"), ord("T")

_NAMES = {
    torch.float32: "unrolled_product_f4",
    torch.float64: "unrolled_product_f8",
    torch.bfloat16: "unrolled_product_b2",
}


def found(dtype: torch.dtype) -> bool:
    """Whether torch's library offers the product of ``dtype``; compiled code then finds it by name."""
    return dtype in FOUND


def _find() -> set[torch.dtype]:
    there = set()
    for path in libraries():
        library = ctypes.CDLL(str(path))
        for dtype, symbol in SYMBOLS.items():
            if hasattr(library, symbol):
                binding.add_symbol(_NAMES[dtype], ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value)
                there.add(dtype)
    return there


FOUND = _find()


AS_IT_LIES = 0
"""The kind of a weight that nothing was laid out for; others are those of blocks.py."""


class Weight(NamedTuple):
    """A weight [inner, width] of a loop's products, as it lies or in panels: one type, so that one code is made."""

    numbers: Any  # bytes that were laid out and are kept, or none
    kind: int
    at: int  # address
    columns: int  # panels
    steps: int  # of a panel
    stride: int  # from row to row of what lies as it is, or with ``turned`` from column to column
    turned: bool
    threads: int  # that share a product with panels


def as_it_lies(address: int, stride: int, turned: bool) -> Weight:
    """Of a tensor that the caller keeps. A library wants even one row alone at least as far apart as it is long."""
    return Weight(_NOTHING, AS_IT_LIES, address, 0, 0, stride, turned, 1)


def in_panels(panels: Panels, threads: int) -> Weight:
    """Of numbers that are kept with it."""
    return Weight(panels.numbers.reshape(-1).view(np.uint8), *panels[1:], 0, False, threads)


_NOTHING = np.empty(0, np.uint8)


def project(x: Any, weight: Any, bias: Any, out: Any) -> None:
    """out = x · weight + bias [width]; see `multiply`."""
    raise TypeError(x)


@overload(project)
def _project(x: Any, weight: Any, bias: Any, out: Any) -> Any:
    def call(x: Any, weight: Any, bias: Any, out: Any) -> Any:
        if weight.kind != AS_IT_LIES:
            project_panels(x, weight, bias, out, weight.threads)
        else:
            for row in range(len(out)):
                out[row, :] = bias
            multiply(x, weight, out, True)

    def call_tiles(x: Any, weight: Any, bias: Any, out: Any) -> Any:
        project_tiles(x, weight, bias, out)

    return call_tiles if weight.instance_class is Tiles else call


def multiply(x: Any, weight: Any, out: Any, keep: bool) -> None:
    """out = x · weight, plus what ``out`` held with ``keep``: x [rows, inner], out [rows, width].

    ``weight`` is a `Weight` or `Tiles`. The columns of x and out lie side by side; rows may lie apart. For bfloat16 x
    is uint16 and out float32.
    """
    raise TypeError(x)


@overload(multiply)
def _multiply(x: Any, weight: Any, out: Any, keep: Any) -> Any:
    if weight is types.none:  # an option's branch that is never taken

        def never(x: Any, weight: Any, out: Any, keep: Any) -> Any:
            raise RuntimeError("a product was asked for without a weight")

        return never
    if weight.instance_class is Tiles:

        def call_tiles(x: Any, weight: Any, out: Any, keep: Any) -> Any:
            multiply_tiles(x, weight, out, keep)

        return call_tiles

    def call(x: Any, weight: Any, out: Any, keep: Any) -> Any:
        if weight.kind != AS_IT_LIES:
            multiply_panels(x, weight, out, keep, weight.threads)
        else:
            multiply_by_library(x, weight, out, keep)

    return call


def multiply_by_library(x: Any, weight: Any, out: Any, keep: bool) -> None:
    """`multiply`, of a weight that lies as it is."""
    raise TypeError(x)


@overload(multiply_by_library)
def _multiply_by_library(x: Any, weight: Any, out: Any, keep: Any) -> Any:
    product: Any = {types.uint16: _HALF, types.float32: _SINGLE, types.float64: _DOUBLE}[x.dtype]

    def call(x: Any, weight: Any, out: Any, keep: Any) -> Any:
        # BLAS counts along columns, so that each matrix is turned to it: outᵀ = weightᵀ xᵀ.
        sizes = np.empty(6, np.int32)
        sizes[0], sizes[1], sizes[2] = out.shape[1], out.shape[0], x.shape[1]
        sizes[3] = weight.stride
        sizes[4] = max(x.strides[0] // x.itemsize, x.shape[1])  # one row alone may say less than the library wants
        sizes[5] = max(out.strides[0] // out.itemsize, out.shape[1])
        factors = np.empty(2, out.dtype)
        factors[0], factors[1] = 1, keep
        letters = np.empty(2, np.uint8)
        letters[0], letters[1] = (TURNED if weight.turned else PLAIN), PLAIN
        size, factor, letter = sizes.ctypes.data, factors.ctypes.data, letters.ctypes.data
        inner, strides = size + 8, size + 12
        second = factor + factors.itemsize
        data, into = x.ctypes.data, out.ctypes.data
        product(
            letter,
            letter + 1,
            size,
            size + 4,
            inner,
            factor,
            weight.at,
            strides,
            data,
            strides + 4,
            second,
            into,
            strides + 8,
        )

    return call
