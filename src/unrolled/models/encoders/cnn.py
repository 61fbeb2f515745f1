"""Stacked convolutions with gates: every layer sees a little further."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from unrolled.base.registry import Part
from unrolled.layers.draws import dropout
from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder, averaged
from unrolled.models.positions import POSITIONS
from unrolled.models.ranges import Count, Share
from unrolled.models.windows import around, windows


@ENCODERS.register("cnn")
class ConvolutionalEncoder(Encoder):
    """The encoder of ConvS2S (Gehring et al. 2017, arXiv:1705.03122, §3), with e_j symbol and position together:

    z^0 = W_in e;   z^l_j = (GLU(W^l [z^{l-1}_{j-k/2} … z^{l-1}_{j+k/2}] + b^l) + z^{l-1}_j) √½
    h_j = (W_out z^L_j + e_j) √½                               GLU([a, b]) = a * σ(b)   (Dauphin et al. 2017)

    ``width`` k is that of the windows, so L layers see L(k - 1) + 1 symbols. ``dropout`` is that of every layer's
    input and of e. The sums are scaled as in §3.4, and weights start as in §3.5. ``weight_norm``: every row of every W
    is learned as length and direction, w = g v/‖v‖ (Salimans & Kingma 2016, arXiv:1602.07868), as the paper has it. In
    the paper a decoder scores W_out z^L and reads h; here an attention does both with h. The mean vector is state and
    summary.
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        layers: Count = 4,
        hidden_size: Count = 256,
        width: Count = 3,
        positions: Annotated[Part, POSITIONS] = "learned",
        dropout: Share = 0.1,
        weight_norm: bool = True,
    ) -> None:
        super().__init__(embedding_size)
        self.width, self.dropout = width, dropout
        self.positions = POSITIONS.build(positions, embedding_size, where="positions")
        self.enter = nn.Linear(embedding_size, hidden_size)
        self.layers = nn.ModuleList(nn.Linear(width * hidden_size, 2 * hidden_size) for _ in range(layers))
        self.leave = nn.Linear(hidden_size, embedding_size)
        self._start(weight_norm)
        self.output_size = embedding_size
        self.layout = ((embedding_size,),)

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        return self._over(self.positions(embedded), mask)

    def encode_at(self, embedded: Tensor, mask: Tensor, places: Tensor) -> Encoded:
        return self._over(self.positions(embedded, places=places), mask)

    def _over(self, placed: Tensor, mask: Tensor) -> Encoded:
        padding = ~mask.unsqueeze(2)
        read = dropout(placed, self.dropout, self.training)
        z = self.enter(read)
        for layer in self.layers:
            given = dropout(z.masked_fill(padding, 0.0), self.dropout, self.training)
            z = (functional.glu(layer(windows(given, *around(self.width))), dim=2) + z) * 0.5**0.5
        return averaged((self.leave(z) + read) * 0.5**0.5, mask)

    def _start(self, split: bool) -> None:
        """Normal weights that keep the variance: 4p/n before a gate, p/n elsewhere (§3.5); p the share kept.

        Then ``split`` into length and direction.
        """
        kept = 1 - self.dropout
        for layer in (self.enter, *self.layers, self.leave):
            gated = 1.0 if layer in (self.enter, self.leave) else 4.0
            nn.init.normal_(layer.weight, std=(gated * kept / layer.in_features) ** 0.5)
            nn.init.zeros_(layer.bias)
            if split:
                parametrizations.weight_norm(layer)
