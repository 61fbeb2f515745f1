"""A classifier's numbers as rows of tables: label by label, confusion by confusion, against another model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.tasks.label_scores import by_label, confusion

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

DRAWS = 1000
"""Resamples of a paired bootstrap."""


def class_table(targets: np.ndarray, answers: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Precision, recall, F1 and rows of each label."""
    return [one._asdict() for one in by_label(targets, answers, names)]


def confused(targets: np.ndarray, answers: np.ndarray, names: Sequence[str], most: int = 10) -> list[dict[str, Any]]:
    """The commonest mistakes, the commonest first."""
    counts = confusion(targets, answers, len(names))
    np.fill_diagonal(counts, 0)
    places = np.argsort(-counts, axis=None, kind="stable")[:most]
    rows, columns = np.unravel_index(places, counts.shape)
    return [
        {"label": names[row], "answer": names[column], "rows": int(counts[row, column])}
        for row, column in zip(rows, columns, strict=True)
        if counts[row, column]
    ]


def confusion_picture(counts: np.ndarray, names: Sequence[str], said: str) -> Explanation:
    """Which labels are taken for which: ``counts`` [right label, answer] as shares of each row."""
    from unrolled.explain.explanation import Explanation

    return Explanation(
        source=names,
        target=names,
        weights=counts / np.maximum(counts.sum(axis=1, keepdims=True), 1),
        method="confusion",
        scale="share of the row's label",
        source_text="answer",
        target_text=said,
    )


def share(rows: np.ndarray) -> float:
    """The mean of what was right."""
    return float(rows.mean())


def bootstrap(
    mine: np.ndarray, theirs: np.ndarray, measure: str = "accuracy", combine: Callable[[np.ndarray], float] = share
) -> dict[str, Any]:
    """Two models on the same rows by what ``combine`` makes of numbers a row: the difference, its 95 % interval, and
    how often a resample turns its sign (two-sided; Koehn 2004). Seed 0."""
    draw = np.random.default_rng(0)
    mine, theirs = mine.astype(float), theirs.astype(float)
    resamples = (draw.integers(0, len(mine), len(mine)) for _ in range(DRAWS))
    found = np.array([combine(mine[rows]) - combine(theirs[rows]) for rows in resamples])
    low, high = np.quantile(found, (0.025, 0.975))
    tail = min((found <= 0).mean(), (found >= 0).mean())
    return {
        "measure": measure,
        "this": combine(mine),
        "other": combine(theirs),
        "difference": combine(mine) - combine(theirs),
        "low": float(low),
        "high": float(high),
        "p": float(min(1.0, 2 * tail)),
    }
