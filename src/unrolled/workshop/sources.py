"""The user's files as the tables of a run: training, validation, test; and what was concluded about them."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.opening import Wrong, refuse
from unrolled.data.readers import Row, Table, open_parallel, open_table


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where the data lie. A table in ``data`` (a file, a folder, a dataset's name), or parallel files in ``source``
    and ``target``; the same for validation and test."""

    data: str | None = None
    source: str | None = None
    target: str | None = None
    valid: str | None = None
    valid_source: str | None = None
    valid_target: str | None = None
    test: str | None = None
    test_source: str | None = None
    test_target: str | None = None

    def files(self) -> dict[str, str]:
        """What was given, by name, with absolute paths of files: what a resumed run starts from."""
        given = {name: value for name, value in vars(self).items() if value}
        return {name: str(Path(value).resolve()) if Path(value).exists() else value for name, value in given.items()}


class Part(NamedTuple):
    """Some rows of a table. ``share`` keeps the rows whose source falls in [low, high) of a digest's range."""

    table: Table
    pick: tuple[int, ...]  # which fields, in the task's order
    low: float = 0.0
    high: float = 1.0
    wrong_lines: Literal["refuse", "skip"] = "refuse"

    def rows(self) -> Iterator[Row]:
        for row in self.table.rows(refuse if self.wrong_lines == "refuse" else _leave_out):
            fields = tuple(row.fields[index] for index in self.pick)
            if (self.low, self.high) == (0.0, 1.0) or self.low <= share_of(fields[0]) < self.high:
                yield Row(row.place, fields)


def _leave_out(wrong: Wrong) -> None:
    """A wrong line is counted when the table is opened; here it is only passed over."""


def share_of(source: str) -> float:
    """Where a source falls in [0, 1): the same for the same text, whatever file it stands in."""
    return int.from_bytes(hashlib.blake2b(source.encode("utf-8", "replace"), digest_size=6).digest(), "big") / 2**48


class Tables(NamedTuple):
    """The parts of a run. ``said`` holds in sentences what was guessed."""

    train: Part
    valid: Part
    test: Part | None
    said: list[str]


def open_sources(sources: Sources, names: Sequence[str], data: Mapping[str, Any]) -> Tables:
    """Open every table of a run; ``names`` are the task's columns, ``data`` the settings of that section.

    UsageError or DataError says what is missing.
    """
    said: list[str] = []
    found = tables_of(sources, data["columns"])
    parts = {}
    for split, table in found.items():
        said += [f"{table.path}: {sentence}" for sentence in table.guessed]
        pick, sentence = _pick(table, names, chosen=data["columns"] is not None)
        if sentence:
            said.append(sentence)
        parts[split] = Part(table, pick, wrong_lines=data["wrong_lines"])
        if data["wrong_lines"] == "skip":
            said += _skipped(table)
    if "train" not in parts:
        raise DataError(f"{sources.data}: holds no part called 'train', only {', '.join(found) or 'nothing'}.")
    if "valid" not in parts:
        parts["train"], parts["valid"], held = _hold_out(parts["train"], data["valid_share"], data["valid_rows"])
        sources_are = "source is" if held == 1 else "sources are"
        said.append(f"No validation data given: {held:,} {sources_are} held out, chosen by a digest of their text.")
    return Tables(parts["train"], parts["valid"], parts.get("test"), said)


def tables_of(sources: Sources, columns: Sequence[str | int] | None) -> dict[str, Table]:
    """The table of each split that was given. UsageError for a split given twice or by halves, or for none."""
    if sources.data is not None:
        if sources.source or sources.target:
            raise UsageError("give a table (DATA) or parallel files (--source and --target), not both.")
        found = _splits(sources.data, columns)
    else:
        found = {"train": _parallel(sources.source, sources.target, "--source", "--target")}
    for split, whole, left, right in (
        ("valid", sources.valid, sources.valid_source, sources.valid_target),
        ("test", sources.test, sources.test_source, sources.test_target),
    ):
        names = f"--{split}-source", f"--{split}-target"
        if whole and (left or right):
            raise UsageError(f"--{split} is a table and {'/'.join(names)} are parallel files: give one of them.")
        if whole:
            found[split] = open_table(whole, columns=_columns(columns))
        elif left or right:
            found[split] = _parallel(left, right, *names)
    return found


def _hold_out(part: Part, share: float, most: int) -> tuple[Part, Part, int]:
    """A training and a validation part that share no source, and how many the latter has: ``share`` of all, at least
    one."""
    enough = math.ceil(min((most + 1) / share, 1e15)) + 1  # with so many sources ``most`` decides, not ``share``
    places = _smallest((share_of(row.fields[0]) for row in part.rows()), enough)
    if len(places) < 2:
        raise DataError(
            f"{part.table.path}: {len(places)} source{'' if len(places) == 1 else 's'}, and some must be held "
            "out for validation. Give more data, or a validation file with --valid."
        )
    held = max(1, min(round(share * len(places)), most, len(places) - 1))
    border = float(places[held])
    return part._replace(low=border), part._replace(high=border), held


def _smallest(numbers: Iterator[float], most: int) -> np.ndarray:
    """The different numbers in order, or the ``most`` smallest of them; a few more than that are held."""
    found = np.empty(0, dtype=np.float64)
    while len(block := np.fromiter(itertools.islice(numbers, 1 << 14), dtype=np.float64)):
        found = np.unique(np.concatenate([found, block]))[:most]
    return found


def _skipped(table: Table) -> list[str]:
    """What is said of a table's wrong lines where they are left out."""
    count, first = 0, None

    def note(wrong: Wrong) -> None:
        nonlocal count, first
        count, first = count + 1, first or wrong

    for _ in table.rows(note):
        pass
    if not count:
        return []
    return [f"{table.path}: {count} wrong line{'' if count == 1 else 's'} left out, the first: {first}"]


def _columns(columns: Sequence[str | int] | None) -> list[str | int] | None:
    return list(columns) if columns is not None else None


def _splits(data: str, columns: Sequence[str | int] | None) -> dict[str, Table]:
    from unrolled.data.readers import splits

    return dict(splits(data, columns=_columns(columns)))


def _parallel(left: str | None, right: str | None, left_name: str, right_name: str) -> Table:
    if not left and not right:
        raise UsageError("no data: give a table (DATA), or parallel files with --source and --target.")
    if not left or not right:
        raise UsageError(f"{left_name if not left else right_name} is missing: parallel files come in pairs.")
    return open_parallel(left, right)


def _pick(table: Table, names: Sequence[str], *, chosen: bool) -> tuple[tuple[int, ...], str | None]:
    """Which fields are the task's columns: as ``chosen`` by the user, in that order; else by name; else the first ones.

    A choice is not overruled by names: columns 2,1 of a table whose second is called target make it the source.
    """
    if len(table.columns) < len(names):
        raise DataError(
            f"{table.path}: {len(table.columns)} column ({', '.join(table.columns)}) where {len(names)} are needed "
            f"({', '.join(names)}). Separate them by a tab, or give parallel files with --source and --target."
        )
    if not chosen and all(name in table.columns for name in names):
        return tuple(table.columns.index(name) for name in names), None
    picked = tuple(range(len(names)))
    sentence = None
    if len(table.columns) > len(names):
        left = ", ".join(table.columns[len(names) :])
        sentence = f"{table.path}: the first {len(names)} columns are taken as {', '.join(names)}; not used: {left}."
    return picked, sentence


def pairs_of(
    data: str | None, source: str | None, target: str | None, columns: str | None
) -> tuple[list[str], list[str]]:
    """All pairs of a table or of parallel files, held in memory: what is scored or evaluated."""
    from unrolled.data.table import wanted

    tables = _splits(data, wanted(columns)) if data else {"test": _parallel(source, target, "--source", "--target")}
    table = tables.get("test") or tables.get("train") or next(iter(tables.values()))
    pick, _ = _pick(table, ("source", "target"), chosen=columns is not None)
    rows = [[row.fields[index] for index in pick] for row in table.rows()]
    if not rows:
        raise DataError(f"{table.path}: there is no pair in it.")
    return [row[0] for row in rows], [row[1] for row in rows]
