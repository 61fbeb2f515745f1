"""Products of many rows with a weight as large as a vocabulary, in float32, some of its rows at a time.

Where a library's product lags behind ours (decisions/0036-products-of-pairs.md) a weight is laid out for one product
of many rows. A slab of it takes little memory, and is multiplied with while it is in a near cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers.kernels import compiled

SLAB = 256
"""Rows of the weight at a time; and how many products a sum has in one go, as shorter ones are exacter."""


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x [n, size] · weightᵀ, weight [words, size] → [n, words]."""
    if not _ours(weight, x):
        return functional.linear(x, weight)
    from unrolled.layers.kernels.compiled.arrays import laid_out, multiply_at

    out = x.new_empty(len(x), len(weight))
    whole = len(weight) - len(weight) % compiled.SIDE
    for start, stop in _slabs(whole):
        multiply_at(x, laid_out(weight[start:stop].t(), in_tiles=False), out[:, start:stop])
    if whole < len(weight):
        torch.mm(x, weight[whole:].t(), out=out[:, whole:])
    return out


def input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    """gradient [n, words] · weight [words, size] → [n, size]: of x, from that of `linear`."""
    if not _ours(weight, gradient):
        return gradient.mm(weight)
    from unrolled.layers.kernels.compiled.arrays import laid_out, multiply_at

    out = gradient.new_empty(len(gradient), weight.shape[1])
    for start, stop in _slabs(len(weight)):
        slab, first = laid_out(weight[start:stop], in_tiles=False), out.data_ptr() if start else 0
        multiply_at(gradient[:, start:stop], slab, out, first, out.stride(0))
    return out


def _ours(weight: Tensor, rows: Tensor) -> bool:
    """Whether laying out pays for one product of so many rows; size is a whole number of panels for the way back."""
    plain = weight.dtype is rows.dtype is torch.float32 and compiled.possible(weight) and compiled.possible(rows)
    alike = plain and weight.is_contiguous() and rows.stride(1) == 1 and weight.shape[0] >= compiled.SIDE
    return alike and compiled.once_pays(weight.shape, weight.dtype, len(rows))


def _slabs(words: int) -> Iterator[tuple[int, int]]:
    for start in range(0, words, SLAB):
        yield start, min(words, start + SLAB)
