"""An engine that copies nothing, among engines whose sources lend symbols to words that have none."""

from __future__ import annotations

import numpy as np

from unrolled.base.protocol import UNKNOWN, Candidates, State, Stepper


class Unlent:
    """``engine`` with ``lent`` symbols more: it reads them as UNKNOWN, those of a source from ``first`` on, and never
    says one.

    Implements `unrolled.base.protocol.Stepper`.
    """

    def __init__(self, engine: Stepper, first: int, lent: int) -> None:
        self.engine, self.first = engine, first
        self.vocabulary_size = engine.vocabulary_size + lent

    def start(self, ids: np.ndarray, mask: np.ndarray) -> State:
        return self.engine.start(np.where(ids >= self.first, UNKNOWN, ids), mask)

    def step(self, last_ids: np.ndarray, state: State, k: int) -> Candidates:
        own = self.engine.vocabulary_size
        found = self.engine.step(np.where(last_ids >= own, UNKNOWN, last_ids), state, min(k, own))
        rows, more = len(last_ids), min(k, self.vocabulary_size) - found.ids.shape[1]
        if more <= 0:
            return found
        never = np.full((rows, more), -np.inf, dtype=found.scores.dtype)
        lent = np.broadcast_to(np.arange(own, own + more), (rows, more))
        scores, ids = np.hstack((found.scores, never)), np.hstack((found.ids, lent))
        return found._replace(scores=scores, ids=ids)

    def select(self, state: State, rows: np.ndarray) -> State:
        return self.engine.select(state, rows)
