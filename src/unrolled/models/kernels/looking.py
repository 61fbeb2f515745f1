"""An attention inside a loop over time, by hand: a query a step, the memory's gradients in one product after it."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.kernels.steps import meet, read
from unrolled.models.kernels.scores import HandScore


class Looking:
    """α_t = softmax(score(q_t, keys)), c_t = Σ_j α_tj v_j, and their derivatives; the last step goes back first.

    ``keys`` [batch, source, key], ``values`` [batch, source, value] and all sums are float32 or wider. ``weights`` is
    [time, batch, source].
    """

    def __init__(self, score: HandScore, values: Tensor, mask: Tensor, steps: int) -> None:
        self.score, self.values, self.padding = score, values, ~mask
        self.weights = values.new_empty(steps, *values.shape[:2])

    def forward(self, step: int, query: Tensor) -> Tensor:
        """The context [batch, value] of ``query`` [batch, query], which is in the type of products."""
        scores = self.score.forward(step, query).masked_fill_(self.padding, float("-inf"))
        self.weights[step] = scores.softmax(dim=1)
        return read(self.weights[step], self.values)

    def ready(self, of_weights: Tensor | None) -> None:
        """Take the gradient of ``weights``, before ``backward``."""
        self.of_weights = of_weights
        self.of_scores = torch.empty_like(self.weights)

    def backward(self, step: int, of_context: Tensor) -> Tensor:
        """The gradient of the query, from that of the context."""
        weights, scores = self.weights[step], self.of_scores[step]
        looked = meet(self.values, of_context)
        if self.of_weights is not None:
            looked += self.of_weights[step]
        torch.mul(weights, looked - (weights * looked).sum(dim=1, keepdim=True), out=scores)
        return self.score.backward(step, scores)

    def gradients(self, queries: Tensor, of_contexts: Tensor) -> tuple[Tensor | None, ...]:
        """Of keys, values, query weight and vector, each in one product; both arguments [time, batch, size]."""
        keys, query_weight, vector = self.score.gradients(queries, self.of_scores)
        values = torch.bmm(self.weights.permute(1, 2, 0), of_contexts.transpose(0, 1))
        return keys, values, query_weight, vector
