"""Sequences of frames as cells of a table: numbers of each channel, of any length; files of the UEA/UCR archives."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from unrolled.base.errors import DataError, UsageError, known
from unrolled.data.opening import Report, Wrong, open_bytes, read_lines
from unrolled.data.table import Columns, Row, Table, listed, select, wanted
from unrolled.text.frames import written

LONGEST = 1 << 27
"""Characters of a line: one sequence."""

COLUMNS = ("frames", "label")


# --- files of the UEA and UCR archives --------------------------------------------------------------------------------


class _Head(NamedTuple):
    labelled: bool
    lines: int  # up to and with @data


def open_ts(path: Path, columns: Columns = None) -> Table:
    """A ``.ts`` file: after ``@data`` a sequence a line, ``1,2,3:4,5,6:label`` where the head says @classLabel true."""
    head = _head_of(path)
    names = COLUMNS if head.labelled else COLUMNS[:1]
    indices = select(path, names, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for number, line in read_lines(path, report, LONGEST):
            if line is None or number <= head.lines or not line.strip() or line.startswith("#"):
                continue
            frames, _, label = line.strip().rpartition(":") if head.labelled else (line.strip(), "", "")
            if head.labelled and not frames:
                report(Wrong(path, number, "columns", "no ':' and so no label, which @classLabel true promises."))
                continue
            cells = (frames, label.strip())
            yield Row(number, tuple(cells[index] for index in indices))

    return Table(path, tuple(names[index] for index in indices), read, "ts", (path,))


def _head_of(path: Path) -> _Head:
    labelled = False
    for number, line in read_lines(path, limit=LONGEST):
        words = (line or "").strip().lower().split()
        if words[:1] in (["@classlabel"], ["@targetlabel"]):
            labelled = words[1:2] == ["true"]
        elif words[:1] == ["@timestamps"] and words[1:2] == ["true"]:
            raise DataError(
                f"{path}:{number}: @timeStamps true: each number would come with a time, and frames here follow each "
                "other evenly. Write the values alone."
            )
        elif words[:1] == ["@data"]:
            return _Head(labelled, number)
        elif words and words[0][0] not in "@#":
            raise DataError(f"{path}:{number}: a line before @data that begins with neither @ nor #: no .ts file?")
    raise DataError(f"{path}: there is no line @data, so no sequence. Is it a .ts file of the UEA or UCR archive?")


# --- arrays of NumPy --------------------------------------------------------------------------------------------------

_FRAMES, _LENGTHS, _LABELS = ("frames", "x", "X", "data"), ("lengths", "length"), ("labels", "label", "y", "Y")


def open_npz(path: Path, columns: Columns = None) -> Table:
    """A NumPy archive: ``frames`` (or x) float [rows, time] or [rows, time, channels], ``lengths`` int [rows] where
    rows are padded, ``labels`` (or y) [rows], or [rows, time] with one for each frame. Nothing is unpickled."""
    arrays = _Arrays(path)
    names = COLUMNS if arrays.labels is not None else COLUMNS[:1]
    indices = select(path, names, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for row in range(len(arrays.frames)):
            try:
                cells = (arrays.cell(row), arrays.label(row))
            except DataError as error:
                report(Wrong(path, row + 1, "type", str(error)))
                continue
            yield Row(row + 1, tuple(cells[index] for index in indices))

    return Table(path, tuple(names[index] for index in indices), read, "npz", (path,))


class _Arrays:
    """The arrays of an archive, checked to fit each other."""

    def __init__(self, path: Path) -> None:
        found = loaded(path)
        self.path = path
        self.frames: Any = self._first(found, _FRAMES)
        if self.frames is None:
            raise DataError(f"{path}: no array is called frames or x, only {', '.join(found) or 'none'}.")
        if self.frames.ndim == 2:
            self.frames = self.frames[:, :, None]
        if self.frames.ndim != 3 or self.frames.dtype.kind not in "fiu" or 0 in self.frames.shape:
            raise DataError(
                f"{path}: frames are {self.frames.dtype} {list(self.frames.shape)}; they must be numbers "
                "[rows, time, channels] or [rows, time]."
            )
        rows, time = self.frames.shape[:2]
        lengths = self._first(found, _LENGTHS)
        self.lengths: Any = np.full(rows, time) if lengths is None else lengths
        if self.lengths.shape != (rows,) or self.lengths.dtype.kind not in "iu":
            raise DataError(f"{path}: lengths are {list(self.lengths.shape)}; they must be whole numbers [{rows}].")
        self.labels: Any = self._first(found, _LABELS)
        if self.labels is not None and self.labels.dtype.kind == "f" and not np.isfinite(self.labels).all():
            raise DataError(f"{path}: labels hold a number that is not finite. Give every row a label.")
        if self.labels is not None and self.labels.shape not in ((rows,), (rows, time)):
            raise DataError(
                f"{path}: labels are {list(self.labels.shape)}; they must be [{rows}], or [{rows}, {time}] for frames."
            )

    @staticmethod
    def _first(found: dict[str, Any], names: Sequence[str]) -> Any:
        return next((found[name] for name in names if name in found), None)

    def cell(self, row: int) -> str:
        length, time = int(self.lengths[row]), self.frames.shape[1]
        if not 1 <= length <= time:
            raise DataError(f"a length of {length}; it must be 1 to {time}.")
        return written(self.frames[row, :length])

    def label(self, row: int) -> str:
        if self.labels is None:
            return ""
        if self.labels.ndim == 1:
            return str(self.labels[row])
        return " ".join(str(label) for label in self.labels[row, : int(self.lengths[row])])


def loaded(path: Path) -> dict[str, Any]:
    """The arrays of a NumPy archive by name; DataError for what is none, and for arrays of objects."""
    with open_bytes(path) as stream:
        content = io.BytesIO(cast(Any, stream).read())
    try:
        archive = np.load(content, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise DataError(f"{path}: one array (.npy), no archive. Write numpy.savez(path, frames=…, labels=…).")
        return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile, AttributeError, EOFError, KeyError) as error:
        cause = "it holds objects, not numbers" if "pickle" in str(error).lower() else str(error) or "damaged"
        raise DataError(f"{path}: no NumPy archive of numbers ({cause}). Write it with numpy.savez.") from None


# --- one frame a row --------------------------------------------------------------------------------------------------

SEQUENCES = ("sequence", "series", "recording", "session", "segment", "trial", "sequence_id", "series_id")
TIMES = ("time", "t", "timestamp", "step", "frame")
"""What columns are called that say to which sequence a frame belongs, and when it was; compared in lower case."""


EACH = "for a label of each frame: --set task.labels=frame"


def gathered(table: Table, sequence: str | int | None, label: str | None, *, by_frame: bool, cure: str = EACH) -> Table:
    """A table with one frame a row as one with a sequence a row: rows that follow each other with the same value in the
    column ``sequence`` (a name or 1-based number). Other columns are channels, but those that say the time.

    ``label`` is the column of the labels (None: there is none); ``by_frame``: each frame has its own, else all of a
    sequence are the same; ``cure`` ends the sentence about one that has several.
    """
    key = _key_of(table, sequence)
    labelled = None if label is None else select(table.path, table.columns, [label])[0]
    lower = [name.strip().casefold() for name in table.columns]
    places = [place for place, name in enumerate(lower) if place not in (key, labelled) and name not in TIMES]
    if not places:
        raise UsageError(f"{table.path}: no column is left for the channels of '{table.columns[key]}'.")

    def read(report: Report) -> Iterator[Row]:
        seen: set[str] = set()
        for rows in _runs(table, key, report):
            name = rows[0].fields[key]
            try:
                if name in seen:
                    raise DataError(f"the sequence '{name}' ended above and goes on here. Sort its frames together.")
                seen.add(name)
                label_ = "" if labelled is None else _label_of(rows, labelled, cure, by_frame=by_frame)
                frames = ":".join(",".join(row.fields[place].strip() for row in rows) for place in places)
            except DataError as error:
                report(Wrong(table.path, rows[0].place, "columns", str(error)))
                continue
            yield Row(rows[0].place, (frames, label_) if labelled is not None else (frames,))

    columns = COLUMNS if labelled is not None else COLUMNS[:1]
    channels = tuple(table.columns[place] for place in places)
    named = ", ".join(channels)
    said = f"A frame a row: the sequences are told apart by '{table.columns[key]}', the channels are {named}."
    return Table(table.path, columns, read, "frames", table.files, [*table.guessed, said], table.mark, channels)


def arranged(table: Table, channels: Sequence[str]) -> Table:
    """The table with its channels in the order of ``channels``, where it and they have names.

    DataError where its channels are others.
    """
    if not table.channels or not channels or table.channels == tuple(channels):
        return table
    if sorted(table.channels) != sorted(channels):
        missing = [name for name in channels if name not in table.channels]
        strange = [name for name in table.channels if name not in channels]
        lacks = f"lacks {listed(missing)}" if missing else "lacks none"
        raise DataError(
            f"{table.path}: the model reads the channels {listed(channels)}; the table {lacks} and has "
            f"{listed(strange) or 'no others'} beside them. Rename or remove columns."
        )
    order = [table.channels.index(name) for name in channels]

    def read(report: Report) -> Iterator[Row]:
        for place, (frames, *others) in table.read(report):
            cells = frames.split(":")
            yield Row(place, (":".join(cells[index] for index in order), *others))

    return replace(table, read=read, channels=tuple(channels))


def sequence_column(columns: Sequence[str]) -> int | None:
    """The column that tells sequences apart, by its name."""
    lower = [name.strip().casefold() for name in columns]
    return next((lower.index(name) for name in SEQUENCES if name in lower), None)


def _key_of(table: Table, sequence: str | int | None) -> int:
    if sequence is not None:
        return select(table.path, table.columns, [sequence])[0]
    found = sequence_column(table.columns)
    if found is None:
        raise UsageError(
            f"{table.path}: no column says to which sequence a frame belongs "
            f"({known('sequence', table.columns)}). Call it sequence, or name it in training: --set task.sequence=NAME."
        )
    return found


def _runs(table: Table, key: int, report: Report) -> Iterator[list[Row]]:
    rows: list[Row] = []
    for row in table.rows(report):
        if rows and rows[0].fields[key] != row.fields[key]:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _label_of(rows: Sequence[Row], column: int, cure: str, *, by_frame: bool) -> str:
    labels = [row.fields[column].strip() for row in rows]
    if by_frame:
        wrong = next((row.place for row, label in zip(rows, labels, strict=True) if not label or " " in label), None)
        if wrong is not None:
            raise DataError(f"the label in line {wrong} is empty or holds a space. Give each frame one word.")
        return " ".join(labels)
    for row, label in zip(rows, labels, strict=True):
        if label != labels[0]:
            raise DataError(
                f"the label is '{labels[0]}' first and '{label}' in line {row.place}. A sequence has one label; {cure}."
            )
    return labels[0]
