"""What a model makes of where it looked: weights over the source's own positions, and words copied from them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.base.protocol import PAD, UNKNOWN


class Pointer(nn.Module):
    """p(y) = g softmax(logits)_y + (1 - g) Σ_j α_j [x_j = y],   g = σ(wᵀ o + b)

    See, Liu & Manning 2017 (arXiv:1704.04368, eq. 8 and 9), with o the decoder's output, which its readout makes of
    state, context and last symbol. ``targets`` [source vocabulary] names the target symbol that each source symbol is
    copied as: itself at first, UNKNOWN where there is no such symbol; `point` says otherwise. What is looked at and
    has no part in the text (PAD: a feature) is not copied: g is raised by (1 - g) times the weight that lies there.

    ``lent`` symbols follow both vocabularies, the k-th of the one copied as the k-th of the other: words of one source
    that have no symbol (the paper's extended vocabulary, §2.2). They are said by being copied alone.
    """

    targets: Tensor

    def __init__(self, size: int, source_vocabulary: int, target_vocabulary: int, lent: int = 0, /) -> None:
        super().__init__()
        self.gate = nn.Linear(size, 1)
        self.lent = lent
        self.vocabulary_size = target_vocabulary + lent
        same = torch.arange(source_vocabulary)
        same = same.masked_fill(same >= target_vocabulary, UNKNOWN)
        self.register_buffer("targets", torch.cat((same, torch.arange(target_vocabulary, self.vocabulary_size))))

    def point(self, targets: Sequence[int]) -> None:
        """Copy each source symbol as the target symbol at its place in ``targets``."""
        given = torch.as_tensor(targets, dtype=torch.int64, device=self.targets.device)
        if given.shape != self.targets.shape or not ((given >= 0) & (given < self.vocabulary_size)).all():
            raise UsageError(
                f"copy: {len(targets)} target symbols were given for {len(self.targets)} source symbols; give each "
                f"one, from 0 to {self.vocabulary_size - 1}."
            )
        self.targets.copy_(given)

    def forward(self, output: Tensor, logits: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
        """Log-probabilities [n, vocabulary + lent], float32 or wider, of ``output`` [n, size] and its ``logits``.

        ``weights`` [n, source] are over the source positions, ``targets`` int64 [n, source] what each is copied as.
        """
        exact = torch.promote_types(logits.dtype, torch.float32)
        written = self.gate(output).to(exact).sigmoid()
        pointed = weights.to(exact) * (1 - written)
        aside = targets == PAD
        written = written + pointed.masked_fill(~aside, 0.0).sum(dim=1, keepdim=True)
        said = functional.pad(logits.softmax(dim=-1, dtype=exact) * written, (0, self.lent))
        said = said.scatter_add(1, targets, pointed.masked_fill(aside, 0.0))
        return said.clamp_min(torch.finfo(exact).tiny).log()


def shares(mask: Tensor, reduction: int) -> Tensor:
    """Which part of its memory position's weight each source position gets, float32 [batch, source]; 0 on padding.

    ``mask`` bool [batch, source]; a memory position stands for ``reduction`` source positions, of which the real ones
    share equally.
    """
    owner = torch.arange(mask.shape[1], device=mask.device) // reduction
    real = mask.float()
    counts = real.new_zeros(real.shape[0], -(-mask.shape[1] // reduction)).index_add_(1, owner, real)
    return real / counts.clamp(min=1)[:, owner]


def spread(weights: Tensor, share: Tensor, reduction: int) -> Tensor:
    """``weights`` [batch(, time), memory positions] over the source, [batch(, time), source]; rows keep their sum."""
    wide = weights.repeat_interleave(reduction, dim=-1)[..., : share.shape[1]]
    return wide * (share if weights.dim() == 2 else share.unsqueeze(1))


def shares_of(mask: Tensor, owner: Tensor) -> Tensor:
    """As ``shares``, where ``owner`` int64 [batch, source] says which memory position each source position is of."""
    real = mask.float()
    counts = real.new_zeros(real.shape[0], int(owner.max()) + 1).scatter_add_(1, owner, real)
    return real / counts.clamp(min=1).gather(1, owner)


def spread_to(weights: Tensor, share: Tensor, owner: Tensor) -> Tensor:
    """As ``spread``, with the shares and owners of ``shares_of``."""
    if weights.dim() == 3:
        share, owner = share.unsqueeze(1), owner.unsqueeze(1).expand(-1, weights.shape[1], -1)
    return weights.gather(-1, owner) * share
