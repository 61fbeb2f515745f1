"""Normalisers: from scores to weights that sum to 1."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers.cells.base import State


class Normaliser(nn.Module, abc.ABC):
    """α = normalise(e) over the last axis. A position whose score is -∞ gets exactly 0, in value and gradient."""

    states: ClassVar[int] = 0
    """Number of tensors that `initial` gives."""

    moves_forward: ClassVar[bool] = False
    """Whether a step can only look where the last one looked, or later."""

    def initial(self, _mask: Tensor) -> State:
        """The state before the first step; ``mask`` bool [batch, source] or [batch, heads, source]."""
        return ()

    @abc.abstractmethod
    def forward(self, scores: Tensor, state: State) -> tuple[Tensor, State]:
        """Weights of ``scores``, float32 or wider, [batch, time, source] or [batch, heads, time, source]."""


NORMALISERS: Registry[Normaliser] = Registry("normaliser")
NormaliserPart = Annotated[Part, NORMALISERS]


@NORMALISERS.register("softmax")
class Softmax(Normaliser):
    """α_j = exp(e_j) / Σ_k exp(e_k): every real position gets some weight."""

    def forward(self, scores: Tensor, state: State) -> tuple[Tensor, State]:
        return scores.softmax(-1), state
