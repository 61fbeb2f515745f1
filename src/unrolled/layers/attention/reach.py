"""Reach: which positions a query may look at, as a number to add to the scores, -∞ where it may not."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers.attention.memory import Memory
from unrolled.layers.cells.base import State


class Reach(nn.Module, abc.ABC):
    """Positions are counted among the real ones of each row, 0..S-1, so padding moves no window."""

    states: ClassVar[int] = 0
    """Number of tensors that `initial` gives."""

    turns_back: ClassVar[bool] = False
    """Whether the last position within reach may be an earlier one than a step before."""

    def initial(self, _memory: Memory) -> State:
        """The state before the first step."""
        return ()

    @abc.abstractmethod
    def forward(self, query: Tensor, memory: Memory, state: State) -> tuple[Tensor | None, State]:
        """What to add to the scores of ``query`` [batch, time, query]: [batch, time, source], None for nothing."""


REACHES: Registry[Reach] = Registry("reach")
ReachPart = Annotated[Part, REACHES]


@REACHES.register("global")
class Global(Reach):
    """Every step sees every position (Bahdanau et al. 2015; the word is Luong's)."""

    def __init__(self, _query_size: int, /) -> None:
        super().__init__()

    def forward(self, _query: Tensor, _memory: Memory, state: State) -> tuple[Tensor | None, State]:
        return None, state
