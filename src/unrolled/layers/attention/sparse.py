"""Two sparse relatives of softmax: weights that add up to 1, most of them exactly 0. Derivatives by hand."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import followed


def sparsemax(scores: Tensor) -> Tensor:
    """The point of the simplex nearest to the scores: α_j = max(e_j - τ, 0), τ such that Σ_j α_j = 1.

    Over the last axis. Martins & Astudillo 2016 (arXiv:1602.02068, algorithm 1). A score of -∞ gets 0.
    """
    return _sparsemax(scores) if followed(scores) else _Sparsemax.apply(scores)


def entmax15(scores: Tensor) -> Tensor:
    """Half-way between softmax and sparsemax: α_j = max(e_j / 2 - τ, 0)², τ such that Σ_j α_j = 1.

    Over the last axis. Peters, Niculae & Martins 2019 (arXiv:1905.05702, algorithm 2). A score of -∞ gets 0.
    """
    return _entmax15(scores) if followed(scores) else _Entmax15.apply(scores)


def _below_zero(scores: Tensor) -> Tensor:
    """``scores`` less the greatest, cut at -2: both thresholds lie in [-1, 0), so what is below has weight 0 anyway."""
    return (scores - scores.amax(-1, keepdim=True)).clamp(min=-2)


def _counts(scores: Tensor) -> Tensor:
    return torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)


def _sparsemax(scores: Tensor) -> Tensor:
    scores = _below_zero(scores)
    ordered = scores.sort(dim=-1, descending=True).values
    sums = ordered.cumsum(-1)
    size = (1 + _counts(scores) * ordered > sums).sum(-1, keepdim=True)
    threshold = (sums.gather(-1, size - 1) - 1) / size
    return (scores - threshold).clamp(min=0)


def _entmax15(scores: Tensor) -> Tensor:
    scores = _below_zero(scores / 2)
    ordered = scores.sort(dim=-1, descending=True).values
    counts = _counts(scores)
    mean = ordered.cumsum(-1) / counts
    spread = ordered.square().cumsum(-1) - counts * mean.square()
    thresholds = mean - ((1 - spread) / counts).clamp(min=0).sqrt()
    kept = scores >= ordered.gather(-1, (thresholds <= ordered).sum(-1, keepdim=True) - 1)
    return (scores - _threshold(scores, kept)).clamp(min=0).square()


class _Sparsemax(Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        weights = _sparsemax(scores)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """ė_j = α̇_j less the mean of α̇ over the support, 0 outside it."""
        (weights,) = ctx.saved_tensors
        support = (weights > 0).to(gradient.dtype)
        mean = (gradient * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
        return (gradient - mean) * support


class _Entmax15(Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        weights = _entmax15(scores)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """With s = √α:  ė = s * (α̇ - Σ_j s_j α̇_j / Σ_j s_j)."""
        (weights,) = ctx.saved_tensors
        roots = weights.sqrt()
        mean = (gradient * roots).sum(-1, keepdim=True) / roots.sum(-1, keepdim=True)
        return (gradient - mean) * roots


def _threshold(scores: Tensor, kept: Tensor) -> Tensor:
    """τ of the scores that are ``kept``, from deviations: differences of sums of squares lose half the digits."""
    size = kept.sum(-1, keepdim=True)
    mean = scores.masked_fill(~kept, 0).sum(-1, keepdim=True) / size
    spread = (scores - mean).masked_fill(~kept, 0).square().sum(-1, keepdim=True)
    return mean - ((1 - spread) / size).clamp(min=0).sqrt()
