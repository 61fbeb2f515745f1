"""An encoded text becomes one vector: its ends, its mean, its maximum, or what an attention finds worth reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, NamedTuple

from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers.attention import ATTENTIONS, AttentionPooling
from unrolled.models.encoders import Encoded


class Pooled(NamedTuple):
    """One vector a text."""

    vector: Tensor  # [batch, size]
    weights: Tensor | None  # [batch, memory positions]: how much of each is in it, where that can be said


class Pooling(nn.Module, ABC):
    """Encoded texts → one vector each. Padding is never part of it."""

    output_size: int

    @abstractmethod
    def forward(self, encoded: Encoded) -> Pooled: ...


POOLINGS: Registry[Pooling] = Registry("pooling")


@POOLINGS.register("last")
class Last(Pooling):
    """The encoder's summary: h_n^forward ⊕ h_1^backward at each text's true end, or its mean without a recurrence."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.output_size = size

    def forward(self, encoded: Encoded) -> Pooled:
        return Pooled(encoded.summary, None)


@POOLINGS.register("mean")
class Mean(Pooling):
    """c = Σ_j h_j / n over the n real positions."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.output_size = size

    def forward(self, encoded: Encoded) -> Pooled:
        total = encoded.output.masked_fill(~encoded.mask.unsqueeze(2), 0.0).sum(dim=1)
        return Pooled(total / encoded.mask.sum(dim=1, keepdim=True), None)


@POOLINGS.register("max")
class Maximum(Pooling):
    """c_k = max_j h_jk over the real positions (Collobert & Weston 2008)."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.output_size = size

    def forward(self, encoded: Encoded) -> Pooled:
        least = float("-inf")
        return Pooled(encoded.output.masked_fill(~encoded.mask.unsqueeze(2), least).amax(dim=1), None)


@POOLINGS.register("attention")
class Attentive(Pooling):
    """c = Σ_j α_j h_j, α = softmax_j score(u, h_j) with a learned query u (Yang et al. 2016, eqs. 5-7)."""

    def __init__(self, size: int, /, *, attention: Annotated[Part, ATTENTIONS] = "additive") -> None:
        super().__init__()
        self.attention = AttentionPooling(size, attention=attention)
        self.output_size = self.attention.output_size

    def forward(self, encoded: Encoded) -> Pooled:
        attended = self.attention(encoded.output, encoded.mask)
        return Pooled(attended.context, attended.weights)
