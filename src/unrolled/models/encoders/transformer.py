"""Every position looks at all others at once, layer after layer."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers.attention import SelfAttention
from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder, averaged
from unrolled.models.positions import POSITIONS
from unrolled.models.ranges import Count, Share
from unrolled.models.transformer import Activation, Around, Entry, Norm, PerPosition, width


class Layer(nn.Module):
    """x = around(x, self-attention);  x = around(x, g(x W_1) W_2). Oracle: `torch.nn.TransformerEncoderLayer`."""

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
        self.look_around = Around(size, norm=norm, dropout=dropout)
        self.look = SelfAttention(size, heads=heads, dropout=attention_dropout)
        self.think_around = Around(size, norm=norm, dropout=dropout)
        self.think = PerPosition(size, feedforward_size=feedforward_size, activation=activation, dropout=dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``x`` [batch, source, size], ``mask`` bool [batch, source], True = real."""
        x = self.look_around.leave(x, self.look(self.look_around.enter(x), mask))
        return self.think_around.leave(x, self.think(self.think_around.enter(x)))


@ENCODERS.register("transformer")
class TransformerEncoder(Encoder):
    """The encoder of Vaswani et al. 2017 (arXiv:1706.03762, §3.1): ``layers`` of self-attention and a small network.

    ``norm`` stands after each part, as in the paper, or before it (then once more at the top). ``hidden_size`` is that
    of all vectors, null the embedding's; where they differ a projection leads in. ``dropout`` is that of the sum of
    symbols and positions, of each part's result and inside the small network, ``attention_dropout`` that of the
    weights. The mean vector is state and summary.
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        layers: Count = 3,
        heads: Count = 4,
        hidden_size: Count | None = None,
        feedforward_size: Count = 1024,
        norm: Norm = "pre",
        positions: Annotated[Part, POSITIONS] = "sinusoidal",
        activation: Activation = "relu",
        dropout: Share = 0.1,
        attention_dropout: Share = 0.0,
    ) -> None:
        super().__init__(embedding_size)
        size = width(embedding_size, hidden_size, heads)
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
        self.layout = ((size,),)

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        return self._over(self.entry(embedded), mask)

    def encode_at(self, embedded: Tensor, mask: Tensor, places: Tensor) -> Encoded:
        return self._over(self.entry(embedded, places=places), mask)

    def _over(self, x: Tensor, mask: Tensor) -> Encoded:
        for layer in self.layers:
            x = layer(x, mask)
        return averaged(x if self.norm is None else self.norm(x), mask)
