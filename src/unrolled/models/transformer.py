"""What the layers of a Transformer are made of: heads that look, a network for each position, and residual paths."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError

Norm = Literal["pre", "post"]
Activation = Literal["relu", "gelu"]


class Heads(nn.Module):
    """head_k = softmax(Q_k K_kᵀ / √d) V_k with Q = x W_Q, K = h W_K, V = h W_V;   output = [head_1, …, head_n] W_O.

    Vaswani et al. 2017 (arXiv:1706.03762, §3.2.2); each product has a bias, W_K and W_V lie in one matrix. Keys and
    values are [batch, heads, positions, size / heads]: computed once for a source, and kept from step to step for a
    target. Oracle: `torch.nn.MultiheadAttention`.
    """

    def __init__(self, size: int, memory_size: int, /, *, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(size, size)
        self.memory = nn.Linear(memory_size, 2 * size)
        self.output = nn.Linear(size, size)
        for weight in (self.query.weight, *self.memory.weight.data.split(size), self.output.weight):
            nn.init.xavier_uniform_(weight)
        for bias in (self.query.bias, self.memory.bias, self.output.bias):
            nn.init.zeros_(bias)

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of ``memory`` [batch, positions, memory]."""
        keys, values = self.memory(memory).chunk(2, dim=-1)
        return self._split(keys), self._split(values)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """What every position of ``x`` [batch, time, size] reads, [batch, time, size].

        ``mask`` bool [batch, positions], True = real; ``causal``: position t sees the positions up to t.
        """
        read = functional.scaled_dot_product_attention(
            self._split(self.query(x)),
            keys,
            values,
            attn_mask=None if mask is None else mask[:, None, None, :],
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=causal,
        )
        return self._join(read)

    def look(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """As ``forward``, and the mean of the heads' weights [batch, time, positions], float32 or wider."""
        queries = self._split(self.query(x)) * keys.shape[-1] ** -0.5
        scores = (queries @ keys.transpose(2, 3)).masked_fill(~mask[:, None, None, :], float("-inf"))
        weights = scores.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        dropped = functional.dropout(weights, self.dropout, self.training)
        return self._join(dropped.to(values.dtype) @ values), weights.mean(dim=1)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _join(self, read: Tensor) -> Tensor:
        joined: Tensor = self.output(read.transpose(1, 2).flatten(2))
        return joined


class PerPosition(nn.Module):
    """g(x W_1 + b_1) W_2 + b_2, the same at every position (§3.3)."""

    def __init__(self, size: int, /, *, feedforward_size: int, activation: Activation, dropout: float = 0.0) -> None:
        super().__init__()
        self.activation, self.dropout = activation, dropout
        self.widen = nn.Linear(size, feedforward_size)
        self.narrow = nn.Linear(feedforward_size, size)
        for layer in (self.widen, self.narrow):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.widen(x)
        wide = functional.relu(wide) if self.activation == "relu" else functional.gelu(wide)
        narrow: Tensor = self.narrow(functional.dropout(wide, self.dropout, self.training))
        return narrow


class Around(nn.Module):
    """The residual path around a part f, with layer normalisation (Ba et al. 2016) after it or before.

    post   LN(x + dropout(f(x)))      as the paper has it (§3.1)
    pre    x + dropout(f(LN(x)))      trains without a slow start (Xiong et al. 2020, arXiv:2002.04745)
    """

    def __init__(self, size: int, /, *, norm: Norm, dropout: float = 0.0) -> None:
        super().__init__()
        self.pre, self.dropout = norm == "pre", dropout
        self.norm = nn.LayerNorm(size)

    def enter(self, x: Tensor) -> Tensor:
        """What f is given."""
        return self.norm(x) if self.pre else x

    def leave(self, x: Tensor, found: Tensor) -> Tensor:
        """What goes on, with ``found`` what f gave."""
        both = x + functional.dropout(found, self.dropout, self.training)
        return both if self.pre else self.norm(both)


def width(embedding_size: int, hidden_size: int | None, heads: int, where: str) -> int:
    """The size of every vector of a Transformer; SettingsError where the heads do not share it evenly."""
    size = hidden_size or embedding_size
    if size % heads:
        named = "hidden_size" if hidden_size else "the embedding's size"
        raise SettingsError(
            f"[{where}.heads] {heads} was given, and {named} {size} is not a multiple of it: every head has an equal "
            f"share. Possible: {', '.join(str(count) for count in range(1, min(size, 32) + 1) if size % count == 0)}."
        )
    return size
