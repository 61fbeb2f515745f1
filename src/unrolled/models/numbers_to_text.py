"""Listen, attend and spell; show, attend and tell: a text written of numbers, whatever front reads them."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from annotated_types import Ge
from torch import Tensor

from unrolled.base.registry import Part
from unrolled.layers import DROPOUTS, Embedding
from unrolled.models.alignments import ALIGNMENTS
from unrolled.models.bridge import BRIDGES
from unrolled.models.contextual import Looked
from unrolled.models.decoders import DECODERS
from unrolled.models.encoders import ENCODERS
from unrolled.models.fronts import FRONTS
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS
from unrolled.models.writing import Writing


@MODELS.register("numbers_to_text")
class NumbersToText(Writing):
    """A `Writing` of what a ``front`` reads: frames of speech (Chan et al. 2016, arXiv:1508.01211), an image (Xu et al.
    2015, arXiv:1502.03044).

    ``embedding_size`` is that of the target's symbols, ``dropout`` that of their vectors and of the decoder's output,
    ``word_dropout`` the probability that a symbol is read as the unknown one. ``tie``: the output layer uses the
    embedding's weights. ``coverage_loss`` and ``alignment``: see `Writing`. ``doubly_stochastic`` λ: in training
    λ Σ_j (1 - Σ_i α_ij)² is added to each row's loss, so that no position is passed over (Xu et al. 2015, §4.2.1).
    """

    def __init__(
        self,
        channels: int,
        target_vocabulary: int,
        /,
        *,
        front: Annotated[Part, FRONTS] = "frames",
        embedding_size: Count = 64,
        encoder: Annotated[Part, ENCODERS] = "rnn",
        bridge: Annotated[Part, BRIDGES] = "projection",
        decoder: Annotated[Part, DECODERS] = "query_before",
        tie: bool = False,
        dropout: Share = 0.2,
        dropout_kind: Literal["plain", "locked"] = "plain",
        word_dropout: Share = 0.0,
        coverage_loss: Annotated[float, Ge(0)] = 0.0,
        doubly_stochastic: Annotated[float, Ge(0)] = 0.0,
        alignment: Annotated[Part | None, ALIGNMENTS] = None,
    ) -> None:
        super().__init__()
        self.front = FRONTS.build(front, channels, where="front")
        self.wire(
            Embedding(
                target_vocabulary,
                size=embedding_size,
                dropout=dropout,
                dropout_kind=dropout_kind,
                word_dropout=word_dropout,
            ),
            ENCODERS.build(encoder, self.front.output_size, where="encoder"),
            decoder,
            bridge,
            dropout=DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout"),
            tie=tie,
            coverage_loss=coverage_loss,
            alignment=alignment,
        )
        self.doubly_stochastic = doubly_stochastic
        if doubly_stochastic > 0:
            self.needs_attention("doubly_stochastic")

    def read(self, source: Tensor, mask: Tensor) -> Looked:
        """The numbers ``source`` [batch, …] as the front gives them."""
        read: Looked = self.front(source, mask)
        return read

    def penalty(self, weights: Tensor | None, target_mask: Tensor) -> Tensor | None:
        found = super().penalty(weights, target_mask)
        if weights is None or not self.doubly_stochastic or not self.training:
            return found
        looked = weights.masked_fill(~target_mask[:, 1:].unsqueeze(2), 0.0).sum(dim=1)
        left = torch.where(looked > 0, 1 - looked, 0.0)  # padding is never looked at
        term = self.doubly_stochastic * left.square().sum()
        return term if found is None else found + term
