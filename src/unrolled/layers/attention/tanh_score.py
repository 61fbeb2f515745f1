"""The score of a small network over all steps at once, in bounded memory: its hidden layer is never kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import autocast_on, traced, without_autocast

BLOCK = 2**17
"""Numbers of the hidden layer that a processor is given at once: half a megabyte in float32, what it keeps near."""


def tanh_score(asked: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """e_ij = vᵀ tanh(a_i + k_j), [batch, time, source], of a [batch, time, hidden] and k [batch, source, hidden].

    In float32 or wider, also under autocast: on a processor the tanh of bfloat16 is several times slower, and so is the
    product that reads it. The hidden layer [batch, time, source, hidden] is made in blocks, a few rows of one step, all
    in the same memory, and made again on the way back.
    """
    if autocast_on(asked):
        with without_autocast(asked):
            return tanh_score(asked, keys, vector)
    wide = torch.promote_types(torch.promote_types(asked.dtype, keys.dtype), torch.float32)
    asked, keys, vector = asked.to(wide), keys.to(wide), vector.to(wide)
    if traced(asked) or (asked.shape[1] == 1 and not torch.is_grad_enabled()):
        return (asked.unsqueeze(2) + keys.unsqueeze(1)).tanh() @ vector
    return _TanhScore.apply(asked, keys, vector)


def _blocks(asked: Tensor, keys: Tensor) -> Iterator[tuple[slice, int, Tensor]]:
    """The hidden layer by rows and step; a block may be written to, and is gone when the next one comes."""
    rows = len(keys)
    if keys.device.type == "cpu" and asked.shape[1] > 1:
        rows = max(1, BLOCK // max(1, keys[0].numel()))
    memory = torch.empty_like(keys[:rows])
    for first in range(0, len(keys), rows):
        some = slice(first, first + rows)
        now = keys[some]
        for step in range(asked.shape[1]):
            yield some, step, torch.add(now, asked[some, step : step + 1], out=memory[: len(now)]).tanh_()


class _TanhScore(Function):
    @staticmethod
    def forward(ctx: Any, asked: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
        ctx.save_for_backward(asked, keys, vector)
        scores = asked.new_empty(*asked.shape[:2], keys.shape[1])
        for rows, step, hidden in _blocks(asked, keys):
            scores[rows, step] = hidden @ vector
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """With s = tanh²:  v̇ = Σ_ij ė_ij tanh_ij,  ȧ_i = v * Σ_j ė_ij (1 - s_ij),  k̇_j = v * Σ_i ė_ij (1 - s_ij)."""
        asked, keys, vector = ctx.saved_tensors
        with without_autocast(asked):
            of_vector = torch.zeros_like(vector)
            of_asked = gradient.sum(2, keepdim=True).repeat(1, 1, len(vector))
            of_keys = gradient.sum(1).unsqueeze(2).repeat(1, 1, len(vector))
            for rows, step, hidden in _blocks(asked, keys):
                part = gradient[rows, step]
                of_vector.addmv_(hidden.flatten(0, 1).t(), part.flatten())
                squares = hidden.square_()
                of_asked[rows, step] -= torch.bmm(part.unsqueeze(1), squares).squeeze(1)
                of_keys[rows].addcmul_(squares, part.unsqueeze(2), value=-1)
            return of_asked.mul_(vector), of_keys.mul_(vector), of_vector
