"""Luong's order: move first, then look. The new state asks, and state and context make the output together."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS, Cell, Memory, Recurrent, State
from unrolled.layers.kernels.choose import product_type
from unrolled.layers.kernels.deferred import Deferred
from unrolled.layers.surroundings import traced
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled, output_size
from unrolled.models.decoders.readout import Readout
from unrolled.models.encoders import Encoded
from unrolled.models.kernels import advance_and_attend, feedable
from unrolled.models.layout import by_layer
from unrolled.models.ranges import Count, Share


@DECODERS.register("query_after")
class QueryAfter(Decoder):
    """s_i = cell(x_i, s_{i-1});  α_i = softmax_j score(s_i, h_j);  c_i = Σ_j α_ij h_j;  s~_i = tanh(W_c [s_i, c_i] + b)

    Luong, Pham & Manning 2015 (arXiv:1508.04025). With ``input_feeding`` (§3.3) x_i = [y_{i-1}, s~_{i-1}], so that a
    step knows where the last one looked; without, x_i = y_{i-1}, and nothing waits for the attention: the cell runs
    over the whole target in one call, and all steps look at once.
    """

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 1,
        residual: bool = False,
        attention: Annotated[Part, ATTENTIONS] = "bilinear",
        input_feeding: bool = True,
        readout_size: Count | None = None,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        hidden = output_size(cell)
        self.attention = ATTENTIONS.build(attention, hidden, memory_size, where="attention")
        self.readout = Readout((hidden, self.attention.context_size), kind="tanh", size=readout_size)
        self.output_size = self.readout.output_size
        self.embedding_size = embedding_size
        self.input_feeding = input_feeding
        self.recurrent = Recurrent(
            embedding_size + (self.output_size if input_feeding else 0),
            cell=cell,
            layers=layers,
            residual=residual,
            dropout=dropout,
            dropout_kind=dropout_kind,
        )
        self.layout = by_layer(self.recurrent.state_sizes, layers)
        self.held = 3

    def start(self, encoded: Encoded, state: State) -> State:
        memory = self.attention.remember(encoded.output, encoded.mask)
        fed = (encoded.output.new_zeros(encoded.output.shape[0], self.output_size),) if self.input_feeding else ()
        return (*memory, *self.attention.initial(memory), *fed, *state)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        memory, looking, fed, moving = self._split(state)
        hidden, moving = self.recurrent.advance(self.recurrent.project(embedded, fed), moving)
        context, weights, looking, _ = self.attention(hidden, memory, looking)
        output = self.readout((hidden, context))
        return Decoded(output, weights, (*memory, *looking, *((output,) if fed else ()), *moving))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        memory, looking, fed, moving = self._split(state)
        if fed and not traced(embedded) and self._by_hand():
            cell = cast(Cell, self.recurrent.cells[0])
            walked = advance_and_attend(
                cell, self.attention, self.readout.mix, embedded.transpose(0, 1), memory, fed[0], moving
            )
            return Unrolled(*(tensor.transpose(0, 1) for tensor in walked))
        if fed:
            return self._feed(embedded, state)
        hidden, _ = self.recurrent(embedded, None, moving)
        seen = self.attention(hidden, memory, looking)
        return Unrolled(self.readout((hidden, seen.context)), seen.weights)

    def _feed(self, embedded: Tensor, state: State) -> Unrolled:
        memory, looking, (fed,), moving = self._split(state)
        lowest = cast(Cell, self.recurrent.cells[0])
        held = not traced(embedded)
        loop, mix = self.recurrent.loop(deferred=held), self._hold(self.readout.mix.weight) if held else None
        of_symbol, of_output = lowest.input_weight.split((self.embedding_size, self.output_size), dim=1)
        feed = self._hold(of_output) if held and not lowest.layer_norm else None
        given = embedded if feed is None else functional.linear(embedded, of_symbol, lowest.biases()[0])
        outputs, weights = [], []
        for now in given.unbind(1):
            # W [y, s~] + b: the symbols' part is taken for all steps at once where nothing normalises the sum.
            total = loop.project(torch.cat((now, fed), dim=-1)) if feed is None else now + feed.product(fed)
            hidden, moving = loop.advance(total, moving)
            context, looked, looking, _ = self.attention(hidden, memory, looking)
            fed = self.readout((hidden, context), mix)
            outputs.append(fed)
            weights.append(looked)
        return Unrolled(torch.stack(outputs, dim=1), torch.stack(weights, dim=1))

    def _by_hand(self) -> bool:
        return len(self.recurrent.cells) == 1 and feedable(cast(Cell, self.recurrent.cells[0]), self.attention)

    @staticmethod
    def _hold(weight: Tensor) -> Deferred:
        return Deferred(weight, product_type(weight))

    def _split(self, state: State) -> tuple[Memory, State, State, State]:
        """Memory, the attention's own state, the last output where it is fed, and the cells' state."""
        moving = len(state) - sum(map(len, self.layout))
        fed = moving - self.input_feeding
        return Memory(*state[: self.held]), state[self.held : fed], state[fed:moving], state[moving:]
