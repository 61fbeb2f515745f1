"""Columns of features beside source and target: empty ones, and values that train does not hold."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.data.census import FIRST_FEATURES, Census
from unrolled.data.column import PLACES
from unrolled.data.findings import Finding
from unrolled.data.table import listed


def empty(census: Census) -> Iterator[Finding]:
    """A column of features without any: nothing can be learnt from it."""
    for column, values in zip(census.columns[FIRST_FEATURES:], census.values, strict=True):
        if census.rows and not values:
            message = f"the features '{column.name}' are empty in every row: leave the column out (--columns)."
            yield Finding("error", "no features", census.split, census.rows, message)


def unseen(train: Census, census: Census) -> Iterator[Finding]:
    """Values that no training row has."""
    names = [column.name for column in census.columns[FIRST_FEATURES:]]
    for name, known, values in zip(names, train.values, census.values, strict=False):
        new = {value: place for value, place in values.items() if value not in known}
        if new:
            are = "value is" if len(new) == 1 else "values are"
            message = f"{len(new)} {are} new among the features '{name}': {listed(list(new), 5)}. Read as unknown."
            yield Finding("warning", "unseen features", census.split, len(new), message, tuple(new.values())[:PLACES])
