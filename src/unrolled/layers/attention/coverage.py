"""Coverage: what the steps so far have looked at moves the keys, so that the next one knows."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers.attention.memory import Memory
from unrolled.layers.cells.base import State


class Coverage(nn.Module, abc.ABC):
    """k_ij = k_j + W_c C_{i-1,j}: a summary C of the weights so far enters the score through the keys.

    In an additive score that is the term of both papers, vᵀ tanh(W_q q + W_k h_j + W_c C_j).
    """

    states: ClassVar[int]
    """Number of tensors that `initial` gives."""

    @abc.abstractmethod
    def initial(self, memory: Memory) -> State:
        """The state before the first step, the summary first."""

    @abc.abstractmethod
    def shift(self, state: State) -> Tensor:
        """What to add to the keys, [batch, source, key]."""

    @abc.abstractmethod
    def update(self, query: Tensor, weights: Tensor, state: State) -> State:
        """The state after a step: its ``query`` [batch, query] and its ``weights`` [batch, source]."""


COVERAGES: Registry[Coverage] = Registry("coverage")
CoveragePart = Annotated[Part | None, COVERAGES]
