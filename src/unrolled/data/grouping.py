"""Rows of like length go through a network together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def by_length(lengths: Sequence[int], together: int, most: int | None = None) -> Iterator[list[int]]:
    """Every row once, in groups of like length: at most ``together`` padded positions and ``most`` rows in each.

    A row that is longer than ``together`` goes alone. Equal rows keep their order.
    """
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: (lengths[row], row)):
        if group and (lengths[row] * (len(group) + 1) > together or len(group) == most):
            yield group
            group = []
        group.append(row)
    if group:
        yield group
