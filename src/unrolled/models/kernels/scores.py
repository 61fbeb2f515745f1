"""An attention's score and its derivative, both by hand, for one query a row."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from unrolled.layers import Attention
from unrolled.layers.attention import Additive, Bilinear, Dot, ScaledDot
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.repeated import Repeated
from unrolled.layers.kernels.steps import additive_score, meet, read


class HandScore(ABC):
    """Scores over ``keys`` [batch, source, key] for ``steps`` queries a row, one after the other.

    Queries come in the products' type; keys, scores and everything that is added up are float32 or wider.
    """

    @abstractmethod
    def __init__(self, keys: Tensor, weight: Tensor | None, vector: Tensor | None, steps: int, /) -> None: ...

    @abstractmethod
    def forward(self, step: int, query: Tensor, /) -> Tensor:
        """Scores [batch, source] of ``query`` [batch, query]."""

    @abstractmethod
    def backward(self, step: int, gradient: Tensor, /) -> Tensor:
        """From the gradient of the step's scores [batch, source] that of its query."""

    @abstractmethod
    def gradients(self, queries: Tensor, scores: Tensor, /) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Gradients of keys, weight and vector, after ``backward`` of all steps.

        ``queries`` [time, batch, query] are all that asked, ``scores`` [time, batch, source] the scores' gradients.
        """


class HandProduct(HandScore):
    """e_j = q · k_j"""

    def __init__(self, keys: Tensor, _weight: Tensor | None, _vector: Tensor | None, _steps: int, /) -> None:
        self.keys = keys
        self.scale = 1.0

    def forward(self, _step: int, query: Tensor, /) -> Tensor:
        return meet(self.keys, query.to(self.keys.dtype)).mul_(self.scale)

    def backward(self, _step: int, gradient: Tensor, /) -> Tensor:
        return read(gradient * self.scale, self.keys)

    def gradients(self, queries: Tensor, scores: Tensor, /) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return torch.bmm(scores.permute(1, 2, 0) * self.scale, queries.transpose(0, 1).to(scores.dtype)), None, None


class HandScaledProduct(HandProduct):
    """e_j = q · k_j / √d"""

    def __init__(self, keys: Tensor, weight: Tensor | None, vector: Tensor | None, steps: int, /) -> None:
        super().__init__(keys, weight, vector, steps)
        self.scale = keys.shape[2] ** -0.5


class HandAdditive(HandScore):
    """e_j = vᵀ tanh(W_q q + k_j). The tanh is computed again on the way back: to keep it costs time × source × size.

    With s = tanh² and ė the scores' gradient, that of W_q q is v * Σ_j ė_j (1 - s_j) and that of k_j adds up
    v * ė_j (1 - s_j) over the steps. The way back is compiled where possible; `_slopes` is what it must equal.
    """

    def __init__(self, keys: Tensor, weight: Tensor, vector: Tensor, steps: int, /) -> None:
        self.compiled = compiled.possible(keys) and compiled.product_found(weight.dtype)
        self.keys, self.weight, self.vector = keys.contiguous(), weight, vector.contiguous()
        self.product, self.nothing = Repeated(weight, steps), keys.new_zeros(len(weight))
        self.asked = keys.new_empty(steps, len(keys), 1, keys.shape[2])

    def forward(self, step: int, query: Tensor, /) -> Tensor:
        self.asked[step] = self.product.times(query, self.nothing).unsqueeze(1)
        if self.compiled and self.keys.dtype is torch.float32:
            return additive_score(self.asked[step], self.keys, self.vector)
        return self._hidden(step) @ self.vector

    def backward(self, step: int, gradient: Tensor, /) -> Tensor:
        if step == len(self.asked) - 1:
            self.of_vector = torch.zeros_like(self.vector)
            self.of_keys = torch.zeros_like(self.keys)
            self.of_asked = self.asked.new_empty(self.asked[:, :, 0].shape, dtype=self.weight.dtype)
        if self.compiled:
            self._compiled_back(step, gradient)
        else:
            self._slopes(step, gradient)
        return self.product.back(self.of_asked[step])

    def gradients(self, queries: Tensor, scores: Tensor, /) -> tuple[Tensor, Tensor | None, Tensor | None]:
        keys = self.of_keys.add_(scores.sum(dim=0).unsqueeze(2)).mul_(self.vector)
        return keys, self.of_asked.flatten(0, 1).t() @ queries.flatten(0, 1), self.of_vector

    def _slopes(self, step: int, gradient: Tensor) -> None:
        hidden = self._hidden(step)
        self.of_vector.addmv_(hidden.flatten(0, 1).t(), gradient.flatten())
        squares = hidden.square_()
        self.of_keys.addcmul_(squares, gradient.unsqueeze(2), value=-1)
        asked = gradient.sum(dim=1, keepdim=True) - torch.bmm(gradient.unsqueeze(1), squares).squeeze(1)
        torch.mul(asked, self.vector, out=self.of_asked[step])

    def _hidden(self, step: int) -> Tensor:
        return (self.keys + self.asked[step]).tanh_()

    def _compiled_back(self, step: int, gradient: Tensor) -> None:
        from unrolled.layers.kernels.compiled.additive import score_back
        from unrolled.layers.kernels.compiled.arrays import array

        given = (self.keys, self.asked[step, :, 0], self.vector, gradient.contiguous())
        score_back(*map(array, (*given, self.of_keys, self.of_vector, self.of_asked[step])))


_KINDS: dict[type[Attention], type[HandScore]] = {
    Additive: HandAdditive,
    Bilinear: HandProduct,
    Dot: HandProduct,
    ScaledDot: HandScaledProduct,
}


def hand_score(attention: Attention) -> type[HandScore] | None:
    """The hand-written score of ``attention``, or None where it has none: then the plain loop runs."""
    return _KINDS.get(type(attention)) if attention.plain else None


def learned(attention: Attention, product: torch.dtype, sums: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """The weights that a score needs besides its keys: W_q in the products' type, v in the sums' type."""
    if not isinstance(attention, Additive):
        return None, None
    vector = attention.vector
    if attention.scale is not None:
        vector = attention.scale * vector / vector.norm()
    return attention.query_weight.to(product), vector.to(sums)
