"""Cross-entropy as a sum over symbols, so that any split of a batch adds up."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from unrolled.base.errors import UsageError

BLOCK = 1 << 18
"""Numbers that are worked on at a time: what stays in a processor's cache."""


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Σ over rows of the cross-entropy (natural log) of ``targets`` [n] under softmax(``logits`` [n, vocabulary]).

    With ``smoothing`` ε in [0, 1) the target distribution is (1 - ε) on the gold symbol plus ε / vocabulary on every
    one (Szegedy et al. 2016). Computed in float32 or wider whatever the logits' type. On a processor the gradient is
    taken on the way, some rows at a time: a vocabulary's worth of float32 is then never written to memory.
    """
    if logits.dim() != 2 or targets.shape != logits.shape[:1]:
        raise UsageError(
            f"logits have shape {list(logits.shape)} and targets {list(targets.shape)}; "
            "they must be [n, vocabulary] and [n]."
        )
    if not 0.0 <= smoothing < 1.0:
        raise UsageError(f"smoothing {smoothing} was given; it must be at least 0 and below 1.")
    if logits.device.type == "cpu":
        return _ByBlocks.apply(logits, targets, smoothing)
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(exact, targets, reduction="sum", label_smoothing=smoothing)


class _ByBlocks(Function):
    """-Σ_i log p_i,gold, with the gradient p - onehot of each block of rows while it is in the cache."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        work = torch.promote_types(logits.dtype, torch.float32)
        rows, vocabulary = max(1, BLOCK // max(1, logits.shape[1])), logits.shape[1]
        wanted = ctx.needs_input_grad[0]
        gradient = torch.empty_like(logits) if wanted else None
        total = torch.zeros((), dtype=work)
        for start in range(0, len(logits), rows):
            block, gold = logits[start : start + rows].to(work), targets[start : start + rows].unsqueeze(1)
            said = block.log_softmax(dim=1)
            total -= (1 - smoothing) * said.gather(1, gold).sum()
            if smoothing:
                total -= smoothing / vocabulary * said.sum()
            if gradient is not None:
                said.exp_()
                if smoothing:
                    said.sub_(smoothing / vocabulary)
                said.scatter_add_(1, gold, said.new_full(gold.shape, smoothing - 1))
                gradient[start : start + rows] = said
        ctx.save_for_backward(*(() if gradient is None else (gradient,)))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient if scale == 1 else gradient * scale.to(gradient.dtype), None, None
