"""How probable drawings are: nats a point and a drawing, and two models over the same drawings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unrolled.base.errors import DataError
from unrolled.tasks.scores import Score
from unrolled.text.drawings import DrawingReader

SAMPLES, SEED = 1000, 12345


def protocol_of(reader: DrawingReader) -> str:
    """What the densities of a model are densities of."""
    grid = f"coordinates rounded to {reader.grid:g}; " if reader.grid else ""
    return (
        f"density over squares of the file's unit, {grid}no deviation below {reader.floor * reader.scale:.3g}; "
        "with the pen: on, lifted, done"
    )


class Tally:
    """Log-probabilities of drawings, added up drawing by drawing."""

    def __init__(self) -> None:
        self.sums: list[float] = []
        self.lengths: list[int] = []
        self.right = 0

    def add(self, log_probs: np.ndarray, pens: np.ndarray, given: np.ndarray) -> None:
        """A drawing's log-probabilities [points], the probabilities of its pens [points, 3] and its pens [points]."""
        self.sums.append(float(log_probs.sum()))
        self.lengths.append(len(log_probs))
        self.right += int((pens.argmax(axis=1) == given).sum())

    @property
    def count(self) -> int:
        return len(self.sums)

    @property
    def points(self) -> int:
        return sum(self.lengths)

    @property
    def log_prob(self) -> float:
        return sum(self.sums)

    def scores(self, protocol: str) -> list[Score]:
        """``loss`` and ``nats_drawing`` are negative log densities, ``pen_accuracy`` a share."""
        points, count = max(self.points, 1), max(self.count, 1)
        counted = f"{self.points:,} points of {self.count:,} drawings"
        return [
            Score("loss", -self.log_prob / points, f"nats a point; {counted}; {protocol}", False),
            Score("nats_drawing", -self.log_prob / count, f"nats a drawing; {counted}", False),
            Score("pen_accuracy", self.right / points, "share of points whose likeliest pen is the real one", True),
        ]


class Difference(NamedTuple):
    """The loss a point of one model less that of another: below 0, it is the better one."""

    loss: float
    low: float  # the middle 95 % of the resampled differences
    high: float
    protocol: str


def difference(one: Tally, other: Tally) -> Difference:
    """``one`` less ``other``, with a paired bootstrap over the drawings (Koehn 2004)."""
    if one.lengths != other.lengths:
        raise DataError("the two models read different drawings; compare them on the same ones.")
    gaps, lengths = np.array(other.sums) - np.array(one.sums), np.array(one.lengths)
    draw = np.random.default_rng(SEED)
    found = np.empty(SAMPLES)
    for sample in range(SAMPLES):
        rows = draw.integers(len(gaps), size=len(gaps))
        found[sample] = gaps[rows].sum() / lengths[rows].sum()
    low, high = np.quantile(found, [0.025, 0.975])
    protocol = f"nats a point|paired bootstrap|bs:{SAMPLES}|seed:{SEED}"
    return Difference(float(gaps.sum() / lengths.sum()), float(low), float(high), protocol)
