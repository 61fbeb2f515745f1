"""Multiplicative attention: the score is a product of query and memory."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import CoveragePart
from unrolled.layers.attention.memory import Asked, Memory
from unrolled.layers.attention.normalisers import NormaliserPart
from unrolled.layers.attention.reach import ReachPart


def _same(kind: str, query_size: int, memory_size: int) -> int:
    if query_size != memory_size:
        raise SettingsError(
            f"the attention '{kind}' needs equal sizes; the query has {query_size}, the memory {memory_size}. "
            "Use 'bilinear' or 'additive', or make the sizes equal."
        )
    return memory_size


@ATTENTIONS.register("dot")
class Dot(Attention):
    """e_j = q · h_j (Luong et al. 2015, arXiv:1508.04025, §3.1, "dot"). The sizes must be equal."""

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        size = _same("dot", query_size, memory_size)
        super().__init__(query_size, memory_size, size, reach=reach, normaliser=normaliser, coverage=coverage)

    def asks(self, query: Tensor) -> Asked:
        return Asked(query)

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        return torch.bmm(query, memory.keys.transpose(1, 2))


@ATTENTIONS.register("scaled_dot")
class ScaledDot(Attention):
    """e_j = q · h_j / √d (Vaswani et al. 2017, arXiv:1706.03762, eq. 1), d the size of both."""

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        size = _same("scaled_dot", query_size, memory_size)
        super().__init__(query_size, memory_size, size, reach=reach, normaliser=normaliser, coverage=coverage)

    def asks(self, query: Tensor) -> Asked:
        return Asked(query * (1 / math.sqrt(self.query_size)))

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        return torch.bmm(self.asks(query).query, memory.keys.transpose(1, 2))


@ATTENTIONS.register("bilinear")
class Bilinear(Attention):
    """e_j = q W_s h_j (Luong et al. 2015, §3.1, "general"). W_s h_j is computed once a sentence; sizes may differ."""

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        super().__init__(query_size, memory_size, query_size, reach=reach, normaliser=normaliser, coverage=coverage)
        self.weight = nn.Parameter(torch.empty(query_size, memory_size))
        nn.init.xavier_uniform_(self.weight)

    def keys(self, encoded: Tensor) -> Tensor:
        return nn.functional.linear(encoded, self.weight)

    def asks(self, query: Tensor) -> Asked:
        return Asked(query)

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        return torch.bmm(query, memory.keys.transpose(1, 2))
