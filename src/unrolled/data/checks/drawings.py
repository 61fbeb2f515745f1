"""Drawings: steps that are far too long, and what they are like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unrolled.data.census import Census
from unrolled.data.findings import Finding
from unrolled.data.table import Table
from unrolled.text.drawings import FARTHEST, UP, measured, read_drawing

PLACES = 5


def is_drawn(table: Table) -> bool:
    """Whether the rows of ``table`` are drawings."""
    return table.format == "drawings"


def wrong(census: Census) -> Iterator[Finding]:
    """Steps that training would refuse, with their lines; and how long drawings are. (A row that is none is a wrong
    line, and found with these.)"""
    table = census.table
    if not is_drawn(table):
        return
    lengths: list[int] = []
    strokes: list[int] = []
    reaches: list[tuple[float, str]] = []
    steps: list[np.ndarray] = []
    bare = 0
    for row in table.rows(lambda _: None):
        found = read_drawing(row.fields[0])
        bare += not row.fields[1]
        lengths.append(len(found))
        strokes.append(int((found[:, 2] >= UP).sum()))
        steps.append(found[:, :2])
        reaches.append((float(np.abs(found[:, :2]).max()), table.place(row.place)))
    if not lengths:
        return
    usual = measured(np.concatenate(steps)).step
    far = [(reach, place) for reach, place in reaches if reach > FARTHEST * usual]
    if far:
        message = f"the pen moves by {far[0][0]:g}, and a usual step is {usual:g}."
        yield Finding("error", "drawings", census.split, len(far), message, tuple(place for _, place in far[:PLACES]))
    named = f"; {bare:,} without a label" if bare else ""
    message = f"drawings of {_span(lengths)} points in {_span(strokes)} strokes; a usual step is {usual:g}{named}."
    yield Finding("note", "drawings", census.split, len(lengths), message)


def _span(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
