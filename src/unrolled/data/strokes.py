"""Files of pen strokes: JSON lines of strokes, and NumPy archives of points with a pen."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.jsonlines import Unusable, parsed_lines
from unrolled.data.opening import Report, Wrong, open_bytes, read_lines
from unrolled.data.signals import loaded
from unrolled.data.table import Columns, Row, Table, select, wanted
from unrolled.text.drawings import from_strokes
from unrolled.text.frames import written

COLUMNS = ("drawing", "label")
ABSOLUTE, OFFSET = ("x", "y", "pen"), ("dx", "dy", "pen")
"""What the three numbers of a point are, where x and y are places and where they are steps."""

SPLITS = ("train", "valid", "test")
LABELS = ("label", "word", "class", "category", "character")
"""What labels are called, compared in lower case; Quick, Draw! says word."""

LOOKED_AT = 20
"""Drawings of a file that are looked at to tell how its strokes are written."""


# --- JSON lines -------------------------------------------------------------------------------------------------------

KEYS = ("strokes", "drawing")
"""Where an object has its strokes; under the second Quick, Draw! writes each as a list of x and one of y."""


class _Form(NamedTuple):
    """How the strokes of a file are written."""

    key: str
    label: str | None
    columns: bool  # a stroke is [[x, x, …], [y, y, …]], else [[x, y], [x, y], …]


def is_strokes(path: Path) -> bool:
    """Whether among the first lines of a file are objects with strokes: lists of lists."""
    keys = ((one, _key_of(one)) for one in _head(path))
    return any(key is not None and one[key] and isinstance(one[key][0], list) for one, key in keys)


def _head(path: Path) -> Iterator[Mapping[str, Any]]:
    """The first lines that are objects."""
    for _, text in islice(read_lines(path, lambda _: None), LOOKED_AT):
        if not text or not text.strip():
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        yield found if isinstance(found, dict) else {}


def _key_of(tree: Mapping[str, Any]) -> str | None:
    return next((key for key in KEYS if isinstance(tree.get(key), list)), None)


def open_strokes(path: Path, columns: Columns = None) -> Table:
    """JSON lines ``{"strokes": [[[x, y], …], …], "label": …}``, or as Quick, Draw! has them ``{"drawing": [[[x, …],
    [y, …]], …], "word": …}``; a third number of a point, or a third list, is its time and not used."""
    form = _form_of(path)
    names = COLUMNS if form.label is not None else COLUMNS[:1]
    indices = select(path, names, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for number, cells in parsed_lines(path, report, lambda text: _cells(text, form)):
            yield Row(number, tuple(cells[index] for index in indices))

    each = "a list of x and one of y" if form.columns else "a list of points [x, y]"
    said = f"Drawings are under '{form.key}', each stroke {each}."
    return Table(path, tuple(names[index] for index in indices), read, "strokes", (path,), [said], channels=ABSOLUTE)


def _form_of(path: Path) -> _Form:
    head = list(_head(path))
    key = next((found for one in head if (found := _key_of(one)) is not None), None)
    if key is None:
        raise DataError(
            f'{path}: no line is an object with strokes. Write {{"strokes": [[[x, y], [x, y]], …], "label": …}}.'
        )
    strokes = [stroke for one in head for stroke in (one.get(key) or []) if isinstance(stroke, list) and stroke]
    points, columns = all(map(_is_points, strokes)), all(map(_is_columns, strokes))
    label = next((name for one in head for name in one if name.casefold() in LABELS), None)
    return _Form(key, label, columns if points != columns else key == "drawing")


def _is_points(stroke: Sequence[Any]) -> bool:
    return all(isinstance(point, list) and len(point) in (2, 3) for point in stroke)


def _is_columns(stroke: Sequence[Any]) -> bool:
    return len(stroke) in (2, 3) and all(isinstance(one, list) and len(one) == len(stroke[0]) for one in stroke)


def _cells(text: str, form: _Form) -> tuple[str, str]:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable("drawing", f"not JSON ({error}).") from None
    given = tree.get(form.key) if isinstance(tree, dict) else None
    if not isinstance(given, list):
        raise Unusable("drawing", f"the key '{form.key}' is missing, or is no list of strokes.")
    if not given:
        raise Unusable("drawing", "the drawing is empty. Leave it out, or give it a stroke.")
    strokes = [_stroke(one, form, place) for place, one in enumerate(given, 1)]
    label = tree.get(form.label) if form.label is not None else None
    return written(from_strokes(strokes, steps=False)), "" if label is None else str(label)


def _stroke(given: Any, form: _Form, place: int) -> np.ndarray:
    """The points [points, 2] of one stroke."""
    if not isinstance(given, list) or not given or given[0] == []:
        raise Unusable("drawing", f"stroke {place} is empty or no list. Leave it out.")
    if not (_is_columns(given) if form.columns else _is_points(given)):
        wanted_ = "[[x, …], [y, …]] with as many of both" if form.columns else "[[x, y], …]"
        raise Unusable("drawing", f"stroke {place} is not written as those before, {wanted_}.")
    try:
        found = np.array(given, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Unusable("drawing", f"stroke {place} holds something that is no number.") from None
    points = found.T[:, :2] if form.columns else found[:, :2]
    if not np.isfinite(points).all():
        bad = int(np.argmin(np.isfinite(points).all(axis=1)))
        raise Unusable("drawing", f"stroke {place}, point {bad + 1}: a number is not finite. Leave the point out.")
    return points


# --- archives ---------------------------------------------------------------------------------------------------------


def is_points(path: Path) -> bool:
    """Whether a NumPy archive holds drawings: ``points``, ``train_points``, … or what sketch-rnn calls its parts."""
    names = _names(path)
    return "points" in names or any(f"{split}_points" in names for split in SPLITS) or _pickled(names)


def _names(path: Path) -> list[str]:
    try:
        with open_bytes(path) as stream, zipfile.ZipFile(stream) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError, EOFError):
        return []


def _pickled(names: Sequence[str]) -> bool:
    """Whether they are those of sketch-rnn's own files, whose arrays are pickled objects."""
    return bool(names) and set(names) <= set(SPLITS)


def parts_in(path: Path) -> list[str]:
    """The splits that an archive of drawings holds beside each other; nothing where it holds one table."""
    names = _names(path)
    return [split for split in SPLITS if f"{split}_points" in names]


def open_points(path: Path, columns: Columns = None, split: str | None = None) -> Table:
    """A NumPy archive: ``points`` [rows, time, 3] with ``lengths`` [rows], or of all drawings end to end [points, 3];
    ``labels`` [rows] where there are some. A point is (dx, dy, pen), pen 1 where a stroke ends, as sketch-rnn has them.

    ``split``: those arrays whose names begin so (``train_points``); None: the first that is there, or the plain names.
    """
    if _pickled(_names(path)):
        raise DataError(
            f"{path}: its arrays are pickled objects, as in sketch-rnn's own files, and nothing is unpickled here. "
            f"Re-pack it once: {_repack(path)}"
        )
    arrays = _Points(path, split or next(iter(parts_in(path)), None))
    names = COLUMNS if arrays.labels is not None else COLUMNS[:1]
    indices = select(path, names, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for row in range(len(arrays.lengths)):
            try:
                cells = (arrays.cell(row), arrays.label(row))
            except DataError as error:
                report(Wrong(path, row + 1, "drawing", str(error)))
                continue
            yield Row(row + 1, tuple(cells[index] for index in indices))

    chosen = tuple(names[index] for index in indices)
    return Table(path, chosen, read, "points", (path,), mark=split or "", channels=OFFSET)


def _repack(path: Path) -> str:
    return (
        f"python -c \"import numpy as n; d=n.load('{path.name}',allow_pickle=True,encoding='latin1'); "
        f"n.savez('{path.stem}.points.npz',**{{k+'_points':n.concatenate(d[k]) for k in d}},"
        "**{k+'_lengths':[len(x) for x in d[k]] for k in d})\""
    )


class _Points:
    """The arrays of an archive, checked to fit each other."""

    def __init__(self, path: Path, split: str | None) -> None:
        before = f"{split}_" if split else ""
        found = loaded(path)
        self.points: Any = found.get(f"{before}points")
        self.lengths: Any = found.get(f"{before}lengths")
        self.labels: Any = found.get(f"{before}labels")
        points = self.points
        if points is None or points.ndim not in (2, 3) or points.shape[-1] != 3 or points.dtype.kind not in "fiu":
            shape = "missing" if points is None else f"{points.dtype} {list(points.shape)}"
            raise DataError(
                f"{path}: {before}points are {shape}; they must be numbers [rows, time, 3] or, end to end, [points, 3]."
            )
        if self.lengths is None and points.ndim == 3:
            self.lengths = np.full(len(points), points.shape[1])
        self._check_lengths(path, before)
        if self.labels is not None and self.labels.shape != self.lengths.shape:
            raise DataError(
                f"{path}: {before}labels are {list(self.labels.shape)}; they must be {list(self.lengths.shape)}."
            )
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])

    def _check_lengths(self, path: Path, before: str) -> None:
        lengths, points = self.lengths, self.points
        if lengths is None or lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths):
            raise DataError(f"{path}: {before}lengths are missing, or no whole numbers [rows]: one for each drawing.")
        if points.ndim == 3 and len(lengths) != len(points):
            raise DataError(f"{path}: {len(lengths)} {before}lengths for {len(points)} drawings; give as many of both.")
        if points.ndim == 2 and int(lengths.sum()) != len(points):
            raise DataError(
                f"{path}: the {before}lengths sum to {int(lengths.sum()):,} points; there are {len(points):,}."
            )

    def cell(self, row: int) -> str:
        length = int(self.lengths[row])
        if self.points.ndim == 3 and not 0 <= length <= self.points.shape[1]:
            raise DataError(f"a length of {length}; it must be 1 to {self.points.shape[1]}.")
        if length < 1:
            raise DataError("the drawing is empty. Leave it out.")
        start = int(self.starts[row])
        return written(self.points[row, :length] if self.points.ndim == 3 else self.points[start : start + length])

    def label(self, row: int) -> str:
        return "" if self.labels is None else str(self.labels[row])
