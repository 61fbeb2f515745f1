"""Which column of a table holds labels: by its name, or by few short values that come again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from unrolled.data.table import Table

LABELS = ("label", "class", "category", "intent", "sentiment", "topic", "labels")
"""What columns of labels are called, the likeliest first; compared in lower case."""

HEAD = 1000
"""Rows that are looked at to tell which column holds the labels."""

FEW = 20
"""Rows below which nothing is concluded of a table without names."""

MOST_GUESSED = 100
LONGEST_LABEL = 40


def label_column(columns: Sequence[str], names: Sequence[str] = LABELS) -> int | None:
    """The column that is called as labels are."""
    lower = [name.strip().casefold() for name in columns]
    return next((lower.index(name) for name in names if name in lower), None)


def looks_of(table: Table) -> list[Counter[str]]:
    """The values of each column in the head of a table."""
    counts: list[Counter[str]] = [Counter() for _ in table.columns]
    for row in islice(table.rows(lambda _: None), HEAD):
        for counter, value in zip(counts, row.fields, strict=True):
            counter[value.strip()] += 1
    return counts


def label_by_looks(looks: Sequence[Counter[str]], least: int = 2) -> int | None:
    """The one column of few, short values, ``least`` at least, that come again and again; None where none or several
    are so."""
    rows = looks[0].total()
    if rows < FEW:
        return None
    few = [
        place
        for place, counter in enumerate(looks)
        if least <= len(counter) <= min(MOST_GUESSED, rows // 5) and max(map(len, counter)) <= LONGEST_LABEL
    ]
    others = [counter for place, counter in enumerate(looks) if place not in few]
    return few[0] if len(few) == 1 and any(len(counter) * 2 > rows for counter in others) else None
