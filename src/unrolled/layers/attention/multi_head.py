"""Multi-head attention: several scaled products side by side, each in a projection of its own."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import CoveragePart
from unrolled.layers.attention.memory import Memory
from unrolled.layers.attention.normalisers import NormaliserPart, Softmax
from unrolled.layers.attention.reach import Causal, Global, ReachPart
from unrolled.layers.draws import dropout
from unrolled.layers.surroundings import without_autocast


@ATTENTIONS.register("multi_head")
class MultiHead(Attention):
    """head_k = softmax(Q_k K_kᵀ / √d) V_k,  Q = W_Q q + b_Q,  K = W_K h + b_K,  V = W_V h + b_V;  c = W_O [heads] + b_O

    Vaswani et al. 2017 (arXiv:1706.03762, §3.2.2). ``size`` is that of Q, K and V, None for the query's; d = size /
    ``heads``. K and V are computed once a sentence; c has the memory's size. ``dropout`` is the share of weights left
    out of c in training. The weights given out are whole, and the mean of the heads'; those are ``Attended.heads``.
    Oracle: `torch.nn.MultiheadAttention`.
    """

    projects_values = True

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        heads: int = 4,
        size: int | None = None,
        dropout: float = 0.0,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        size = query_size if size is None else size
        if heads < 1 or size < 1 or size % heads:
            raise SettingsError(f"the attention 'multi_head' cannot share {size} numbers among {heads} heads evenly.")
        if not 0 <= dropout < 1:
            raise SettingsError(f"dropout of the attention 'multi_head' is {dropout}; it must be in [0, 1).")
        super().__init__(query_size, memory_size, size, reach=reach, normaliser=normaliser, coverage=coverage)
        self.heads = heads
        self.dropout = dropout
        self.query, self.key = nn.Linear(query_size, size), nn.Linear(memory_size, size)
        self.value, self.output = nn.Linear(memory_size, size), nn.Linear(size, memory_size)
        for layer in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def keys(self, encoded: Tensor) -> Tensor:
        keys: Tensor = self.key(encoded)
        return keys

    def values(self, encoded: Tensor) -> Tensor:
        values: Tensor = self.value(encoded)
        return values

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        queries = self._split(self.query(query))
        return queries * queries.shape[-1] ** -0.5 @ self._split(memory.keys).transpose(2, 3)

    def read(self, weights: Tensor, memory: Memory) -> Tensor:
        kept = dropout(weights, self.dropout, self.training)
        return self._join(kept.to(memory.values.dtype) @ self._split(memory.values))

    def context(self, query: Tensor, memory: Memory) -> Tensor:
        """The context of ``query`` [batch, time, query] from its first step on, without weights: one fused operation
        where reach and normaliser allow it."""
        fused = type(self.normaliser) is Softmax and type(self.reach) in (Global, Causal) and self.coverage is None
        if not fused:
            return self(query, memory).context
        mask = memory.mask.unsqueeze(1)
        if type(self.reach) is Causal:
            steps = torch.arange(query.shape[1], device=mask.device)
            mask = mask & (memory.places().unsqueeze(1) <= steps.unsqueeze(1))
        return self.fused(query, memory.keys, memory.values, mask.unsqueeze(1))

    def fused(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """The context by `scaled_dot_product_attention`. ``mask`` bool, broadcast to [batch, heads, time, source].

        Where a processor has to find gradients in half precision it works in float32: its backward of the fused
        operation is five times slower in bfloat16.
        """
        parts = [self._split(self.query(query)), self._split(keys), self._split(values)]
        half = parts[0].dtype.itemsize < 4
        wide = query.device.type == "cpu" and half and torch.is_grad_enabled()
        with without_autocast(query) if wide else nullcontext():
            queries, keys, values = (part.float() for part in parts) if wide else parts
            rate = self.dropout if self.training else 0.0
            read = functional.scaled_dot_product_attention(queries, keys, values, mask, rate, causal)
        return self._join(read.to(parts[0].dtype))

    def _split(self, x: Tensor) -> Tensor:
        """[batch, positions, size] as [batch, heads, positions, size / heads]."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def _join(self, read: Tensor) -> Tensor:
        joined: Tensor = self.output(read.transpose(1, 2).flatten(2))
        return joined
