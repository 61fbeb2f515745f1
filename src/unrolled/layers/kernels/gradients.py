"""What a way back is made of, whatever the cell: the gradients of a product's operands, the slopes of σ and tanh."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.kernels import compiled

Factors = tuple[tuple[Tensor, Tensor], ...]
"""Pairs (gradient [n, rows], input [n, hidden]) whose products gradientᵀ·input, stacked, are a weight's gradient."""


def weight_gradient(factors: Factors) -> Tensor:
    """The stacked products gradientᵀ·input; of bfloat16 in float32, where a product sums in it."""
    first = factors[0][0]
    pairs = [(gradient, given.to(gradient.dtype)) for gradient, given in factors]
    if compiled.possible(first) and compiled.sums_of(first.dtype):  # as the others: they are parts of one
        from unrolled.layers.kernels.compiled.sums import sum_of_products

        widths = [gradient.shape[1] for gradient, _ in pairs]
        total = pairs[0][0].new_empty(sum(widths), pairs[0][1].shape[1], dtype=torch.float32)
        for part, (gradient, given) in zip(total.split_with_sizes(widths), pairs, strict=True):
            sum_of_products(gradient, given, part)
        return total
    parts = [gradient.t() @ given for gradient, given in pairs]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    """gradient [n, width] · weight [width, size]: of x, from that of x · weightᵀ; in their type, or in float32."""
    rows, width = gradient.shape[0], weight.shape[1]
    if not (compiled.possible(weight) and compiled.once_pays(weight.shape, weight.dtype, rows)):
        return gradient @ weight
    from unrolled.layers.kernels.compiled.arrays import laid_out, multiply_at

    out = gradient.new_empty(rows, width, dtype=torch.float32)
    return multiply_at(gradient, laid_out(weight, in_tiles=weight.dtype is torch.bfloat16), out)


def sigmoid_slope(factor: Tensor, y: Tensor, out: Tensor) -> None:
    """out = factor · y · (1 - y): ``factor`` times the derivative of y = σ(·)."""
    torch.ops.aten.sigmoid_backward.grad_input(factor, y, grad_input=out)


def tanh_slope(factor: Tensor, y: Tensor, out: Tensor) -> None:
    """out = factor · (1 - y²): ``factor`` times the derivative of y = tanh(·)."""
    torch.ops.aten.tanh_backward.grad_input(factor, y, grad_input=out)
