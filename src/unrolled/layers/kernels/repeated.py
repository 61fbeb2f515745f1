"""A weight that every step of a loop of torch calls multiplies with."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unrolled.layers.kernels import compiled


class Repeated:
    """A weight [width, inner] in the type of products, for so many ``steps``: laid out once for all where that pays.

    x [rows, inner] and what is added up, [rows, width] in the type of sums, have their columns side by side.
    """

    def __init__(self, weight: Tensor, steps: int) -> None:
        self.weight, self.steps = weight, steps

    def add(self, x: Tensor, total: Tensor) -> None:
        """total += x · weightᵀ."""
        if self._ahead is None:
            total += torch.mm(x, self.weight.t())
        else:
            _multiply(x, self._ahead, total, total.data_ptr(), total.stride(0))

    def times(self, x: Tensor, bias: Tensor) -> Tensor:
        """x · weightᵀ + ``bias`` [width], in the type of sums."""
        if self._ahead is None:
            return torch.mm(x, self.weight.t()) + bias
        return _multiply(x, self._ahead, x.new_empty(len(x), len(self.weight), dtype=bias.dtype), bias.data_ptr(), 0)

    def back(self, gradient: Tensor) -> Tensor:
        """gradient [rows, width] · weight → [rows, inner]: of x, from that of x · weightᵀ."""
        if self._behind is None:
            return torch.mm(gradient, self.weight)
        out = gradient.new_empty(len(gradient), self.weight.shape[1], dtype=torch.float32)
        return _multiply(gradient, self._behind, out, 0, 0)

    @cached_property
    def _ahead(self) -> Any:
        return self._laid_out(self.weight.t())

    @cached_property
    def _behind(self) -> Any:
        return self._laid_out(self.weight)

    def _laid_out(self, weight: Tensor) -> Any:
        if not (compiled.possible(weight) and compiled.laying_out_pays(weight.shape, weight.dtype, self.steps)):
            return None
        from unrolled.layers.kernels.compiled.arrays import laid_out

        plain = weight if 1 in weight.stride() else weight.contiguous()
        return laid_out(plain, in_tiles=plain.dtype is torch.bfloat16)


def _multiply(x: Tensor, weight: Any, out: Tensor, first: int, first_apart: int) -> Tensor:
    from unrolled.layers.kernels.compiled.arrays import multiply_at

    return multiply_at(x, weight, out, first, first_apart)
