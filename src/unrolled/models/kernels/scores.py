"""An attention's score and its derivative, both by hand, for one query a row."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers import Attention
from unrolled.layers.attention import Additive, Bilinear, Dot, ScaledDot


class HandScore(ABC):
    """Scores over ``keys`` [batch, source, key] in the sums' type, and the gradients that all steps add up to."""

    @abstractmethod
    def __init__(self, keys: Tensor, weight: Tensor | None, vector: Tensor | None, /) -> None: ...

    @abstractmethod
    def forward(self, query: Tensor) -> Tensor:
        """Scores [batch, source] of ``query`` [batch, query]."""

    @abstractmethod
    def backward(self, gradient: Tensor, query: Tensor, /) -> Tensor:
        """From the gradient of the scores [batch, source] that of ``query``. Called for the last step first."""

    @abstractmethod
    def gradients(self, queries: Tensor, scores: Tensor, /) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Gradients of keys, weight and vector, after ``backward`` of all steps.

        ``queries`` [time, batch, query] are all that asked, ``scores`` [time, batch, source] the scores' gradients.
        """


class HandProduct(HandScore):
    """e_j = q · k_j"""

    def __init__(self, keys: Tensor, _weight: Tensor | None, _vector: Tensor | None, /) -> None:
        self.keys = keys
        self.scale = 1.0

    def forward(self, query: Tensor) -> Tensor:
        return torch.bmm(self.keys, query.unsqueeze(2)).squeeze(2) * self.scale

    def backward(self, gradient: Tensor, _query: Tensor, /) -> Tensor:
        return torch.bmm((gradient * self.scale).unsqueeze(1), self.keys).squeeze(1)

    def gradients(self, queries: Tensor, scores: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return torch.bmm(scores.permute(1, 2, 0) * self.scale, queries.transpose(0, 1)), None, None


class HandScaledProduct(HandProduct):
    """e_j = q · k_j / √d"""

    def __init__(self, keys: Tensor, weight: Tensor | None, vector: Tensor | None, /) -> None:
        super().__init__(keys, weight, vector)
        self.scale = keys.shape[2] ** -0.5


class HandAdditive(HandScore):
    """e_j = vᵀ tanh(W_q q + k_j). The tanh is computed again on the way back: to keep it costs time × source × size."""

    def __init__(self, keys: Tensor, weight: Tensor, vector: Tensor, /) -> None:
        self.keys, self.weight, self.vector = keys, weight, vector
        self.of_keys = torch.zeros_like(keys)
        self.of_vector = torch.zeros_like(vector)
        self.of_asked: list[Tensor] = []

    def forward(self, query: Tensor) -> Tensor:
        return self._hidden(query) @ self.vector

    def backward(self, gradient: Tensor, query: Tensor) -> Tensor:
        hidden = self._hidden(query)
        self.of_vector.addmv_(hidden.flatten(0, 1).t(), gradient.flatten())
        slope = hidden.square_().neg_().add_(1)
        self.of_keys.addcmul_(slope, gradient.unsqueeze(2))
        asked = torch.bmm(gradient.unsqueeze(1), slope).squeeze(1).mul_(self.vector).to(self.weight.dtype)
        self.of_asked.append(asked)
        return (asked @ self.weight).to(gradient.dtype)

    def gradients(self, queries: Tensor, _scores: Tensor, /) -> tuple[Tensor, Tensor | None, Tensor | None]:
        asked = torch.stack(self.of_asked[::-1]).flatten(0, 1)
        weight = asked.t() @ queries.flatten(0, 1).to(asked.dtype)
        return self.of_keys * self.vector, weight, self.of_vector

    def _hidden(self, query: Tensor) -> Tensor:
        asked = functional.linear(query.to(self.weight.dtype), self.weight).to(self.keys.dtype)
        return (self.keys + asked.unsqueeze(1)).tanh_()


_KINDS: dict[type[Attention], type[HandScore]] = {
    Additive: HandAdditive,
    Bilinear: HandProduct,
    Dot: HandProduct,
    ScaledDot: HandScaledProduct,
}


def hand_score(attention: Attention) -> type[HandScore] | None:
    """The hand-written score of ``attention``, or None where it has none: then the plain loop runs."""
    return _KINDS.get(type(attention))


def learned(attention: Attention, product: torch.dtype, sums: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """The weights that a score needs besides its keys: W_q in the products' type, v in the sums' type."""
    if not isinstance(attention, Additive):
        return None, None
    vector = (
        attention.vector if attention.scale is None else attention.scale * attention.vector / attention.vector.norm()
    )
    return attention.query_weight.to(product), vector.to(sums)
