"""Pooling: a sequence becomes one vector, the mean of its positions weighted by how much each matters."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers.attention.base import ATTENTIONS
from unrolled.layers.attention.memory import Attended


class AttentionPooling(nn.Module):
    """c = Σ_j α_j h_j, α = softmax_j score(u, h_j), u a learned query that asks every sequence the same.

    With the attention 'additive' the score is vᵀ tanh(W h_j + b), as in Yang et al. 2016 (Hierarchical Attention
    Networks, eqs. 5-7), b = W_q u; with 'multi_head' it is the pooling of Lee et al. 2019 (arXiv:1810.00825) with one
    seed. Any attention whose state is empty or unused at the first step will do.
    """

    def __init__(self, size: int, /, *, attention: Annotated[Part, ATTENTIONS] = "additive") -> None:
        super().__init__()
        self.attention = ATTENTIONS.build(attention, size, size, where="attention")
        self.query = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))

    @property
    def output_size(self) -> int:
        """Size of the pooled vector."""
        return self.attention.context_size

    def forward(self, encoded: Tensor, mask: Tensor | None = None) -> Attended:
        """``context`` [batch, size] and ``weights`` [batch, source] of ``encoded`` [batch, source, size].

        ``mask`` bool [batch, source], True = real, None = all. UsageError as `Attention.remember`.
        """
        memory = self.attention.remember(encoded, mask)
        return self.attention(self.query.expand(encoded.shape[0], -1), memory)
