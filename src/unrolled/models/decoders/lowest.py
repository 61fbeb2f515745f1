"""What decoders share whose lowest layer attends before it moves, and whose other layers stand on it."""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS, DROPOUTS, Attention, Memory, Recurrent, State
from unrolled.layers.attention import Gated
from unrolled.models.decoders.base import Decoded, Decoder, Unrolled, output_size
from unrolled.models.encoders import Encoded
from unrolled.models.kernels import attend_and_advance
from unrolled.models.ranges import ResidualFrom, residual_from


class LowestAsks(Decoder):
    """c_i = attention(s¹_{i-1});  s¹_i = cell([y_{i-1}, c_i]);  then layer by layer, each a `Recurrent` of its own.

    Only the lowest layer waits for the attention, so the others run over the whole target in one call each. A kind
    says what a layer is given beside the one below (`given`), and what is read from the top (`read`). A layer's input
    is added to its output from layer ``residual`` on; true is the second. ``gate``: see `Gated`.
    """

    held = 3

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Part,
        layers: int,
        residual: ResidualFrom,
        attention: Part,
        dropout: Part,
        gate: bool = False,
    ) -> None:
        super().__init__()
        self.first_residual = residual_from(residual, 2, layers)
        self.hidden_size = output_size(cell)
        built = ATTENTIONS.build(attention, self.hidden_size, memory_size, where="attention")
        self.attention: Attention | Gated = Gated(built) if gate else built
        self.cell = CELLS.build(cell, embedding_size + self.attention.context_size, where="cell")
        above = self.hidden_size + (self.attention.context_size if self.context_above else 0)
        self.upper = nn.ModuleList(Recurrent(above, cell=cell) for _ in range(layers - 1))
        self.dropout = DROPOUTS.build(dropout, where="dropout")
        self.layout = (self.cell.state_sizes,) * layers

    context_above: bool
    """Whether the context goes into the upper layers too."""

    @abstractmethod
    def read(self, output: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """The decoder's output from the top layer's, the context and the symbol; the last axes are their sizes."""

    def given(self, output: Tensor, context: Tensor) -> Tensor:
        """What a layer is given, from ``output`` of the one below and the context."""
        return torch.cat((output, context), dim=-1) if self.context_above else output

    def start(self, encoded: Encoded, state: State) -> State:
        memory = self.attention.remember(encoded.output, encoded.mask)
        return (*memory, *self.attention.initial(memory), *state)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        memory, looking, lowest, *upper = self._split(state)
        context, weights, looking, _ = self.attention(lowest[0], memory, looking)
        new = self.cell.advance(self.cell.project(torch.cat((embedded, context), dim=-1)), lowest)
        output, ends = new[0], list(new)
        for number, (layer, own) in enumerate(zip(self.upper, upper, strict=True), start=2):
            below = self.dropout(output.unsqueeze(1)).squeeze(1)
            recurrent = cast(Recurrent, layer)
            above, end = recurrent.advance(recurrent.project(self.given(below, context)), own)
            output = above + output if number >= self.first_residual else above
            ends.extend(end)
        return Decoded(self.read(output, context, embedded), weights, (*memory, *looking, *ends))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        memory, looking, lowest, *upper = self._split(state)
        walked = attend_and_advance(self.cell, self.attention, embedded.transpose(0, 1), memory, lowest, looking)
        output, contexts, weights = (part.transpose(0, 1) for part in walked)
        for number, (layer, own) in enumerate(zip(self.upper, upper, strict=True), start=2):
            above, _ = layer(self.given(self.dropout(output), contexts), None, own)
            output = above + output if number >= self.first_residual else above
        return Unrolled(self.read(output, contexts, embedded), weights)

    def _split(self, state: State) -> tuple[Memory, State, State, *tuple[State, ...]]:
        """Memory, the attention's own state, and the state of each layer."""
        width = len(self.layout[0])
        lowest = len(state) - width * len(self.layout)
        layers = [state[place : place + width] for place in range(lowest, len(state), width)]
        return Memory(*state[: self.held]), state[self.held : lowest], *layers  # type: ignore[return-value]
