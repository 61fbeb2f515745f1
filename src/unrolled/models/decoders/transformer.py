"""Every target position looks at those before it and at the source; what was seen is kept from step to step."""

from __future__ import annotations

from typing import Annotated, cast

from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import Memory, State
from unrolled.layers.attention import MultiHead, SelfAttention
from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.encoders import Encoded
from unrolled.models.layout import Layout
from unrolled.models.positions import POSITIONS
from unrolled.models.ranges import Count, Share
from unrolled.models.transformer import Activation, Around, Entry, Norm, PerPosition, width


class Layer(nn.Module):
    """Causal self-attention, attention to the source, a small network for each position; a residual path around each.

    Oracle: `torch.nn.TransformerDecoderLayer`.
    """

    def __init__(
        self,
        size: int,
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
        self.back = SelfAttention(size, heads=heads, dropout=attention_dropout, causal=True)
        self.across_around = Around(size, norm=norm, dropout=dropout)
        self.across = MultiHead(size, size, heads=heads, dropout=attention_dropout)
        self.think_around = Around(size, norm=norm, dropout=dropout)
        self.think = PerPosition(size, feedforward_size=feedforward_size, activation=activation, dropout=dropout)

    def forward(self, x: Tensor, source: Memory, *, shown: bool) -> tuple[Tensor, Tensor | None]:
        """A whole sequence [batch, time, size] on, and where it looked in the source where that is ``shown``."""
        x = self.back_around.leave(x, self.back(self.back_around.enter(x)))
        return self._go_on(x, source, shown)

    def step(self, x: Tensor, source: Memory, past: State, *, shown: bool) -> tuple[Tensor, State, Tensor | None]:
        """One symbol [batch, size] on, from the keys and values of those before."""
        found, past = self.back.step(self.back_around.enter(x), past)
        x = self.back_around.leave(x, found).unsqueeze(1)
        x, weights = self._go_on(x, source, shown)
        return x.squeeze(1), past, None if weights is None else weights.squeeze(1)

    def _go_on(self, x: Tensor, source: Memory, shown: bool) -> tuple[Tensor, Tensor | None]:
        asking, weights = self.across_around.enter(x), None
        if shown:
            read, weights, *_ = self.across(asking, source)
        else:
            read = self.across.context(asking, source)
        x = self.across_around.leave(x, read)
        return self.think_around.leave(x, self.think(self.think_around.enter(x))), weights


@DECODERS.register("transformer")
class TransformerDecoder(Decoder):
    """The decoder of Vaswani et al. 2017 (arXiv:1706.03762, §3.1): see `Layer`, stacked.

    The weights it returns are the mean over the heads of the attention to the source in ``alignment_layer``, counted
    from 1; null takes the last but one, whose heads align best (Garg et al. 2019, arXiv:1909.02074). Other
    settings as the encoder's, whose vectors are projected where they have another size. There is no recurrent state,
    so a bridge has nothing to carry.

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
        size = width(embedding_size, hidden_size, heads)
        if alignment_layer is not None and alignment_layer > layers:
            raise SettingsError(
                f"[alignment_layer] {alignment_layer} was given, and there are {layers} layers. "
                "Give one of them, counted from 1, or null."
            )
        self.shown = (alignment_layer or max(layers - 1, 1)) - 1
        self.source = nn.Linear(memory_size, size, bias=False) if size != memory_size else None
        self.entry = Entry(embedding_size, size, positions=positions, dropout=dropout)
        self.layers = nn.ModuleList(
            Layer(
                size,
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
        source = encoded.output if self.source is None else self.source(encoded.output)
        memories = [layer.across.remember(source, encoded.mask) for layer in self._stack()]
        seen = [part for memory in memories for part in (memory.keys, memory.values)]
        nothing = [part for layer in self._stack() for part in layer.back.initial(source)]
        return (encoded.mask, *seen, *nothing)

    def step(self, embedded: Tensor, state: State) -> Decoded:
        pasts = _pairs(state[self.held :])
        x = self.entry(embedded.unsqueeze(1), first=pasts[0][0].shape[1]).squeeze(1)
        kept: list[Tensor] = []
        looked: list[Tensor] = []
        for place, (layer, source, past) in enumerate(zip(self._stack(), self._sources(state), pasts, strict=True)):
            x, past, weights = layer.step(x, source, past, shown=place == self.shown)
            kept.extend(past)
            looked += [] if weights is None else [weights]
        return Decoded(self._leave(x), looked[0], (*state[: self.held], *kept))

    def forward(self, embedded: Tensor, state: State) -> Unrolled:
        x, looked = self.entry(embedded), []
        for place, (layer, source) in enumerate(zip(self._stack(), self._sources(state), strict=True)):
            x, weights = layer(x, source, shown=place == self.shown)
            looked += [] if weights is None else [weights]
        return Unrolled(self._leave(x), looked[0])

    def _leave(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)

    def _sources(self, state: State) -> list[Memory]:
        return [Memory(keys, values, state[0]) for keys, values in _pairs(state[1 : self.held])]

    def _stack(self) -> list[Layer]:
        return [cast(Layer, layer) for layer in self.layers]


def _pairs(flat: State) -> list[State]:
    return [flat[place : place + 2] for place in range(0, len(flat), 2)]
