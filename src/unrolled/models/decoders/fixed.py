"""No attention: the whole source in one vector, given once or at every step."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from unrolled.base.registry import Part
from unrolled.layers import CELLS, Recurrent, State
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.decoders.readout import Readout, ReadoutKind
from unrolled.models.encoders import Encoded
from unrolled.models.layout import by_layer
from unrolled.models.ranges import Count, Share


@DECODERS.register("fixed")
class Fixed(Decoder):
    """s_i = cell(y_{i-1}, s_{i-1}), or s_i = cell([y_{i-1}, c], s_{i-1}) with c the encoder's summary.

    ``context="once"``: the source comes by the first state alone (Sutskever et al. 2014, arXiv:1409.3215).
    ``context="every_step"``: c is an input of every step and of the readout too (Cho et al. 2014, arXiv:1406.1078).
    Nothing waits for an attention, so the cell runs over the whole target in one call.
    """

    attends = False

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 1,
        residual: bool = False,
        context: Literal["once", "every_step"] = "every_step",
        readout: ReadoutKind = "state",
        readout_size: Count | None = None,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        given = (memory_size,) if context == "every_step" else ()
        self.recurrent = Recurrent(
            embedding_size + sum(given),
            cell=cell,
            layers=layers,
            residual=residual,
            dropout=dropout,
            dropout_kind=dropout_kind,
        )
        sizes = (self.recurrent.output_size, *given, embedding_size)
        self.readout = Readout(sizes, kind=readout, size=readout_size)
        self.output_size = self.readout.output_size
        self.layout = by_layer(self.recurrent.state_sizes, layers)
        self.held = len(given)

    def start(self, encoded: Encoded, state: State) -> State:
        return (*((encoded.summary,) if self.held else ()), *state)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        context, moving = state[: self.held], state[self.held :]
        hidden, moving = self.recurrent.advance(self.recurrent.project(torch.cat((embedded, *context), dim=-1)), moving)
        return Decoded(self.readout((hidden, *context, embedded)), None, (*context, *moving))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        times = embedded.shape[1]
        context = tuple(tensor.unsqueeze(1).expand(-1, times, -1) for tensor in state[: self.held])
        hidden, _ = self.recurrent(torch.cat((embedded, *context), dim=-1), None, state[self.held :])
        return Unrolled(self.readout((hidden, *context, embedded)), None)
