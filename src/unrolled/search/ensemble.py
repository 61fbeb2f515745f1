"""Several engines as one: the search sees the mean of what they hold probable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.protocol import Candidates, State, Stepper


class Ensemble:
    """p(y_i) = 1/n Σ_k p_k(y_i) of engines that say the same symbols; attention is the mean of those that look
    over the places that the first one with attention has.

    Implements `unrolled.base.protocol.Stepper`. A state is a tuple of the engines' states. UsageError for engines of
    unequal vocabularies, or none.
    """

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        sizes = [one.vocabulary_size for one in steppers]
        if not sizes or len(set(sizes)) > 1:
            raise UsageError(f"ensemble: the models write {sizes} symbols. Give models with one vocabulary.")
        self.steppers, self.vocabulary_size = tuple(steppers), sizes[0]

    def start(self, ids: np.ndarray, mask: np.ndarray) -> State:
        return tuple(one.start(ids, mask) for one in self.steppers)

    def step(self, last_ids: np.ndarray, state: State, k: int) -> Candidates:
        """Equal scores: the smaller id first."""
        total = np.zeros((len(last_ids), self.vocabulary_size))
        looked: list[np.ndarray] = []
        states = []
        for one, own in zip(self.steppers, state, strict=True):
            found = one.step(last_ids, own, self.vocabulary_size)
            dense = np.zeros_like(total)
            np.put_along_axis(dense, found.ids, np.exp(found.scores.astype(np.float64)), axis=1)
            total += dense
            states.append(found.state)
            looked += [] if found.weights is None else [found.weights]
        k = min(k, self.vocabulary_size)
        ids = np.argsort(-total, axis=1, kind="stable")[:, :k]
        with np.errstate(divide="ignore"):
            scores = np.log(np.take_along_axis(total, ids, axis=1) / len(self.steppers)).astype(np.float32)
        alike = [one for one in looked if one.shape == looked[0].shape]
        weights = np.asarray(np.mean(alike, axis=0, dtype=np.float32)) if alike else None
        return Candidates(scores, ids, weights, tuple(states))

    def select(self, state: State, rows: np.ndarray) -> State:
        return tuple(one.select(own, rows) for one, own in zip(self.steppers, state, strict=True))
