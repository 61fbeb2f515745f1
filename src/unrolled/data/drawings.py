"""Tables of drawings, a drawing a row, whatever they are given as: strokes, points with a pen, a table of points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.opening import Report, Wrong
from unrolled.data.signals import SEQUENCES, gathered
from unrolled.data.strokes import ABSOLUTE, COLUMNS, LABELS, OFFSET
from unrolled.data.table import Row, Table, arranged, listed
from unrolled.text.drawings import POINT, checked
from unrolled.text.frames import read_frames, written

Coordinates = Literal["absolute", "offset"]

FORMATS = ("strokes", "points", "drawings")
"""Formats whose rows are drawings."""

KEYS = ("drawing", "drawing_id", "sketch", "character", "glyph", "key_id", *SEQUENCES)
PENS = ("pen", "pen_up", "lifted")
STROKES = ("stroke", "stroke_id")
"""What the columns of a table with a point a row are called, beside x and y or dx and dy; compared in lower case."""


ONE = "write it beside every point of the drawing"


def has_points(columns: Sequence[str]) -> bool:
    """Whether a table with these columns has a point of a drawing a row."""
    return None not in _places(columns)


def _places(columns: Sequence[str]) -> list[int | None]:
    """Where the drawing, x, y and the pen or stroke stand; None for what is not there."""
    lower = [name.strip().casefold() for name in columns]
    wanted = (KEYS, ("x", "dx"), ("y", "dy"), (*PENS, *STROKES))
    return [next((lower.index(name) for name in names if name in lower), None) for names in wanted]


def drawn(table: Table, coordinates: Coordinates | None = None, *, whole: bool = True) -> Table:
    """The table with a drawing a row: ``drawing`` as a cell that `read_drawing` reads, and ``label``, which may be
    empty. ``coordinates`` None: as the format or the names of columns have it.

    ``whole``: a drawing ends where its last stroke does; else it may be any beginning. DataError for other tables.
    """
    if table.format == "drawings":
        return table
    if table.format not in FORMATS:
        table = _gathered(table)
    absolute = (table.channels == ABSOLUTE) if coordinates is None else coordinates == "absolute"
    strokes, labelled = table.format == "strokes of points", "label" in table.columns

    def read(report: Report) -> Iterator[Row]:
        for place, fields in table.rows(report):
            try:
                cell = _offsets(fields[0], absolute=absolute, strokes=strokes, whole=whole)
            except DataError as error:
                report(Wrong(table.path, place, "drawing", str(error)))
                continue
            yield Row(place, (cell, fields[1].strip() if labelled else ""))

    how = "places: steps are taken from point to point" if absolute else "steps from point to point"
    said = f"x and y are {how} (task.coordinates={'offset' if absolute else 'absolute'} for the other)."
    return replace(
        table, columns=COLUMNS, read=read, format="drawings", guessed=[*table.guessed, said], channels=OFFSET
    )


def _offsets(cell: str, *, absolute: bool, strokes: bool, whole: bool) -> str:
    """The cell with steps in place of places, and pens in place of numbers of strokes; checked."""
    frames = read_frames(cell, POINT).astype(np.float64)
    if frames.shape[1] != 3:
        raise DataError(f"{frames.shape[1]} numbers a point where 3 are expected: x, y and pen.")
    if absolute:
        frames[:, :2] = np.diff(frames[:, :2], axis=0, prepend=0)
    if strokes:
        number = frames[:, 2]
        frames[:, 2] = np.append(number[1:] != number[:-1], True)
    checked(frames, whole=whole)
    return written(frames)


def _gathered(table: Table) -> Table:
    """A table with a point a row as one with a drawing a row; its format says whether strokes are numbered."""
    places = _places(table.columns)
    lacking = [name for name, place in zip(("drawing", "x", "y", "pen"), places, strict=True) if place is None]
    if lacking:
        raise DataError(
            f"{table.path}: no drawings: a table of points lacks the column {listed(lacking)}, it has "
            f"{listed(table.columns)}. Give drawing, x, y and pen (or stroke), or JSON lines with strokes, or .npz."
        )
    found = [place for place in places if place is not None]
    lower = [name.strip().casefold() for name in table.columns]
    label = next((lower.index(name) for name in LABELS if name in lower and lower.index(name) not in found), None)
    names = ["drawing", "x", "y", "pen", *(["label"] if label is not None else [])]
    chosen = arranged(table, [*found, *([label] if label is not None else [])], "", names)
    rows = gathered(chosen, "drawing", "label" if label is not None else None, by_frame=False, cure=ONE)
    numbered = lower[found[3]] in STROKES
    said = f"A point a row: drawings are told apart by '{table.columns[found[0]]}'."
    return replace(
        rows,
        format="strokes of points" if numbered else "points",
        guessed=[*table.guessed, said],
        channels=OFFSET if lower[found[1]] == "dx" else ABSOLUTE,
    )
