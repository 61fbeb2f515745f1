"""A decoder unrolls the target: a symbol in, a vector for the vocabulary out, and where it looked meanwhile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers import CELLS, State
from unrolled.models.encoders import Encoded
from unrolled.models.layout import Layout


class Decoded(NamedTuple):
    """One step of a decoder."""

    output: Tensor  # [batch, output]
    weights: Tensor | None  # [batch, source], sums to 1 over real positions; None without attention
    state: State


class Unrolled(NamedTuple):
    """A whole target sequence, teacher forced."""

    outputs: Tensor  # [batch, time, output]
    weights: Tensor | None  # [batch, time, source]


class Decoder(nn.Module, ABC):
    """One symbol after the other, each step seeing the steps before it and the encoded source.

    The state is a flat tuple of tensors, batch first. Its first ``held`` tensors (keys, values, mask: the sentence's
    own) never change from step to step, so a search that reorders hypotheses of one sentence need not move them.
    ``step`` and ``forward`` compute the same: forward takes all products that do not wait for a state out of the loop.
    """

    output_size: int
    layout: Layout
    held: int
    attends: bool = True
    """Whether steps return where they looked."""

    @abstractmethod
    def start(self, encoded: Encoded, state: State) -> State:
        """The decoder's state before the first symbol; ``state`` comes from the bridge, laid out as ``layout``."""

    @abstractmethod
    def step(self, embedded: Tensor, state: State) -> Decoded:
        """One symbol [batch, embedding] on."""

    @abstractmethod
    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        """All symbols [batch, time, embedding] at once, from ``state``."""


DECODERS: Registry[Decoder] = Registry("decoder")


def output_size(cell: Part) -> int:
    """The size of what a cell with these settings puts out."""
    settings = CELLS.complete(cell, "cell")
    size: int = settings.get("projection_size") or settings["hidden_size"]
    return size
