"""A cell's loop over time as one compiled function: one pass over each row of a step, no calls from Python."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import Parameter

KINDS: set[type] = {Tensor, Parameter}
"""The kinds of tensors that have numbers to work on; those that torch.export and the like trace with have none."""


def possible(weight: Tensor) -> bool:
    """Whether compiled loops can multiply with this weight: on a processor whose torch brings the product along."""
    return weight.device.type == "cpu" and type(weight) in KINDS and product_found(weight.dtype)


@cache
def tiles_found() -> bool:
    """Whether compiled code multiplies bfloat16 itself, a weight of which lies in tiles.

    It does with a processor's registers for tiles, or with AVX-512's instruction for pairs of numbers.
    """
    if not product_found(torch.bfloat16):
        return False
    from unrolled.layers.kernels.compiled.amx import found
    from unrolled.layers.kernels.compiled.blocks import HAS_PAIRS

    return found() or HAS_PAIRS


PRODUCTS = 4
"""From how many products on a weight is laid out for them: that takes as long as about two."""

PAIR = 32
"""Two tiles side by side: what the sizes of a weight are multiples of."""


def tiles_worthwhile(shape: torch.Size, dtype: torch.dtype, products: int) -> bool:
    """Whether so many products with a matrix of ``shape`` are faster in tiles: a bfloat16 one of whole pairs."""
    if dtype is not torch.bfloat16 or products < PRODUCTS or not tiles_found():
        return False
    return all(size and size % PAIR == 0 for size in shape)


def side_of_tiles(weight: Tensor) -> int:
    """Rows that are multiplied in the time of one: those of a register for tiles, where products go through them."""
    from unrolled.layers.kernels.compiled import amx

    return amx.SIDE if weight.dtype is torch.bfloat16 and amx.found() else 1


SIDE = 16
"""Columns of a panel: of what the width of a weight [inner, width] in panels is a multiple."""


def panels_found() -> bool:
    """Whether a search may multiply with weights in panels."""
    return product_found(torch.float32)


def panels_worthwhile(shape: torch.Size, dtype: torch.dtype, products: int) -> bool:
    """Whether so many products x · weight [inner, width] are faster in panels: float32 ones."""
    fits = dtype is torch.float32 and all(shape) and shape[1] % SIDE == 0 and products >= PRODUCTS
    return fits and product_found(dtype)


def library_lags(dtype: torch.dtype) -> bool:
    """Whether our own product of many rows is faster than torch's even once: see blocks.py."""
    if not product_found(dtype):
        return False
    from unrolled.layers.kernels.compiled.blocks import LIBRARY_LAGS

    return pairs_used() if dtype is torch.bfloat16 else dtype is torch.float32 and LIBRARY_LAGS


def pairs_used() -> bool:
    """Whether bfloat16 is multiplied in pairs: on processors that know them and have no registers for tiles."""
    from unrolled.layers.kernels.compiled.amx import found
    from unrolled.layers.kernels.compiled.blocks import HAS_PAIRS

    return HAS_PAIRS and not found()


STEP = 64
"""Rows of a product that take about as long as a step of a loop does."""


SMALL = 1 << 16
"""Numbers of a bfloat16 weight that are laid out in the time that a call of a library takes before it multiplies."""


def once_pays(shape: torch.Size, dtype: torch.dtype, rows: int) -> bool:
    """Whether one product of so many rows with a weight [inner, width] is faster by our own, laying out included."""
    small = dtype is torch.bfloat16 and shape.numel() <= SMALL
    return library_lags(dtype) and laying_out_pays(shape, dtype, PRODUCTS if small else rows // STEP)


def sums_of(dtype: torch.dtype) -> bool:
    """Whether the gradients of weights are summed by compiled code: see sums.py."""
    return dtype is torch.bfloat16 or library_lags(dtype)


def laying_out_pays(shape: torch.Size, dtype: torch.dtype, products: int) -> bool:
    """Whether a weight [inner, width] of so many products is laid out for them, in tiles or in panels."""
    return tiles_worthwhile(shape, dtype, products) or panels_worthwhile(shape, dtype, products)


@cache
def product_found(dtype: torch.dtype) -> bool:
    """Whether compiled code finds a matrix product of this type."""
    if dtype not in (torch.float32, torch.float64, torch.bfloat16):
        return False
    from unrolled.layers.kernels.compiled.products import found

    return found(dtype)
