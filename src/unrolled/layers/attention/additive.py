"""Additive attention: a small network with one hidden layer scores query and memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import CoveragePart
from unrolled.layers.attention.memory import Asked, Memory
from unrolled.layers.attention.normalisers import NormaliserPart
from unrolled.layers.attention.reach import ReachPart
from unrolled.layers.attention.tanh_score import tanh_score


@ATTENTIONS.register("additive")
class Additive(Attention):
    """e_j = vᵀ tanh(W_q q + W_k h_j) (Bahdanau et al. 2015, arXiv:1409.0473, A.1.2).

    W_k h_j is computed once a sentence.
    ``normalised``: e_j = g vᵀ/‖v‖ tanh(W_q q + W_k h_j + b), g a learned number that starts at 1/√size (Salimans &
    Kingma 2016, as in GNMT).
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        hidden_size: int = 256,
        normalised: bool = False,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        _at_least_one("additive", hidden_size)
        super().__init__(query_size, memory_size, hidden_size, reach=reach, normaliser=normaliser, coverage=coverage)
        self.hidden_size = hidden_size
        self.query_weight = nn.Parameter(torch.empty(hidden_size, query_size))
        self.key_weight = nn.Parameter(torch.empty(hidden_size, memory_size))
        self.vector = nn.Parameter(torch.empty(hidden_size))
        nn.init.xavier_uniform_(self.query_weight)
        nn.init.xavier_uniform_(self.key_weight)
        nn.init.uniform_(self.vector, -(hidden_size**-0.5), hidden_size**-0.5)
        self.scale = nn.Parameter(torch.tensor(hidden_size**-0.5)) if normalised else None
        self.bias = nn.Parameter(torch.zeros(hidden_size)) if normalised else None

    def keys(self, encoded: Tensor) -> Tensor:
        return functional.linear(encoded, self.key_weight, self.bias)

    def asks(self, query: Tensor) -> Asked:
        return Asked(functional.linear(query, self.query_weight), self._vector())

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        return tanh_score(functional.linear(query, self.query_weight), memory.keys, self._vector())

    def _vector(self) -> Tensor:
        return self.vector if self.scale is None else self.scale * self.vector / self.vector.norm()


@ATTENTIONS.register("concat")
class Concat(Attention):
    """e_j = vᵀ tanh(W [q, h_j]) (Luong et al. 2015, arXiv:1508.04025, §3.1, "concat").

    W [q, h_j] = W_1 q + W_2 h_j: the same network as 'additive', its two matrices in one; W_2 h_j is computed once a
    sentence.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        hidden_size: int = 256,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        _at_least_one("concat", hidden_size)
        super().__init__(query_size, memory_size, hidden_size, reach=reach, normaliser=normaliser, coverage=coverage)
        self.hidden_size = hidden_size
        self.weight = nn.Parameter(torch.empty(hidden_size, query_size + memory_size))
        self.vector = nn.Parameter(torch.empty(hidden_size))
        nn.init.xavier_uniform_(self.weight)
        nn.init.uniform_(self.vector, -(hidden_size**-0.5), hidden_size**-0.5)

    def keys(self, encoded: Tensor) -> Tensor:
        return functional.linear(encoded, self.weight[:, self.query_size :])

    def asks(self, query: Tensor) -> Asked:
        return Asked(functional.linear(query, self.weight[:, : self.query_size]), self.vector)

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        return tanh_score(self.asks(query).query, memory.keys, self.vector)


def _at_least_one(kind: str, size: int) -> None:
    if size < 1:
        raise SettingsError(f"hidden_size of the attention '{kind}' is {size}; give at least 1.")
