"""Several weights laid out in one call: those of a layer's way forward, or of its way back."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray, types

from unrolled.layers.kernels.compiled import SIDE
from unrolled.layers.kernels.compiled.amx import DEEP
from unrolled.layers.kernels.compiled.blocks import PAIRS, WORD
from unrolled.layers.kernels.compiled.functions import by_address, pointer
from unrolled.layers.kernels.compiled.products import Weight
from unrolled.layers.kernels.compiled.tiles import turn, weave
from unrolled.layers.kernels.compiled.vectors import split_up, turn_over


class Lying(NamedTuple):
    """A weight [inner, width] at an address, and the panels that it is to be: of pairs of bfloat16, or of float32."""

    at: int
    apart: int  # numbers from row to row, or with ``turned`` from column to column
    inner: int
    width: int
    turned: bool
    kind: int

    @property
    def steps(self) -> int:
        """Words of a column."""
        return (self.inner + DEEP - 1) // DEEP * SIDE if self.kind == PAIRS else self.inner


_FIELDS = len(Lying._fields)


def lay_out(weights: list[Lying], threads: int) -> list[Weight]:
    """All of them in panels, for products that up to so many ``threads`` share."""
    sizes = [weight.steps * weight.width for weight in weights]
    room = torch.empty(sum(sizes), dtype=torch.int32, device="cpu")  # torch's memory begins where a vector may
    told = (ctypes.c_ssize_t * (_FIELDS * len(weights)))(*[number for weight in weights for number in weight])
    _laying()(len(weights), ctypes.addressof(told), room.data_ptr())
    numbers, at, found = room.numpy().view(np.uint8), room.data_ptr(), []
    for weight, size in zip(weights, sizes, strict=True):
        found.append(Weight(numbers, weight.kind, at, weight.width // SIDE, weight.steps, 0, False, threads))
        at += WORD * size
    return found


@cache
def _laying() -> Any:
    return by_address(_lay, types.void(types.intp, types.CPointer(types.intp), types.intp))


def _lay(count: int, told_at: Any, into: int) -> None:
    for told in carray(told_at, (count, _FIELDS)):
        at, apart, inner, width, turned, kind = told[0], told[1], told[2], told[3], told[4], told[5]
        columns = width // SIDE
        if kind == PAIRS:
            deep = (inner + DEEP - 1) // DEEP
            tiles = carray(pointer(into), (columns, deep, SIDE, SIDE), np.uint32)
            if turned:
                turn(carray(pointer(at), (width, apart), np.uint16)[:, :inner], tiles)
            else:
                weave(carray(pointer(at), (inner, apart), np.uint16)[:, :width], tiles)
            into += WORD * deep * SIDE * width
        else:
            panels = carray(pointer(into), (columns, inner, SIDE), np.float32)
            if turned:
                turn_over(carray(pointer(at), (width, apart), np.float32)[:, :inner], panels)
            else:
                split_up(carray(pointer(at), (inner, apart), np.float32)[:, :width], panels)
            into += WORD * inner * width
