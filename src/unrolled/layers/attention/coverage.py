"""Coverage: what the steps so far have looked at moves the keys, so that the next one knows."""

from __future__ import annotations

import abc
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part, Registry
from unrolled.layers.attention.memory import Memory
from unrolled.layers.cells import GRU
from unrolled.layers.cells.checks import State


class Coverage(nn.Module, abc.ABC):
    """k_ij = k_j + W_c C_{i-1,j}: a summary C of the weights so far enters the score through the keys.

    In an additive score that is the term of both papers, vᵀ tanh(W_q q + W_k h_j + W_c C_j).
    """

    states: int
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


def coverage_loss(weights: Tensor, covered: Tensor | None = None) -> Tensor:
    """Σ_j min(α_ij, c_ij) of each step, [batch, time]: what is looked at again costs, between 0 and 1.

    ``weights`` α [batch, time, source]; c_i = Σ_{i'<i} α_i', plus ``covered`` [batch, source] of steps before these.
    See et al. 2017 (arXiv:1704.04368, eq. 12).
    """
    before = weights.cumsum(1) - weights
    if covered is not None:
        before = before + covered.unsqueeze(1)
    return torch.minimum(weights, before).sum(2)


@COVERAGES.register("sum")
class SumCoverage(Coverage):
    """C_ij = Σ_{i'≤i} α_i'j / Φ_j: how much of each position has been looked at.

    Φ_j = 1 without ``fertility`` (See et al. 2017, arXiv:1704.04368, eq. 10, with `coverage_loss`); with it
    Φ_j = N σ(U_f h_j), how many words position j will make, at most N = ``fertility``
    (Tu et al. 2016, arXiv:1601.04811, "linguistic coverage", N = 2 there; here σ stays above 4e-5, so that
    1 / Φ is a number). The state holds C, and 1 / Φ.
    """

    def __init__(self, _query_size: int, value_size: int, key_size: int, /, *, fertility: float | None = None) -> None:
        super().__init__()
        if fertility is not None and fertility <= 0:
            raise SettingsError(f"fertility of the coverage 'sum' is {fertility}; give a number above 0, or none.")
        self.fertility = fertility
        self.states = 1 if fertility is None else 2
        self.weight = _key_weight(key_size, 1)
        self.words = None if fertility is None else nn.Parameter(torch.empty(1, value_size))
        if self.words is not None:
            nn.init.xavier_uniform_(self.words)

    def initial(self, memory: Memory) -> State:
        wide = torch.promote_types(memory.values.dtype, torch.float32)
        covered = torch.zeros_like(memory.mask, dtype=wide)
        if self.words is None or self.fertility is None:
            return (covered,)
        words = functional.linear(memory.values, self.words).squeeze(2).to(wide).clamp(min=-10).sigmoid()
        return covered, 1 / (self.fertility * words)

    def shift(self, state: State) -> Tensor:
        return state[0].unsqueeze(2) * self.weight[:, 0]

    def update(self, _query: Tensor, weights: Tensor, state: State) -> State:
        covered, *inverse = state
        return covered + (weights * inverse[0] if inverse else weights), *inverse


@COVERAGES.register("neural")
class NeuralCoverage(Coverage):
    """C_ij = GRU([h_j, q_i, α_ij], C_{i-1,j}): each position keeps ``size`` numbers about how it was looked at.

    Tu et al. 2016 (arXiv:1601.04811, "neural network based coverage"). The state holds C [batch, source, size]
    and the GRU's product with h_j, computed once a sentence.
    """

    states = 2

    def __init__(self, query_size: int, value_size: int, key_size: int, /, *, size: int = 10) -> None:
        super().__init__()
        if size < 1:
            raise SettingsError(f"size of the coverage 'neural' is {size}; give at least 1.")
        self.size = size
        self.sizes = (value_size, query_size, 1)
        self.weight = _key_weight(key_size, size)
        self.cell = GRU(sum(self.sizes), hidden_size=size)

    def initial(self, memory: Memory) -> State:
        of_values, _, _ = self.cell.input_weight.split(self.sizes, dim=1)
        told = functional.linear(memory.values, of_values, self.cell.biases()[0])
        told = told.to(torch.promote_types(told.dtype, torch.float32))
        return told.new_zeros(*memory.mask.shape, self.size), told

    def shift(self, state: State) -> Tensor:
        return functional.linear(state[0], self.weight)

    def update(self, query: Tensor, weights: Tensor, state: State) -> State:
        covered, told = state
        _, of_query, of_weights = self.cell.input_weight.split(self.sizes, dim=1)
        asked = functional.linear(query, of_query).unsqueeze(1)
        projected = told + asked + weights.unsqueeze(2) * of_weights[:, 0]
        (moved,) = self.cell.advance(projected.flatten(0, 1), (covered.flatten(0, 1),))
        return moved.unflatten(0, covered.shape[:2]).to(covered.dtype), told


def _key_weight(key_size: int, size: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(key_size, size).uniform_(-(key_size**-0.5), key_size**-0.5))
