"""No reading at all: each position is what it is given as."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder, averaged


@ENCODERS.register("plain")
class PlainEncoder(Encoder):
    """h_j = x_j. The mean vector is state and summary.

    For what has been read before, as the places of an image by convolutions (Xu et al. 2015, arXiv:1502.03044, §3.1);
    over embedded words it is the baseline that knows no order.
    """

    def __init__(self, embedding_size: int, /) -> None:
        super().__init__(embedding_size)
        self.output_size = embedding_size
        self.layout = ((embedding_size,),)
        self.register_buffer("own", torch.empty(0), persistent=False)  # of what type the numbers are to be

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        return averaged(embedded, mask)
