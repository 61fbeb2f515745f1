"""Drawings: strokes without an end, numbers that are none, steps that are far too long."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.census import Census
from unrolled.data.findings import Finding
from unrolled.data.table import Table
from unrolled.text.drawings import FARTHEST, UP, measured, read_drawing

PLACES = 5


def is_drawn(table: Table) -> bool:
    """Whether the rows of ``table`` are drawings."""
    return table.format == "drawings"


def wrong(census: Census) -> Iterator[Finding]:
    """Drawings that training would refuse, with their lines; and how long the others are."""
    table = census.table
    if not is_drawn(table):
        return
    messages: list[str] = []
    places: list[str] = []
    lengths: list[int] = []
    strokes: list[int] = []
    reaches: list[tuple[float, str]] = []
    steps: list[np.ndarray] = []
    for row in table.rows(lambda _: None):
        place = table.place(row.place)
        try:
            found = read_drawing(row.fields[0])
        except DataError as error:
            messages.append(str(error))
            places.append(place)
            continue
        lengths.append(len(found))
        strokes.append(int((found[:, 2] >= UP).sum()))
        steps.append(found[:, :2])
        reaches.append((float(np.abs(found[:, :2]).max()), place))
    if lengths:
        usual = measured(np.concatenate(steps)).step
        far = [(reach, place) for reach, place in reaches if reach > FARTHEST * usual]
        messages += [f"the pen moves by {reach:g}, and a usual step is {usual:g}." for reach, _ in far]
        places += [place for _, place in far]
    if messages:
        yield Finding("error", "drawings", census.split, len(messages), messages[0], tuple(places[:PLACES]))
    if lengths:
        message = f"drawings of {_span(lengths)} points in {_span(strokes)} strokes; a usual step is {usual:g}."
        yield Finding("note", "drawings", census.split, len(lengths), message)


def _span(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
