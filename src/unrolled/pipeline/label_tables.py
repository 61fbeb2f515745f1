"""A classifier's numbers as rows of tables: label by label, confusion by confusion, against another model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.tasks.label_scores import by_label, confusion

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


def bootstrap(mine: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """Accuracy of two models on the same rows: the difference, its 95 % interval, and how often a resample turns its
    sign (two-sided; Koehn 2004). Seed 0."""
    draw = np.random.default_rng(0)
    gaps = mine.astype(float) - theirs.astype(float)
    found = np.array([gaps[draw.integers(0, len(gaps), len(gaps))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(found, (0.025, 0.975))
    tail = min((found <= 0).mean(), (found >= 0).mean())
    return {
        "measure": "accuracy",
        "this": float(mine.mean()),
        "other": float(theirs.mean()),
        "difference": float(gaps.mean()),
        "low": float(low),
        "high": float(high),
        "p": float(min(1.0, 2 * tail)),
    }
