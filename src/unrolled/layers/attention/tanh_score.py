"""The score of a small network over all steps at once, in bounded memory: its hidden layer is never kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

BLOCK = 2**19
"""Numbers of the hidden layer that are held at once: two megabytes in float32, what a processor keeps near."""


def tanh_score(asked: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """e_ij = vᵀ tanh(a_i + k_j), [batch, time, source], of a [batch, time, hidden] and k [batch, source, hidden].

    In float32 or wider, also under autocast: on a processor the tanh of bfloat16 is several times slower, and so is the
    product that reads it. The hidden layer [batch, time, source, hidden] is made in blocks of steps, and made again on
    the way back.
    """
    with torch.autocast(asked.device.type, enabled=False):
        wide = torch.promote_types(torch.promote_types(asked.dtype, keys.dtype), torch.float32)
        asked, keys, vector = asked.to(wide), keys.to(wide), vector.to(wide)
        if torch.compiler.is_compiling():
            return (asked.unsqueeze(2) + keys.unsqueeze(1)).tanh() @ vector
        return _TanhScore.apply(asked, keys, vector)


def _blocks(asked: Tensor, keys: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """The hidden layer, block after block of steps; a block may be written to."""
    steps = max(1, BLOCK // max(1, keys.numel()))
    for first in range(0, asked.shape[1], steps):
        block = slice(first, first + steps)
        yield block, (asked[:, block].unsqueeze(2) + keys.unsqueeze(1)).tanh_()


class _TanhScore(Function):
    @staticmethod
    def forward(ctx: Any, asked: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(asked, keys, vector)
        scores = asked.new_empty(*asked.shape[:2], keys.shape[1])
        for block, hidden in _blocks(asked, keys):
            scores[:, block] = hidden @ vector
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """With s = tanh²:  v̇ = Σ_ij ė_ij tanh_ij,  ȧ_i = v * Σ_j ė_ij (1 - s_ij),  k̇_j = v * Σ_i ė_ij (1 - s_ij)."""
        asked, keys, vector = ctx.saved_tensors
        with torch.autocast(asked.device.type, enabled=False):
            of_vector = torch.zeros_like(vector)
            of_asked = gradient.sum(2, keepdim=True).repeat(1, 1, len(vector))
            of_keys = gradient.sum(1).unsqueeze(2).repeat(1, 1, len(vector))
            for block, hidden in _blocks(asked, keys):
                part = gradient[:, block]
                of_vector += hidden.flatten(0, 2).t() @ part.flatten()
                squares = hidden.square_()
                of_asked[:, block] -= (part.unsqueeze(2) @ squares).squeeze(2)
                for step, square in zip(part.unbind(1), squares.unbind(1), strict=True):
                    of_keys.addcmul_(square, step.unsqueeze(2), value=-1)
            return of_asked.mul_(vector), of_keys.mul_(vector), of_vector
