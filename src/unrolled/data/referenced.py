"""Files that a table or a folder names: a row is the path of an image or a recording, and the text of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from unrolled.base.errors import DataError, UsageError
from unrolled.data.endings import KINDS, kind_of
from unrolled.data.files import named_format
from unrolled.data.folders import SPLITS, split_of
from unrolled.data.opening import Report, Wrong, read_lines, reason
from unrolled.data.table import Columns, Row, Table, select, wanted

HEAD = 50
"""Rows that tell in which column the paths are."""

BESIDE = ".txt"
"""What the text beside a file is called: ``a.txt`` goes with ``a.png``."""


def column_of(table: Table, kind: str) -> int | None:
    """The first column whose cells are paths of files of that ``kind``; None where there is none."""
    rows = list(islice(table.rows(lambda _: None), HEAD))
    if not rows:
        return None
    places = range(len(table.columns))
    return next((place for place in places if all(kind_of(row.fields[place]) == kind for row in rows)), None)


def text_columns(table: Table) -> list[int]:
    """The columns whose cells are text, and no paths that `resolved` or `open_beside` gave."""
    return [place for place, name in enumerate(table.columns) if not (table.root and name in KINDS)]


def resolved(table: Table, column: int) -> Table:
    """The table with the paths in ``column`` as seen from here: one that is not absolute starts in the table's folder.

    That the file is there its reader sees. A row without a path is wrong.
    """
    folder = table.path.parent

    def read(report: Report) -> Iterator[Row]:
        for place, fields in table.rows(report):
            path = fields[column].strip()
            if path:
                yield Row(place, (*fields[:column], str(folder / path), *fields[column + 1 :]))
            else:
                report(Wrong(table.path, place, "path", "the path is empty. Name a file, or leave the row out."))

    return replace(table, read=read, root=f"{folder}/")


def files_in(folder: Path, kind: str | None = None) -> list[Path]:
    """The files of that ``kind`` (None: of any) in a folder, by name; DataError where it cannot be read."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError as error:
        raise DataError(f"{folder}: the folder cannot be read ({reason(error)}).") from None
    found = [(name, kind_of(name)) for name in names if not name.startswith((".", "_"))]
    return [folder / name for name, own in found if own is not None and kind in (None, own)]


def holds_files(folder: Path) -> bool:
    """Whether a folder, or one in it that is called after a split, has files of KINDS with texts beside them, and no
    table that names them."""
    try:
        if any(map(named_format, folder.iterdir())):
            return False
    except OSError:
        return False
    return any(map(_has_pairs, [folder, *_splits(folder).values()]))


def _has_pairs(folder: Path) -> bool:
    return any(file.with_suffix(BESIDE).is_file() for file in files_in(folder))


def _splits(folder: Path) -> dict[str, Path]:
    """The folders inside that are called after a split; DataError where two could be the same."""
    found: dict[str, Path] = {}
    for entry in sorted(folder.iterdir()):
        split = split_of(entry.name) if entry.is_dir() else None
        if split is not None and split in found:
            raise DataError(f"{folder}: both {found[split].name} and {entry.name} could be {split}. Name the folders.")
        if split is not None:
            found[split] = entry
    return {split: found[split] for split in SPLITS if split in found}


def open_beside(folder: Path, columns: Columns = None) -> dict[str, Table]:
    """The splits of a folder of files with a text beside each: ``a.txt`` beside ``a.png``, a row for each of its lines;
    beside ``a.wav``, a row of them all.

    Files lie in the folder itself, which is train, or in folders called train, valid, test. Columns are the kind of the
    files and ``text``. A file without a text, and a text without a line, are wrong.
    """
    inside = _splits(folder)
    if inside and _has_pairs(folder):
        raise DataError(
            f"{folder}: files lie both here and in {', '.join(one.name for one in inside.values())}. Move them into "
            "folders called train, valid and test."
        )
    return {split: _open(one, columns) for split, one in (inside or {"train": folder}).items()}


def _open(folder: Path, columns: Columns) -> Table:
    files = files_in(folder)
    kinds = list(dict.fromkeys(map(kind_of, files)))
    if len(kinds) != 1:
        held = "several kinds of files" if kinds else "neither images nor recordings"
        raise UsageError(f"{folder}: there are {held} in it. Give a folder of one kind, each with a text beside it.")
    names = (str(kinds[0]), "text")
    indices = select(folder, names, wanted(columns))
    texts = tuple(file.with_suffix(BESIDE) for file in files)

    def read(report: Report) -> Iterator[Row]:
        for number, (file, text) in enumerate(zip(files, texts, strict=True), start=1):
            lines = _lines(file, text, report)
            for line in [" ".join(lines)] if lines and kinds == ["sound"] else lines:
                cells = (str(file), line)
                yield Row(number, tuple(cells[index] for index in indices))

    there = tuple(text for text in texts if text.is_file())
    lines = "all its lines together" if kinds == ["sound"] else "each line of the text is one"
    said = f"A {names[0]} with a text beside it is a row; {lines}."
    mark = "\n".join(file.name for file in files)
    chosen = tuple(names[index] for index in indices)
    return Table(folder, chosen, read, "beside", there, [said], mark, root=f"{folder}/", named=tuple(map(str, texts)))


def _lines(file: Path, text: Path, report: Report) -> Sequence[str]:
    if not text.is_file():
        report(Wrong(file, 1, "missing", f"there is no {text.name} beside it. Write one, or move the file away."))
        return []
    lines = [line.strip() for _, line in read_lines(text, report) if line is not None and line.strip()]
    if not lines:
        report(Wrong(text, 1, "empty", f"there is no text in it for {file.name}. Write a line, or remove both."))
    return lines
