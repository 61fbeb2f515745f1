"""A weight that every step of a loop of torch calls multiplies with."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unrolled.layers.kernels import compiled


class Repeated:
    """A weight [width, inner] in the type of products, for so many ``steps``: laid out in tiles once where that pays.

    x [rows, inner] and what is added up, [rows, width] in the type of sums, have their columns side by side.
    """

    def __init__(self, weight: Tensor, steps: int) -> None:
        self.weight = weight
        worthwhile = compiled.tiles_worthwhile(weight.shape, weight.dtype, steps)
        self.in_tiles = worthwhile and compiled.possible(weight)

    def add(self, x: Tensor, total: Tensor) -> None:
        """total += x · weightᵀ."""
        if self.in_tiles:
            _multiply(x, self._ahead, total, total.data_ptr(), total.stride(0))
        else:
            total += torch.mm(x, self.weight.t())

    def times(self, x: Tensor, bias: Tensor) -> Tensor:
        """x · weightᵀ + ``bias`` [width], in the type of sums."""
        if not self.in_tiles:
            return torch.mm(x, self.weight.t()) + bias
        return _multiply(x, self._ahead, x.new_empty(len(x), len(self.weight), dtype=bias.dtype), bias.data_ptr(), 0)

    def back(self, gradient: Tensor) -> Tensor:
        """gradient [rows, width] · weight → [rows, inner]: of x, from that of x · weightᵀ."""
        if not self.in_tiles:
            return torch.mm(gradient, self.weight)
        out = gradient.new_empty(len(gradient), self.weight.shape[1], dtype=torch.float32)
        return _multiply(gradient, self._behind, out, 0, 0)

    @cached_property
    def _ahead(self) -> Any:
        return self._laid_out(turned=True)

    @cached_property
    def _behind(self) -> Any:
        return self._laid_out(turned=False)

    def _laid_out(self, *, turned: bool) -> Any:
        from unrolled.layers.kernels.compiled.arrays import array
        from unrolled.layers.kernels.compiled.tiles import laid_out

        return laid_out(array(self.weight.contiguous()), turned)


def _multiply(x: Tensor, tiles: Any, out: Tensor, first: int, first_apart: int) -> Tensor:
    """out = x · tiles, plus what stands at the address ``first``; see `tiles.multiply_at`."""
    from unrolled.layers.kernels.compiled.tiles import multiply_at

    if x.stride(1) != 1 or out.stride(1) != 1:
        raise RuntimeError("a product in tiles wants the columns of its tensors side by side")
    if x.dtype is not torch.bfloat16 or out.dtype is not torch.float32:
        raise RuntimeError(f"a product in tiles makes float32 of bfloat16, and was given {x.dtype} for {out.dtype}")
    multiply_at(len(x), x.data_ptr(), 2 * x.stride(0), tiles, out.data_ptr(), 4 * out.stride(0), first, 4 * first_apart)
    return out
