"""A fixed window of the last words and the source: the baseline decoder, without a recurrence."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, Memory, State
from unrolled.layers.draws import dropout
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.decoders.readout import Readout
from unrolled.models.encoders import Encoded
from unrolled.models.layout import Layout
from unrolled.models.ranges import Count, Share


@DECODERS.register("feedforward")
class WindowDecoder(Decoder):
    """s_i = tanh(U [y_{i-n} … y_{i-1}] + b);  α_i = softmax_j score(s_i, h_j);  o_i = tanh(W [s_i, c_i] + b_o)

    The neural language model of Bengio et al. 2003 over the last ``window`` words with attention to the source, as in
    ABS (Rush et al. 2015, arXiv:1509.00685, §3). Without an ``attention`` (null) c is the encoder's summary. Words
    before the first are 0. Nothing waits for a state, so all steps are taken at once. A bridge has nothing to carry.

    State: the memory or the summary, the attention's own state, and the last window - 1 embedded words.
    """

    layout: Layout = ()

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        window: Count = 5,
        hidden_size: Count = 256,
        attention: Annotated[Part | None, ATTENTIONS] = "bilinear",
        readout_size: Count | None = None,
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.window, self.embedding_size, self.dropout = window, embedding_size, dropout
        self.hidden = nn.Linear(window * embedding_size, hidden_size)
        self.attention = None
        if attention is not None:
            self.attention = ATTENTIONS.build(attention, hidden_size, memory_size, where="attention")
        read = memory_size if self.attention is None else self.attention.context_size
        self.readout = Readout((hidden_size, read), kind="tanh", size=readout_size)
        self.output_size = self.readout.output_size
        self.attends = self.attention is not None
        self.held = 3 if self.attends else 1

    def start(self, encoded: Encoded, _state: State) -> State:
        before = encoded.summary.new_zeros(encoded.summary.shape[0], self.window - 1, self.embedding_size)
        if self.attention is None:
            return (encoded.summary, before)
        memory = self.attention.remember(encoded.output, encoded.mask)
        return (*memory, *self.attention.initial(memory), before)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        words = torch.cat((state[-1], embedded.unsqueeze(1)), dim=1)
        hidden = self._hidden(words.flatten(1))
        context, weights, looking = self._look(hidden, state)
        return Decoded(self.readout((hidden, context)), weights, (*state[: self.held], *looking, words[:, 1:]))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        words, time = torch.cat((state[-1], embedded), dim=1), embedded.shape[1]
        hidden = self._hidden(torch.cat([words[:, place : place + time] for place in range(self.window)], dim=2))
        context, weights, _ = self._look(hidden, state)
        return Unrolled(self.readout((hidden, context)), weights)

    def _hidden(self, words: Tensor) -> Tensor:
        return self.hidden(dropout(words, self.dropout, self.training)).tanh()

    def _look(self, hidden: Tensor, state: State) -> tuple[Tensor, Tensor | None, State]:
        if self.attention is None:
            summary = state[0] if hidden.dim() == 2 else state[0].unsqueeze(1).expand(-1, hidden.shape[1], -1)
            return summary, None, ()
        seen = self.attention(hidden, Memory(*state[: self.held]), state[self.held : -1])
        return seen.context, seen.weights, seen.state
