"""Windows of one, two, three … words side by side: an n-gram is a feature."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder, averaged
from unrolled.models.ranges import Count
from unrolled.models.windows import around, windows


@ENCODERS.register("ngram")
class NGramEncoder(Encoder):
    """u^n_j = relu(W^n [x_{j-n/2} … x_{j+n/2}] + b^n) for n = 1 … ``widest``, joined over n.

    Kim 2014 (arXiv:1408.5882). ``join``: ``concat``, h_j = u^1_j ⊕ … ⊕ u^N_j, or ``max`` of each feature over the
    widths. One layer, no order beyond the widest window. The mean vector is the state, the largest value of each
    feature over the sentence the summary (Kim's max over time).
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        widest: Count = 3,
        hidden_size: Count = 128,
        join: Literal["concat", "max"] = "concat",
    ) -> None:
        super().__init__(embedding_size)
        self.join = join
        self.layers = nn.ModuleList(nn.Linear(width * embedding_size, hidden_size) for width in range(1, widest + 1))
        self.output_size = hidden_size * (widest if join == "concat" else 1)
        self.layout = ((self.output_size,),)

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        given = embedded.masked_fill(~mask.unsqueeze(2), 0.0)
        found = [layer(windows(given, *around(width))).relu() for width, layer in enumerate(self.layers, start=1)]
        features = torch.cat(found, dim=2) if self.join == "concat" else torch.stack(found).amax(dim=0)
        encoded = averaged(features, mask)
        return encoded._replace(summary=encoded.output.amax(dim=1))  # padding is 0, and no feature is less
