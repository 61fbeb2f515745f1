"""A folder as train, valid and test tables: by the names of its files, alone or in parallel pairs."""

from __future__ import annotations

import re
from pathlib import Path

from unrolled.base.errors import DataError, UsageError, known
from unrolled.data.files import named_format, open_file
from unrolled.data.formats import open_parallel
from unrolled.data.opening import reason
from unrolled.data.stories import is_babi, joined
from unrolled.data.table import Columns, Table, wanted

SPLITS = ("train", "valid", "test")

_WORDS = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "development": "valid",
    "test": "test",
}


def split_of(name: str) -> str | None:
    """Which split a file's name speaks of: ``test_2016.de.gz`` → test; None where none or several."""
    found = {_WORDS[word] for word in re.split(r"[^a-z]+", name.lower()) if word in _WORDS}
    return found.pop() if len(found) == 1 else None


def open_folder(folder: Path, columns: Columns = None) -> dict[str, Table]:
    """The splits in a folder, train first; DataError where a split could be several files, or nothing is one.

    A split is one table (``train.tsv``) or two parallel files (``train.de``, ``train.en``), each also .gz.
    """
    try:
        entries = sorted(
            entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith((".", "_"))
        )
    except OSError as error:
        raise DataError(f"{folder}: the folder cannot be read ({reason(error)}).") from None
    groups: dict[str, list[Path]] = {}
    for entry in entries:
        groups.setdefault(split_of(entry.name) or "", []).append(entry)
    loose = [entry for entry in groups.pop("", []) if named_format(entry)]
    if not groups and len(loose) == 1:
        groups = {"train": loose}
    if not groups:
        raise DataError(
            f"{folder}: no file in this folder is called train, valid or test. Found: {_listed(entries)}. "
            "Name the file itself, or rename the files, e.g. train.tsv, valid.tsv."
        )
    return {split: _open_split(folder, split, groups[split], columns) for split in SPLITS if split in groups}


def _listed(entries: list[Path]) -> str:
    names = [entry.name for entry in entries]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "nothing"


def _open_split(folder: Path, split: str, files: list[Path], columns: Columns) -> Table:
    tables = [file for file in files if named_format(file)]
    if len(tables) == 1:
        files = tables
    if len(files) == 1:
        table = open_file(files[0], columns)
        table.guessed.insert(0, f"{files[0].name} is the {split} split.")
        return table
    if not tables and all(is_babi(file) for file in files):
        return joined([open_file(file, columns) for file in files], folder, [_kind(file) for file in files])
    sides = {} if tables else _sides(files)
    if not sides:
        raise DataError(
            f"{folder}: {len(files)} files could be the {split} split: {_listed(files)}. "
            "Name the files themselves, e.g. with --valid and --test."
        )
    return _open_sides(folder, split, sides, columns)


def _kind(file: Path) -> str:
    """What a file's name says beside its split: ``qa1`` of ``qa1_train.txt.gz``."""
    words = re.split(r"[._-]+", file.name.removesuffix(".gz").rpartition(".")[0])
    return "-".join(word for word in words if word.lower() not in _WORDS) or file.name


def _sides(files: list[Path]) -> dict[str, Path]:
    """What tells parallel files apart, e.g. their language, or nothing where their names differ in more than that."""
    parts = [re.split(r"([._-])", file.name) for file in files]
    if len({len(part) for part in parts}) != 1:
        return {}
    differing = [index for index, cells in enumerate(zip(*parts, strict=True)) if len(set(cells)) > 1]
    if len(differing) != 1:
        return {}
    return {part[differing[0]]: file for part, file in zip(parts, files, strict=True)}


def _open_sides(folder: Path, split: str, sides: dict[str, Path], columns: Columns) -> Table:
    names = list(sides)
    chosen = wanted(columns)
    if chosen is None:
        if len(names) > 2:
            raise DataError(
                f"{folder}: {split} is there as {', '.join(names)}. Choose two: --columns {','.join(names[:2])}."
            )
        chosen = list(names)
    picked = [names[column - 1] if isinstance(column, int) and column <= len(names) else column for column in chosen]
    for column in picked:
        if column not in sides:
            raise UsageError(f"{folder}: {split} has no side called '{column}'. {known(str(column), names)}")
    if len(picked) != 2:
        raise UsageError(f"{folder}: {split} has parallel files; choose two of {', '.join(names)} with --columns.")
    one, other = str(picked[0]), str(picked[1])
    table = open_parallel(sides[one], sides[other], (one, other))
    said = f"Parallel files {sides[one].name} and {sides[other].name}: source is {one}, target is {other}"
    table.guessed.append(f"{said}." if columns else f"{said} (the other way round: --columns {other},{one}).")
    return table
