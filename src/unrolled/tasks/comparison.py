"""Is one system better than another, or only luckier with these sentences: the paired bootstrap (Koehn 2004)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.registry import Part
from unrolled.tasks.scores import MEASURES, References, Score, matched


class Comparison(NamedTuple):
    """Two systems by one measure; ``difference`` is system minus baseline."""

    baseline: Score
    system: Score
    difference: float
    low: float  # the middle 95 % of the resampled differences lie in [low, high]
    high: float
    p_value: float
    protocol: str


def compare(
    measure: Part,
    baseline: Sequence[str],
    system: Sequence[str],
    references: References,
    *,
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Resample the same sentences for both systems, ``samples`` times with replacement, and look at the difference.

    ``p_value`` is sacreBLEU's: how often the resampled absolute difference exceeds its own mean by at least the one
    observed, plus one, over ``samples`` plus one. Equal within rounding counts as exceeding: two equal systems get 1.
    """
    if samples < 1:
        raise UsageError(f"samples {samples} was given; 1 or more are needed, 1000 is usual.")
    build = MEASURES.build(measure)
    several = matched(baseline, references)
    matched(system, references)
    ours, protocol = build.statistics(system, several)
    theirs, _ = build.statistics(baseline, several)
    differences = np.empty(samples)
    draw = np.random.default_rng(seed)
    for sample in range(samples):
        times = np.bincount(draw.choice(len(several), len(several)), minlength=len(several))
        differences[sample] = build.combine(times @ ours) - build.combine(times @ theirs)
    before, after = (
        Score(build.name, build.combine(rows.sum(0)), protocol, build.higher_is_better) for rows in (theirs, ours)
    )
    difference = after.value - before.value
    spread = np.abs(differences)
    exceeding = int((spread - spread.mean() >= abs(difference) - 1e-9).sum())
    low, high = np.quantile(differences, [0.025, 0.975])
    return Comparison(
        before,
        after,
        difference,
        float(low),
        float(high),
        (exceeding + 1) / (samples + 1),
        f"{protocol}|bs:{samples}|seed:{seed}",
    )
