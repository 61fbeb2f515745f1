"""Every target position looks at those before it and at the source; what was seen is kept from step to step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import State
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.encoders import Encoded
from unrolled.models.layout import Layout
from unrolled.models.positions import POSITIONS
from unrolled.models.ranges import Count, Share
from unrolled.models.transformer import Activation, Around, Heads, Norm, PerPosition, width


class Seen(NamedTuple):
    """Keys and values, [batch, heads, positions, size / heads] each."""

    keys: Tensor
    values: Tensor


class Layer(nn.Module):
    """Causal self-attention, attention to the source, a small network for each position; a residual path around each.

    Oracle: `torch.nn.TransformerDecoderLayer`.
    """

    def __init__(
        self,
        size: int,
        memory_size: int,
        /,
        *,
        heads: int,
        feedforward_size: int,
        norm: Norm,
        activation: Activation,
        dropout: float,
        attention_dropout: float,
    ) -> None:
        super().__init__()
        self.back_around = Around(size, norm=norm, dropout=dropout)
        self.back = Heads(size, size, heads=heads, dropout=attention_dropout)
        self.across_around = Around(size, norm=norm, dropout=dropout)
        self.across = Heads(size, memory_size, heads=heads, dropout=attention_dropout)
        self.think_around = Around(size, norm=norm, dropout=dropout)
        self.think = PerPosition(size, feedforward_size=feedforward_size, activation=activation, dropout=dropout)

    def forward(
        self, x: Tensor, past: Seen, source: Seen, mask: Tensor, *, shown: bool
    ) -> tuple[Tensor, Seen, Tensor | None]:
        """The new x [batch, time, size], past and x's own keys and values, and the weights where they are ``shown``.

        ``past`` is empty where x is a whole sequence; after it x is the one symbol that follows.
        """
        given = self.back_around.enter(x)
        keys, values = self.back.remember(given)
        past = Seen(torch.cat((past.keys, keys), dim=2), torch.cat((past.values, values), dim=2))
        x = self.back_around.leave(x, self.back(given, *past, causal=x.shape[1] > 1))
        asking, weights = self.across_around.enter(x), None
        if shown:
            read, weights = self.across.look(asking, *source, mask)
        else:
            read = self.across(asking, *source, mask)
        x = self.across_around.leave(x, read)
        return self.think_around.leave(x, self.think(self.think_around.enter(x))), past, weights


@DECODERS.register("transformer")
class TransformerDecoder(Decoder):
    """The decoder of Vaswani et al. 2017 (arXiv:1706.03762, §3.1): see `Layer`, stacked.

    The weights it returns are the mean over the heads of the attention to the source in ``alignment_layer``, counted
    from 1; null takes the last but one, whose heads align best (Garg et al. 2019, arXiv:1909.02074, §4.1). Other
    settings as the encoder's. There is no recurrent state, so a bridge has nothing to carry.

    State: the source's mask, keys and values of every layer, which do not change; then keys and values of every layer
    over the target so far, longer by one position with every step.
    """

    layout: Layout = ()

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        layers: Count = 3,
        heads: Count = 4,
        hidden_size: Count | None = None,
        feedforward_size: Count = 1024,
        norm: Norm = "pre",
        positions: Annotated[Part, POSITIONS] = "sinusoidal",
        activation: Activation = "relu",
        alignment_layer: Count | None = None,
        dropout: Share = 0.1,
        attention_dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        size = width(embedding_size, hidden_size, heads, "model.decoder")
        if alignment_layer is not None and alignment_layer > layers:
            raise SettingsError(
                f"[model.decoder.alignment_layer] {alignment_layer} was given, and there are {layers} layers. "
                "Give one of them, counted from 1, or null."
            )
        self.shown = (alignment_layer or max(layers - 1, 1)) - 1
        self.dropout = dropout
        self.enter = nn.Linear(embedding_size, size, bias=False) if size != embedding_size else None
        self.positions = POSITIONS.build(positions, size, where="model.decoder.positions")
        self.layers = nn.ModuleList(
            Layer(
                size,
                memory_size,
                heads=heads,
                feedforward_size=feedforward_size,
                norm=norm,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(size) if norm == "pre" else None
        self.output_size = size
        self.held = 1 + 2 * layers

    def start(self, encoded: Encoded, _state: State) -> State:
        sources = [layer.across.remember(encoded.output) for layer in self._stack()]
        nothing = [part[:, :, :0] for source in sources for part in source]
        return (encoded.mask, *(part for source in sources for part in source), *nothing)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        output, weights, state = self._run(embedded.unsqueeze(1), state)
        return Decoded(output.squeeze(1), weights.squeeze(1), state)

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        output, weights, _ = self._run(embedded, state)
        return Unrolled(output, weights)

    def _run(self, embedded: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """All layers over the symbols that follow what the state has seen."""
        mask, sources, pasts = state[0], list(_pairs(state[1 : self.held])), list(_pairs(state[self.held :]))
        x = embedded if self.enter is None else self.enter(embedded)
        x = functional.dropout(self.positions(x, pasts[0].keys.shape[2]), self.dropout, self.training)
        kept: list[Tensor] = []
        looked: list[Tensor] = []
        for place, (layer, past, source) in enumerate(zip(self._stack(), pasts, sources, strict=True)):
            x, past, weights = layer(x, past, source, mask, shown=place == self.shown)
            kept.extend(past)
            looked += [] if weights is None else [weights]
        output = x if self.norm is None else self.norm(x)
        return output, looked[0], (*state[: self.held], *kept)

    def _stack(self) -> list[Layer]:
        return [cast(Layer, layer) for layer in self.layers]


def _pairs(flat: State) -> Iterator[Seen]:
    return (Seen(*flat[place : place + 2]) for place in range(0, len(flat), 2))
