"""A gate on what an attention reads: at each step the query says how much of the context counts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.layers.attention.base import Attention
from unrolled.layers.attention.memory import Attended, Memory
from unrolled.layers.cells.checks import State


class Gated(nn.Module):
    """c = β Σ_j α_j h_j,  β = σ(wᵀ q + b)   (Xu et al. 2015, arXiv:1502.03044, §4.2.1)

    A word that no place shows ("of", the end) can be written with a closed gate, and need not pull the weights
    anywhere. The weights that are returned are α. The gate begins half open.
    """

    def __init__(self, attention: Attention, /) -> None:
        super().__init__()
        self.attention = attention
        self.gate = nn.Linear(attention.query_size, 1)

    @property
    def context_size(self) -> int:
        """Size of the context that `forward` returns."""
        return self.attention.context_size

    def remember(self, encoded: Tensor, mask: Tensor | None = None) -> Memory:
        """As `Attention.remember`."""
        return self.attention.remember(encoded, mask)

    def initial(self, memory: Memory) -> State:
        """As `Attention.initial`."""
        return self.attention.initial(memory)

    def forward(self, query: Tensor, memory: Memory, state: State | None = None) -> Attended:
        """As `Attention.forward`, the context times β."""
        seen: Attended = self.attention(query, memory, state)
        opened = torch.sigmoid(self.gate(query))
        return seen._replace(context=seen.context * opened.to(seen.context.dtype))
