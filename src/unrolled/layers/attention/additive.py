"""Additive attention: a small network with one hidden layer scores query and memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import CoveragePart
from unrolled.layers.attention.memory import Memory
from unrolled.layers.attention.normalisers import NormaliserPart
from unrolled.layers.attention.reach import ReachPart


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
        super().__init__(query_size, memory_size, hidden_size, reach=reach, normaliser=normaliser, coverage=coverage)
        if hidden_size < 1:
            raise SettingsError(f"hidden_size of the attention 'additive' is {hidden_size}; give at least 1.")
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

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        vector = self.vector if self.scale is None else self.scale * self.vector / self.vector.norm()
        asked = functional.linear(query, self.query_weight)
        hidden = (asked.unsqueeze(2) + memory.keys.unsqueeze(1)).tanh()
        return functional.linear(hidden, vector.unsqueeze(0)).squeeze(3)
