"""The user's files as the tables of a run: training, validation, test; and what was concluded about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.base.errors import DataError, UsageError
from unrolled.data.files import named_format
from unrolled.data.opening import Wrong
from unrolled.data.parts import Part
from unrolled.data.readers import Table, open_parallel, open_table
from unrolled.data.table import wanted
from unrolled.tasks import Task

ONE_A_ROW = ("tsv", "csv", "jsonl", "parquet")
"""Formats whose rows are examples, or parts of one."""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where the data lie. A table in ``data`` (a file, a folder, a dataset's name), or parallel files in ``source``
    and ``target``; the same for validation and test. ``vectors``: a file that words start from."""

    data: str | None = None
    source: str | None = None
    target: str | None = None
    valid: str | None = None
    valid_source: str | None = None
    valid_target: str | None = None
    test: str | None = None
    test_source: str | None = None
    test_target: str | None = None
    vectors: str | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value == "":
                flag = "DATA" if name == "data" else f"--{name.replace('_', '-')}"
                raise UsageError(f"{flag}: '' was given where a file is expected. Name one, or leave it out.")

    def files(self) -> dict[str, str]:
        """What was given, by name, with absolute paths of files: what a resumed run starts from."""
        given = {name: value for name, value in vars(self).items() if value}
        return {name: str(Path(value).resolve()) if Path(value).exists() else value for name, value in given.items()}


class Tables(NamedTuple):
    """The parts of a run. ``said`` holds in sentences what was guessed."""

    train: Part
    valid: Part
    test: Part | None
    said: list[str]


def open_sources(tables: Mapping[str, Table], task: Task[Any], data: Mapping[str, Any]) -> Tables:
    """The parts of a run from the tables of its splits; ``data`` are the settings of that section.

    UsageError or DataError says what is missing.
    """
    if "valid" not in tables and not task.plain:
        _refuse_one_row(tables, data)
    said: list[str] = []
    parts = {}
    if "train" in tables:
        task.refuse(tables["train"])
    for split, table in task.follow({name: task.adapt(table) for name, table in tables.items()}).items():
        said += [f"{table.path}: {sentence}" for sentence in table.guessed]
        pick, sentence = _pick(table, task, chosen=data["columns"] is not None)
        if sentence:
            said.append(sentence)
        parts[split] = Part(table, pick, wrong_lines=data["wrong_lines"])
        if data["wrong_lines"] == "skip":
            said += _skipped(table)
    if "train" not in parts:
        where = next(iter(tables.values())).path.parent
        raise DataError(f"{where}: holds no part called 'train', only {', '.join(tables) or 'nothing'}.")
    if "valid" not in parts:
        parts["train"], parts["valid"], sentence = task.divide(parts["train"], data)
        said.append(sentence)
    return Tables(parts["train"], parts["valid"], parts.get("test"), said)


def _refuse_one_row(tables: Mapping[str, Table], data: Mapping[str, Any]) -> None:
    """DataError where the training table is a single row, before it is taken for anything else."""
    table = tables.get("train")
    if table is not None and table.format in ONE_A_ROW:
        rows = Part(table, (), wrong_lines=data["wrong_lines"])
        if len(list(islice(table.rows(rows.report), 2))) == 1:
            raise DataError(
                f"{table.path}: one row, and some must be held out for validation. Give more rows, or a validation "
                "file with --valid."
            )


def tables_of(sources: Sources, columns: Sequence[str | int] | None, *, plain: bool = False) -> dict[str, Table]:
    """The table of each split that was given. UsageError for a split given twice or by halves, or for none.

    ``plain``: a file whose name tells no format is running text.
    """
    if sources.data is not None:
        if sources.source or sources.target:
            raise UsageError("give a table (DATA) or parallel files (--source and --target), not both.")
        found = _splits(sources.data, columns, plain=plain)
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
            found[split] = open_table(whole, columns=_columns(columns), format=_format(whole, plain))
        elif left or right:
            found[split] = _parallel(left, right, *names)
    return found


def _format(path: str, plain: bool) -> str | None:
    """The format to read a file in; None: what it looks like."""
    return "running" if plain and Path(path).is_file() and named_format(Path(path)) is None else None


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


def _splits(data: str, columns: Sequence[str | int] | None, *, plain: bool) -> dict[str, Table]:
    from unrolled.data.readers import splits

    format_ = _format(data, plain)
    if format_ is not None:
        return {"train": open_table(data, columns=_columns(columns), format=format_)}
    return dict(splits(data, columns=_columns(columns)))


def _parallel(left: str | None, right: str | None, left_name: str, right_name: str) -> Table:
    if not left and not right:
        raise UsageError("no data: give a table (DATA), or parallel files with --source and --target.")
    if not left or not right:
        raise UsageError(f"{left_name if not left else right_name} is missing: parallel files come in pairs.")
    return open_parallel(left, right)


def _pick(table: Table, task: Task[Any], *, chosen: bool) -> tuple[tuple[int, ...], str | None]:
    """Which fields are the task's columns: as ``chosen`` by the user, in that order; else by name; else the first ones.

    A choice is not overruled by names: columns 2,1 of a table whose second is called target make it the source.
    """
    names = task.columns
    if len(table.columns) < len(names):
        raise DataError(
            f"{table.path}: {len(table.columns)} column ({', '.join(table.columns)}) where {len(names)} are needed "
            f"({', '.join(names)}). Separate them by a tab{task.instead}."
        )
    named = task.picked(table.columns) if chosen else task.named(table.columns)
    if named is not None:
        return named, None
    picked = tuple(range(len(names)))
    sentence = None
    if len(table.columns) > len(names):
        left = ", ".join(table.columns[len(names) :])
        first = f"first {len(names)} columns are" if len(names) > 1 else "first column is"
        sentence = f"{table.path}: the {first} taken as {', '.join(names)}; not used: {left}."
    return picked, sentence


def part_of(sources: Sources, task: Task[Any], columns: str | None = None) -> Part:
    """The rows that are scored or evaluated: the test table, else the training table, else the one that is there.

    DataError where it has none.
    """
    tables = tables_of(sources, wanted(columns), plain=task.plain)
    table = task.for_evaluation(tables.get("test") or tables.get("train") or next(iter(tables.values())))
    part = Part(table, _pick(table, task, chosen=columns is not None)[0])
    if next(part.rows(), None) is None:
        raise DataError(f"{table.path}: there is no {task.noun} in it.")
    return part
