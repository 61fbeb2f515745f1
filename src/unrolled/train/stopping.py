"""Which validation is the best, and when to stop waiting for a better one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unrolled.base.errors import SettingsError, known

LOWER = frozenset(
    {"loss", "perplexity", "cer", "wer", "ter", "aer", "character_error_rate", "alignment_error_rate", "error_rate"}
)
"""Scores of which less is better; of every other one more is."""


class Stopping:
    """Remembers the best value of one score. A value that is not a number is never better."""

    def __init__(self, score: str, patience: int | None) -> None:
        self.score = score
        self.patience = patience
        self.best: float | None = None
        self.best_step: int | None = None
        self.waited = 0

    def observe(self, step: int, scores: Mapping[str, float]) -> bool:
        """Whether these are the best scores so far; SettingsError where the chosen one is not among them."""
        if self.score not in scores:
            raise SettingsError(
                f"[train.stop_on] the validation has no score called '{self.score}'. {known(self.score, scores)}"
            )
        value = float(scores[self.score])
        sign = -1 if self.score in LOWER else 1
        better = not math.isnan(value) and (self.best is None or sign * value > sign * self.best)
        if better:
            self.best, self.best_step, self.waited = value, step, 0
        else:
            self.waited += 1
        return better

    @property
    def exhausted(self) -> bool:
        return self.patience is not None and self.waited >= self.patience

    def state(self) -> dict[str, Any]:
        return {"score": self.score, "best": self.best, "best_step": self.best_step, "waited": self.waited}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up ``state()`` of a checkpoint; a run that now stops on another score starts to compare afresh."""
        if state["score"] == self.score:
            self.best, self.best_step, self.waited = state["best"], state["best_step"], state["waited"]

    def forget(self) -> None:
        """Compare afresh: the best weights are gone."""
        self.best, self.best_step, self.waited = None, None, 0
