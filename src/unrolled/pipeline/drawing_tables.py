"""Scores of drawings as results and as tables: of one model, and of two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.tasks.drawing_scores import Tally, difference
from unrolled.tasks.scores import Score

Tables = dict[str, tuple[str, list[dict[str, Any]]]]


class ScoredDrawing(NamedTuple):
    """A drawing, as the model finds it."""

    log_probs: np.ndarray  # float64 [points], nats: the log density of each step and the pen's log-probability
    label: str
    place: int = 1  # the 1-based line or row where it stands

    @property
    def log_prob(self) -> float:
        return float(self.log_probs.sum())


def summed(tally: Tally, scores: Sequence[Score]) -> dict[str, Any]:
    """All drawings together, as a tree."""
    tree = {"log_prob": tally.log_prob, "drawings": tally.count, "points": tally.points}
    return tree | {one.name: one.value for one in scores} | {"protocol": scores[0].protocol}


def beside(mine: Tally, other: Tally, scores: Sequence[Score], others: Sequence[Score]) -> Tables:
    """Two models over the same drawings, and by how much the first is better."""
    rows = [
        {"model": name, **{one.name: one.value for one in found}}
        for name, found in (("this", scores), ("other", others))
    ]
    return {
        "compare": ("Side by side", rows),
        "difference": ("This less the other, over the same drawings", [difference(mine, other)._asdict()]),
    }
