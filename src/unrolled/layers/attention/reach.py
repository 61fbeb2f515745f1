"""Reach: which positions a query may look at, as a number to add to the scores, -∞ where it may not."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part, Registry
from unrolled.layers.attention.memory import Memory
from unrolled.layers.cells.checks import State


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


class _Stepwise(Reach):
    """A reach that depends on the number of the step, which is its state: int64 [batch], 0 at first."""

    states = 1

    def __init__(self, _query_size: int, /) -> None:
        super().__init__()

    def initial(self, memory: Memory) -> State:
        return (memory.lengths().zero_(),)

    def forward(self, query: Tensor, memory: Memory, state: State) -> tuple[Tensor | None, State]:
        (first,) = state
        steps = first.unsqueeze(1) + torch.arange(query.shape[1], device=first.device)
        return _outside_is_minus_infinity(self.sees(steps.unsqueeze(2), memory)), (first + query.shape[1],)

    @abc.abstractmethod
    def sees(self, steps: Tensor, memory: Memory) -> Tensor:
        """bool [batch, time, source]: whether a position is within reach of ``steps`` [batch, time, 1]."""


@REACHES.register("causal")
class Causal(_Stepwise):
    """Step i sees the positions 0..i: what a sequence that looks at itself may know while it is being written.

    Vaswani et al. 2017 (arXiv:1706.03762, §3.2.3).
    """

    def sees(self, steps: Tensor, memory: Memory) -> Tensor:
        return memory.places().unsqueeze(1) <= steps


@REACHES.register("local_m")
class LocalMonotonic(_Stepwise):
    """Step i sees the positions i-D..i+D, D the ``window``: source and target are taken to run side by side.

    Luong et al. 2015 (arXiv:1508.04025, §3.2, "local-m"). Steps beyond a row's last position S-1 stay there.
    """

    def __init__(self, query_size: int, /, *, window: int = 10) -> None:
        super().__init__(query_size)
        self.window = _positive(window, "local_m")

    def sees(self, steps: Tensor, memory: Memory) -> Tensor:
        centre = torch.minimum(steps, memory.lengths()[:, None, None] - 1)
        return (memory.places().unsqueeze(1) - centre).abs() <= self.window


@REACHES.register("local_p")
class LocalPredictive(Reach):
    """A step says itself where it looks: at p = S σ(vᵀ tanh(W_p q)), and sees the positions p-D..p+D.

    α_j = normalise_j(e_j - (j - p)² / 2σ²),  σ = D / 2,  D the ``window``, S the row's number of real positions.
    Luong et al. 2015 (arXiv:1508.04025, §3.2, eqs. 9-10, "local-p"). There the Gaussian is multiplied to the finished
    softmax; here it is inside, which is the same product divided by its sum, so that weights still add up to 1.
    """

    turns_back = True

    def __init__(self, query_size: int, /, *, window: int = 10) -> None:
        super().__init__()
        self.window = _positive(window, "local_p")
        self.weight = nn.Parameter(torch.empty(query_size, query_size))
        self.vector = nn.Parameter(torch.empty(query_size))
        nn.init.xavier_uniform_(self.weight)
        nn.init.uniform_(self.vector, -(query_size**-0.5), query_size**-0.5)

    def centre(self, query: Tensor, memory: Memory) -> Tensor:
        """p [batch, time], in (0, S), of ``query`` [batch, time, query]; float32 at least, as positions need."""
        hidden = functional.linear(query, self.weight)
        hidden = hidden.to(torch.promote_types(hidden.dtype, torch.float32)).tanh()
        return memory.lengths().unsqueeze(1) * (hidden * self.vector).sum(2).sigmoid()

    def forward(self, query: Tensor, memory: Memory, state: State) -> tuple[Tensor | None, State]:
        distance = memory.places().unsqueeze(1) - self.centre(query, memory).unsqueeze(2)
        nearness = distance.square() * (-2 / self.window**2)
        return nearness.masked_fill(distance.abs() > self.window, float("-inf")), state


def _outside_is_minus_infinity(inside: Tensor) -> Tensor:
    return torch.zeros(inside.shape, device=inside.device).masked_fill_(~inside, float("-inf"))


def _positive(window: int, kind: str) -> int:
    if window < 1:
        raise SettingsError(f"window of the reach '{kind}' is {window}; give at least 1.")
    return window
