"""The probability of each label of what is read: an encoder, one vector, one linear layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.registry import Part
from unrolled.layers import DROPOUTS, Embedding, cross_entropy
from unrolled.models.contextual import Looked, look_up
from unrolled.models.encoders import ENCODERS, Encoder
from unrolled.models.pointer import shares, shares_of, spread, spread_to
from unrolled.models.pooling import POOLINGS
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS


class Classified(NamedTuple):
    """What is said of a batch."""

    logits: Tensor  # [batch, labels]; of each position [batch, source, labels]
    weights: Tensor | None  # [batch, source]: how much of each position was read, where the pooling says it


class Labelling(nn.Module, ABC):
    """p(label | x_1 … x_n) = softmax(W c + b), c = pooling(encoder(read(x_1 … x_n)))

    Where a row may have several labels, each has its own probability σ(W c + b).

    ``class_weights`` says what a row counts in the loss: 1, or (``balanced``) rows / (labels · rows of its label), so
    that rare labels count as much as frequent ones and the mean over the training rows stays 1; with several labels
    what speaks for a label counts (rows without it / rows with it).

    Masks are bool, True = real, real places first.
    """

    each = False
    """Whether every position has its own label, and none is pooled."""

    def __init__(self, labels: int, several: bool, encoder: Encoder, pooling: Part, rate: float, weights: str) -> None:
        super().__init__()
        self.several, self.class_weights = several, weights
        self.encoder = encoder
        self.pooling = POOLINGS.build(pooling, self.encoder.output_size, where="pooling")
        self.dropout = DROPOUTS.build({"kind": "plain", "rate": rate}, where="dropout")
        self.output = nn.Linear(self.pooling.output_size, labels)
        self.weight: Tensor
        self.register_buffer("weight", torch.ones(labels), persistent=False)

    def weigh(self, counts: Sequence[int], rows: int) -> None:
        """Tell how many of the training ``rows`` have each label: what ``balanced`` weights follow from."""
        if self.class_weights == "balanced":
            held = torch.tensor(counts, dtype=torch.float32).clamp(min=1)
            weight = (rows - held).clamp(min=1) / held if self.several else rows / (len(held) * held)
            self.weight = weight.to(self.weight.device)

    @abstractmethod
    def read(self, given: Tensor, mask: Tensor) -> Looked:
        """What the encoder reads of the input."""

    def forward(self, given: Tensor, mask: Tensor) -> Classified:
        """``given`` [batch, source, …] as `read` takes it; each row has a real place at least."""
        read = self.read(given, mask)
        encoded = self.encoder(read.vectors, read.mask)
        if self.each:
            return Classified(self.output(self.dropout(encoded.output)), None)
        vector, weights = self.pooling(encoded)
        logits = self.output(self.dropout(vector.unsqueeze(1)).squeeze(1))
        if weights is None:
            return Classified(logits, None)
        return Classified(logits, self._spread(weights, read.mask if read.owner is None else mask, read.owner))

    def vector(self, given: Tensor, mask: Tensor) -> Tensor:
        """What the labels are told by: the pooled vector of each row, [batch, size]."""
        read = self.read(given, mask)
        pooled: Tensor = self.pooling(self.encoder(read.vectors, read.mask))[0]
        return pooled

    def _spread(self, weights: Tensor, mask: Tensor, owner: Tensor | None) -> Tensor:
        """Weights of memory positions as weights of source positions: each shares its own evenly among those it is
        of."""
        reduction = self.encoder.reduction
        if reduction == 1 and owner is None:
            return weights
        if owner is None:
            return spread(weights, shares(mask, reduction), reduction)
        return spread_to(weights, shares_of(mask, owner // reduction), owner // reduction)

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ over rows of the cross-entropy (natural log) of ``targets``: int64 [batch], or where a text may have
        several labels bool [batch, labels], the sum over labels."""
        if not self.several:
            if self.class_weights == "none":
                return cross_entropy(logits, targets, smoothing)
            exact = logits.float()
            each = functional.cross_entropy(exact, targets, reduction="none", label_smoothing=smoothing)
            return (each * self.weight[targets]).sum()
        wanted = targets.float() * (1 - smoothing) + smoothing / 2
        return functional.binary_cross_entropy_with_logits(
            logits.float(), wanted, pos_weight=self.weight, reduction="sum"
        )

    def probabilities(self, given: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Float32 [batch, labels] (of each position: [batch, source, labels]), and the weights of `forward`."""
        found = self(given, mask)
        logits = found.logits.float()
        return logits.sigmoid() if self.several else logits.softmax(dim=-1), found.weights


@MODELS.register("classifier")
class Classifier(Labelling):
    """A `Labelling` of symbols.

    ``pooling``: ``last``, ``mean``, ``max`` or ``attention``. ``dropout`` is that of the pooled vector,
    ``input_dropout`` (null: the same) that of the embedded symbols, ``word_dropout`` the rate at which single symbols
    are read as the unknown one. ``embedding_scale``: vectors are read as they are, or times √embedding_size, so that
    they start with variance 1.
    """

    def __init__(
        self,
        vocabulary_size: int,
        labels: int,
        several: bool = False,
        /,
        *,
        embedding_size: Count = 128,
        encoder: Annotated[Part, ENCODERS] = "rnn",
        pooling: Annotated[Part, POOLINGS] = "attention",
        dropout: Share = 0.3,
        input_dropout: Share | None = None,
        dropout_kind: Literal["plain", "locked"] = "plain",
        word_dropout: Share = 0.0,
        embedding_scale: Literal["none", "root"] = "none",
        class_weights: Literal["none", "balanced"] = "none",
    ) -> None:
        embedding = Embedding(
            vocabulary_size,
            size=embedding_size,
            dropout=dropout if input_dropout is None else input_dropout,
            dropout_kind=dropout_kind,
            word_dropout=word_dropout,
        )
        built = ENCODERS.build(encoder, embedding_size, where="encoder")
        super().__init__(labels, several, built, pooling, dropout, class_weights)
        self.embedding = embedding
        self.embedding_factor = embedding_size**0.5 if embedding_scale == "root" else 1.0

    def read(self, given: Tensor, mask: Tensor) -> Looked:
        """Vectors of the symbols ``given``, int64 [batch, source]."""
        read = look_up(self.embedding, given, mask)
        return read._replace(vectors=read.vectors * self.embedding_factor)
