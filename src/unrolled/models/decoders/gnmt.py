"""GNMT's order: the lowest layer asks, and what it reads goes into every layer."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS, DROPOUTS, Memory, Recurrent, State
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled, output_size
from unrolled.models.encoders import Encoded
from unrolled.models.kernels import attend_and_advance
from unrolled.models.ranges import Count, ResidualFrom, Share, residual_from


@DECODERS.register("gnmt")
class Gnmt(Decoder):
    """The decoder of Wu et al. 2016 (arXiv:1609.08144, §3), with s^l the output of layer l and h_j the memory.

    α_i = softmax_j score(s¹_{i-1}, h_j);  c_i = Σ_j α_ij h_j      the lowest layer's last output asks (eq. 4)
    s¹_i = cell([y_{i-1}, c_i])
    s^l_i = cell([s^{l-1}_i, c_i])  (+ s^{l-1}_i)                  with the sum from layer ``residual`` on (§3.1)

    Only the lowest layer waits for the attention: the others run over the whole target in one call each. The output
    is the top layer's. ``residual``: true from the second layer on, or a number; the paper has 3.
    """

    held = 3

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 4,
        residual: ResidualFrom = True,
        attention: Annotated[Part, ATTENTIONS] = "additive",
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        self.first_residual = residual_from(residual, 2, layers, "model.decoder")
        size = output_size(cell)
        self.attention = ATTENTIONS.build(attention, size, memory_size, where="model.decoder.attention")
        read = self.attention.context_size
        self.cell = CELLS.build(cell, embedding_size + read, where="model.decoder.cell")
        self.upper = nn.ModuleList(Recurrent(size + read, cell=cell) for _ in range(layers - 1))
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="model.decoder.dropout")
        self.output_size = size
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
            given = torch.cat((self.dropout(output.unsqueeze(1)).squeeze(1), context), dim=-1)
            above, end = cast(Recurrent, layer).step(given, own)
            output = above + output if number >= self.first_residual else above
            ends.extend(end)
        return Decoded(output, weights, (*memory, *looking, *ends))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        memory, looking, lowest, *upper = self._split(state)
        walked = attend_and_advance(self.cell, self.attention, embedded.transpose(0, 1), memory, lowest, looking)
        output, contexts, weights = (part.transpose(0, 1) for part in walked)
        for number, (layer, own) in enumerate(zip(self.upper, upper, strict=True), start=2):
            above, _ = layer(torch.cat((self.dropout(output), contexts), dim=-1), None, own)
            output = above + output if number >= self.first_residual else above
        return Unrolled(output, weights)

    def _split(self, state: State) -> tuple[Memory, State, State, *tuple[State, ...]]:
        """Memory, the attention's own state, and the state of each layer."""
        width = len(self.layout[0])
        lowest = len(state) - width * len(self.layout)
        layers = [state[place : place + width] for place in range(lowest, len(state), width)]
        return Memory(*state[: self.held]), state[self.held : lowest], *layers  # type: ignore[return-value]
