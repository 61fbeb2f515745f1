"""Normalisers: from scores to weights that sum to 1."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part, Registry
from unrolled.layers.attention.sparse import entmax15, sparsemax
from unrolled.layers.cells.checks import State


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
    """α_j = exp(e_j) / Σ_k exp(e_k): every real position within reach gets some weight."""

    def forward(self, scores: Tensor, state: State) -> tuple[Tensor, State]:
        return scores.softmax(-1), state


@NORMALISERS.register("sparsemax")
class Sparsemax(Normaliser):
    """α = argmin_{p ≥ 0, Σ p = 1} ‖p - e‖²: few positions share the weight, the others get exactly 0.

    α_j = max(e_j - τ, 0). Martins & Astudillo 2016 (arXiv:1602.02068).
    """

    def forward(self, scores: Tensor, state: State) -> tuple[Tensor, State]:
        return sparsemax(scores), state


@NORMALISERS.register("entmax15")
class Entmax15(Normaliser):
    """α = argmax_{p ≥ 0, Σ p = 1} p · e + H(p) with Tsallis' entropy of order 1.5: sparse, but smooth at its edges.

    α_j = max(e_j / 2 - τ, 0)². Peters, Niculae & Martins 2019 (arXiv:1905.05702). Oracle: the package entmax.
    """

    def forward(self, scores: Tensor, state: State) -> tuple[Tensor, State]:
        return entmax15(scores), state


@NORMALISERS.register("monotonic")
class Monotonic(Normaliser):
    """Step i stops at the first position, from where step i-1 stopped on, whose p_ij is above 1/2: weight 1 there.

    p_ij = σ(e_ij + r + ε)      ε ~ N(0, ``noise``²) in training only, so that p learns to be near 0 or 1
    α_ij = p_ij Σ_{k≤j} α_{i-1,k} Π_{k≤l<j} (1 - p_il)      training: the chance to stop at j
    α_ij = 1 where it stops                                 evaluation: the same with p rounded to 0 or 1

    Raffel et al. 2017 (arXiv:1704.00784, §2.2-2.5), r a learned number that starts at ``offset``. The last
    position within reach stops whoever gets there (p = 1); in the paper such a step reads nothing. The state is
    α_{i-1}, at first all on the first real position.
    """

    states = 1
    moves_forward = True

    def __init__(self, *, offset: float = -1.0, noise: float = 1.0) -> None:
        super().__init__()
        if noise < 0:
            raise SettingsError(f"noise of the normaliser 'monotonic' is {noise}; give 0 or more.")
        self.noise = noise
        self.offset = nn.Parameter(torch.tensor(float(offset)))

    def initial(self, mask: Tensor) -> State:
        first = mask & (mask.cumsum(-1) == 1)
        return (first.to(torch.promote_types(self.offset.dtype, torch.float32)),)

    def forward(self, scores: Tensor, state: State) -> tuple[Tensor, State]:
        within = scores > float("-inf")
        scores = scores + self.offset
        if self.training and self.noise:
            scores = scores + self.noise * torch.randn_like(scores)
        stops = scores.sigmoid() if self.training else (scores > 0).to(scores.dtype)
        number = within.cumsum(-1)
        stops = stops.masked_fill(within & (number == number[..., -1:]), 1)
        (before,) = state
        weights = []
        for now in stops.unbind(-2):
            before = now * _passing(1 - now, before.to(now.dtype))
            weights.append(before)
        return torch.stack(weights, dim=-2), (before,)


def _passing(goes_on: Tensor, starts: Tensor) -> Tensor:
    """q_j = starts_j + goes_on_{j-1} q_{j-1}: the chance to come by j. In log₂(source) steps, without logarithms."""
    goes_on, reach = functional.pad(goes_on, (1, -1)), 1
    while reach < starts.shape[-1]:
        starts = starts + goes_on * functional.pad(starts, (reach, -reach))
        goes_on = goes_on * functional.pad(goes_on, (reach, -reach))
        reach *= 2
    return starts
