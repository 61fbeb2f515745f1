"""From a decoder's vector to a number for every symbol of the vocabulary, with its own weights or the embedding's."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from unrolled.layers import Embedding


class Output(nn.Module):
    """logits = W h + b, or E P h + b with E the embedding's weights (tied; Press & Wolf 2017, arXiv:1608.05859).

    P is a learned projection where a decoder's output and the embedding differ in size, and nothing where they agree.
    """

    def __init__(self, size: int, vocabulary_size: int, /, *, tied: Embedding | None = None) -> None:
        super().__init__()
        inner = size if tied is None else tied.size
        self.projection = nn.Linear(size, inner, bias=False) if inner != size else None
        self.tied = tied is not None
        self.weight = (
            nn.Parameter(nn.init.xavier_uniform_(Tensor(vocabulary_size, size))) if tied is None else tied.weight
        )
        self.bias = nn.Parameter(self.weight.new_zeros(vocabulary_size))

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits [..., vocabulary] of ``hidden`` [..., size]."""
        if self.projection is not None:
            hidden = self.projection(hidden)
        return functional.linear(hidden, self.weight, self.bias)
