"""Bahdanau's order: look first, then move. The last state asks, and the context goes into the cell."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS, DROPOUTS, Memory, Recurrent, State
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled, output_size
from unrolled.models.decoders.readout import Readout, ReadoutKind
from unrolled.models.encoders import Encoded
from unrolled.models.kernels import attend_and_advance
from unrolled.models.ranges import Count, ResidualFrom, Share, residual_from


@DECODERS.register("query_before")
class QueryBefore(Decoder):
    """c_i = Σ_j α_ij h_j,  α_i = softmax_j score(s_{i-1}, h_j);   s_i = cell([y_{i-1}, c_i], s_{i-1}).

    Bahdanau, Cho & Bengio 2015 (arXiv:1409.0473). The output is read from s_i, c_i and y_{i-1}. With more layers the
    lowest one asks and takes the context, and the others stand on it (as in GNMT, Wu et al. 2016, arXiv:1609.08144,
    §3), so only the lowest waits for the attention. ``residual``: a layer's input is added to its output, true from the
    second layer on, or a number from that layer on.
    """

    held = 3

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "gru",
        layers: Count = 1,
        residual: ResidualFrom = False,
        attention: Annotated[Part, ATTENTIONS] = "additive",
        readout: ReadoutKind = "tanh",
        readout_size: Count | None = None,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        self.first_residual = residual_from(residual, 2, layers, "model.decoder")
        hidden = output_size(cell)
        self.attention = ATTENTIONS.build(attention, hidden, memory_size, where="model.decoder.attention")
        read = self.attention.context_size
        self.cell = CELLS.build(cell, embedding_size + read, where="model.decoder.cell")
        self.upper = nn.ModuleList(Recurrent(hidden, cell=cell) for _ in range(layers - 1))
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="model.decoder.dropout")
        self.readout = Readout((hidden, read, embedding_size), kind=readout, size=readout_size)
        self.output_size = self.readout.output_size
        self.layout = (self.cell.state_sizes,) * layers

    def start(self, encoded: Encoded, state: State) -> State:
        memory = self.attention.remember(encoded.output, encoded.mask)
        return (*memory, *self.attention.initial(memory), *state)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        memory, looking, lowest, *upper = self._split(state)
        context, weights, looking, _ = self.attention(lowest[0], memory, looking)
        new = self.cell(torch.cat((embedded, context), dim=-1), lowest)
        output, ends = new[0], list(new)
        for number, (layer, own) in enumerate(zip(self.upper, upper, strict=True), start=2):
            above, end = cast(Recurrent, layer).step(self.dropout(output.unsqueeze(1)).squeeze(1), own)
            output = above + output if number >= self.first_residual else above
            ends.extend(end)
        return Decoded(self.readout((output, context, embedded)), weights, (*memory, *looking, *ends))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        memory, looking, lowest, *upper = self._split(state)
        walked = attend_and_advance(self.cell, self.attention, embedded.transpose(0, 1), memory, lowest, looking)
        output, contexts, weights = (part.transpose(0, 1) for part in walked)
        for number, (layer, own) in enumerate(zip(self.upper, upper, strict=True), start=2):
            above, _ = layer(self.dropout(output), None, own)
            output = above + output if number >= self.first_residual else above
        return Unrolled(self.readout((output, contexts, embedded)), weights)

    def _split(self, state: State) -> tuple[Memory, State, State, *tuple[State, ...]]:
        """Memory, the attention's own state, and the state of each layer."""
        width = len(self.layout[0])
        lowest = len(state) - width * len(self.layout)
        layers = [state[place : place + width] for place in range(lowest, len(state), width)]
        return Memory(*state[: self.held]), state[self.held : lowest], *layers  # type: ignore[return-value]
