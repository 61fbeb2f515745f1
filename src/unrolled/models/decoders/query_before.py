"""Bahdanau's order: look first, then move. The last state asks, and the context goes into the cell."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS, DROPOUTS, Memory, Recurrent, State
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.decoders.readout import Readout, ReadoutKind
from unrolled.models.encoders import Encoded
from unrolled.models.kernels import attend_and_advance
from unrolled.models.ranges import Count, Share


@DECODERS.register("query_before")
class QueryBefore(Decoder):
    """c_i = Σ_j α_ij h_j,  α_i = softmax_j score(s_{i-1}, h_j);   s_i = cell([y_{i-1}, c_i], s_{i-1}).

    Bahdanau, Cho & Bengio 2015 (arXiv:1409.0473). The output is read from s_i, c_i and y_{i-1}. With more layers the
    lowest one asks and takes the context, and the others stand on it (as in GNMT, Wu et al. 2016, arXiv:1609.08144,
    §3), so only the lowest waits for the attention. Its input product is split, W [y, c] = W_y y + W_c c, and the
    first half is taken for all steps at once.
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
        residual: bool = False,
        attention: Annotated[Part, ATTENTIONS] = "additive",
        readout: ReadoutKind = "tanh",
        readout_size: Count | None = None,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        if layers < 1:
            raise SettingsError(f"[model.decoder.layers] {layers} was given; a decoder has at least 1.")
        self.embedding_size = embedding_size
        self.residual = residual
        self.cell = CELLS.build(cell, embedding_size + memory_size, where="model.decoder.cell")
        hidden = self.cell.hidden_size
        self.upper = nn.ModuleList(Recurrent(hidden, cell=cell) for _ in range(layers - 1))
        self.attention = ATTENTIONS.build(attention, hidden, memory_size, where="model.decoder.attention")
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="model.decoder.dropout")
        self.readout = Readout((hidden, memory_size, embedding_size), kind=readout, size=readout_size)
        self.output_size = self.readout.output_size
        self.layout = (self.cell.state_sizes,) * layers

    def start(self, encoded: Encoded, state: State) -> State:
        return (*self.attention.remember(encoded.output, encoded.mask), *state)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        memory, lowest, *upper = self._split(state)
        context, weights, *_ = self.attention(lowest[0], memory)
        new = self.cell(torch.cat((embedded, context), dim=-1), lowest)
        output, ends = new[0], list(new)
        for layer, own in zip(self.upper, upper, strict=True):
            above, end = cast(Recurrent, layer).step(self.dropout(output.unsqueeze(1)).squeeze(1), own)
            output = above + output if self.residual else above
            ends.extend(end)
        return Decoded(self.readout((output, context, embedded)), weights, (*memory, *ends))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        memory, lowest, *upper = self._split(state)
        of_symbol, of_context = self.cell.input_weight.split((self.embedding_size, self.attention.context_size), dim=1)
        projected = functional.linear(embedded.transpose(0, 1), of_symbol, self.cell.biases()[0])
        walked = attend_and_advance(self.cell, self.attention, projected, of_context, memory, lowest)
        output, contexts, weights = (part.transpose(0, 1) for part in walked)
        for layer, own in zip(self.upper, upper, strict=True):
            above, _ = layer(self.dropout(output), None, own)
            output = above + output if self.residual else above
        return Unrolled(self.readout((output, contexts, embedded)), weights)

    def _split(self, state: State) -> tuple[Memory, State, *tuple[State, ...]]:
        width = len(self.layout[0])
        layers = [state[place : place + width] for place in range(self.held, len(state), width)]
        return Memory(*state[: self.held]), *layers  # type: ignore[return-value]
