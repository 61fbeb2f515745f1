"""Attention by place alone: the query says which positions it wants, without a look at what stands there."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import CoveragePart
from unrolled.layers.attention.memory import Memory
from unrolled.layers.attention.normalisers import NormaliserPart
from unrolled.layers.attention.reach import ReachPart


@ATTENTIONS.register("location")
class Location(Attention):
    """e = W q, one score for each of ``positions`` places (Luong et al. 2015, arXiv:1508.04025, §3.1, "location").

    A row's j-th real position has the j-th score. UsageError where a memory is longer than ``positions``. Coverage
    enters a score by the keys, and there are none here: it is refused.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        /,
        *,
        positions: int = 200,
        reach: ReachPart = "global",
        normaliser: NormaliserPart = "softmax",
        coverage: CoveragePart = None,
    ) -> None:
        if coverage is not None:
            raise SettingsError(
                "the attention 'location' does not look at its memory, so no coverage can enter its score. "
                "Leave the coverage out, or use another attention, e.g. 'additive'."
            )
        if positions < 1:
            raise SettingsError(f"positions of the attention 'location' is {positions}; give at least 1.")
        super().__init__(query_size, memory_size, 0, reach=reach, normaliser=normaliser, coverage=None)
        self.weight = nn.Parameter(torch.empty(positions, query_size))
        nn.init.xavier_uniform_(self.weight)

    def keys(self, encoded: Tensor) -> Tensor:
        if encoded.shape[1] > len(self.weight):
            raise UsageError(
                f"encoded of the attention Location has {encoded.shape[1]} positions; it knows {len(self.weight)}. "
                "Raise its setting 'positions', or cut the source."
            )
        return encoded[:, :, :0]

    def score(self, query: Tensor, memory: Memory) -> Tensor:
        places = memory.places().clamp(min=0).unsqueeze(1)
        return functional.linear(query, self.weight).gather(2, places.expand(-1, query.shape[1], -1))
