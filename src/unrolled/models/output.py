"""From a decoder's vector to a number for every symbol of the vocabulary, with its own weights or the embedding's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn import functional

from unrolled.layers import Embedding
from unrolled.layers.cells.checks import product_type
from unrolled.layers.kernels import steps
from unrolled.layers.kernels.tiled import TiledWeight
from unrolled.layers.likeliest import FEW, likeliest
from unrolled.layers.loss import ROUND, linear_cross_entropy
from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import traced


class Output(nn.Module):
    """logits = W h + b, or E P h + b with E the embedding's weights (tied; Press & Wolf 2017, arXiv:1608.05859).

    P is a learned projection where a decoder's output and the embedding differ in size, and nothing where they agree.
    """

    def __init__(self, size: int, vocabulary_size: int, /, *, tied: Embedding | None = None) -> None:
        super().__init__()
        self.size = size
        inner = size if tied is None else tied.size
        self.projection = nn.Linear(size, inner, bias=False) if inner != size else None
        self.tied = tied is not None
        self.weight = (
            nn.Parameter(nn.init.xavier_uniform_(Tensor(vocabulary_size, size))) if tied is None else tied.weight
        )
        self.bias = nn.Parameter(self.weight.new_zeros(vocabulary_size))

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ cross-entropy of ``targets`` [n] under softmax(logits of ``hidden`` [n, size]), which are never all held.

        What `unrolled.layers.cross_entropy` says of the logits, smoothing too, in a fraction of the memory.
        """
        if self.projection is not None:
            hidden = self.projection(hidden)
        return linear_cross_entropy(hidden, self.weight, self.bias, targets, smoothing)

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits [n, vocabulary] of ``hidden`` [n, size]."""
        if self.projection is not None:
            hidden = self.projection(hidden)
        if isinstance(self.weight, TiledWeight):
            made = steps.product((hidden,), self.weight, self.bias, apart=True)
            return self.weight.rows(hidden, self.bias) if made is None else made
        plain = product_type(hidden) is not torch.bfloat16 or traced(hidden)
        if plain or len(hidden) % ROUND == 0:
            return functional.linear(hidden, self.weight, self.bias)
        rows = len(hidden)
        filled = functional.pad(hidden, (0, 0, 0, -rows % ROUND))
        return _FirstRows.apply(functional.linear(filled, self.weight, self.bias), rows)

    def likeliest(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """What `unrolled.layers.likeliest` says of the logits, which are not all held where compiled code finds it."""
        if isinstance(self.weight, TiledWeight) and k <= FEW:
            narrow = hidden if self.projection is None else self.projection(hidden)
            made = steps.likeliest(narrow, self.weight, self.bias, k)
            if made is not None:
                return made
        return likeliest(self(hidden).float(), k)


class _FirstRows(Function):
    """The first rows of a matrix; the gradient is filled up with zeros in one pass over memory."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, rows: int) -> Tensor:
        ctx.filled = len(matrix)
        return matrix[:rows]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        rows = len(gradient)
        filled = gradient.new_empty(ctx.filled, gradient.shape[1])
        filled[:rows] = gradient
        filled[rows:] = 0
        return filled, None
