"""A table: named columns and rows that can be read again and again, one at a time, each with its place in the file."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from unrolled.base.errors import UsageError, known
from unrolled.data.endings import kind_of
from unrolled.data.opening import Report, Wrong, refuse

Columns = str | Sequence[str | int] | None
"""Which columns, in which order: names or 1-based numbers, also written ``"de,en"`` or ``"2,1"``. None takes all."""

_NAMES = """
sentiment topic utterance message review comment tweet
source target src tgt trg input output inputs outputs text texts sentence sentence1 sentence2 label labels class
category intent tag tags id idx index count score question answer query response prompt completion document summary
article title headline abstract word words lemma form features feats inflection pronunciation phonemes ipa spelling
historical modern name transliteration translation ar bg bn ca cs da de el en es et fa fi fr he hi hr hu it ja ko lt
lv ms nl no pl pt ro ru sk sl sr sv ta th tr uk ur vi zh eng deu ger fra fre spa ita por nld rus jpn zho chi kor ara
heb ces pol english german french spanish italian portuguese dutch russian japanese chinese korean arabic hebrew czech
polish image boxes caption path file file_name filename audio sound recording wav transcript transcription
"""
KNOWN_NAMES = frozenset(_NAMES.split())
"""Cells that mark a first row as a header; compared in lower case."""

LONE_NAMES = frozenset(
    ["date", "time", "timestamp", "sequence", "series", "drawing", "stroke", "pen", "x", "y", "dx", "dy", "value"]
)
"""More of them, which may also begin a table of their own: they count where hardly another row is there."""

TIME_NAMES = frozenset(["date", "time", "datetime", "timestamp", "ds", "month", "year", "quarter", "week", "day"])
"""What a first column of times is called: whatever else a row of names holds, it is one."""

_DATE = re.compile(r"\d{4}[-/](?:\d{1,2}\b|Q[1-4]$)")


class Row(NamedTuple):
    """One example. ``place`` is the 1-based line where it begins (the row's number in Parquet)."""

    place: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of the same columns. ``guessed`` says in sentences what was not given but concluded."""

    path: Path
    columns: tuple[str, ...]
    read: Callable[[Report], Iterator[Row]] = field(repr=False)
    format: str = "text"
    files: tuple[Path, ...] = ()
    guessed: list[str] = field(default_factory=list)
    mark: str = ""  # stands for the content where there are no files: the hub's own fingerprint
    channels: tuple[str, ...] = ()  # of frames: what their channels are called, where the file says
    root: str = ""  # what paths in cells begin with: where the files lie, which says nothing of what they are
    named: tuple[str, ...] = ()  # how messages call each place, where places are no lines of ``path``
    sign: str = ":"  # what stands before a place: "#" where it is the number of an example
    within: Callable[[int], str] | None = field(default=None, repr=False, compare=False)
    """Where in a nested file the example with a number is, for messages."""

    def rows(self, report: Report = refuse) -> Iterator[Row]:
        """Every row, from the beginning. A wrong line raises DataError, or goes to ``report`` and is left out."""
        return self.read(report)

    def place(self, row: int, column: int = 0) -> str:
        """``"pairs.tsv:12"``, for messages; of parallel files the one that ``column`` (0-based) stands in."""
        if self.named:
            return self.named[row - 1]
        path = self.files[column] if self.format == "parallel" else self.path
        return f"{path}{self.sign}{row}"

    def nested(self, row: int) -> str:
        """``"data[0].qas[3]: "`` before a message about a row of a nested file; of others nothing."""
        return "" if self.within is None else f"{self.within(row)}: "

    def fingerprint(self) -> str:
        """A digest of the files' bytes and the columns chosen: the same digest, the same rows."""
        digest = hashlib.sha256(repr((self.format, self.columns, self.mark)).encode("utf-8", "surrogateescape"))
        for path in self.files:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()


def cut(table: Table, names: Sequence[str]) -> Table:
    """The table with the columns called ``names`` alone, or its first ones where they are not called so."""
    if len(table.columns) <= len(names):
        return table
    named = all(name in table.columns for name in names)
    indices = [table.columns.index(name) for name in names] if named else list(range(len(names)))
    columns = [table.columns[index] for index in indices]
    others = [name for name in table.columns if name not in columns]
    return arranged(
        table, indices, f"Looked at are {listed(columns)}; not used: {listed(others)} (choose with --columns)."
    )


def arranged(table: Table, indices: Sequence[int], said: str, names: Sequence[str] | None = None) -> Table:
    """The table with its columns ``indices`` in that order, called ``names`` (None: as before), and a sentence."""

    def read(report: Report) -> Iterator[Row]:
        for place, fields in table.rows(report):
            yield Row(place, tuple([fields[index] for index in indices]))

    columns = tuple(names or [table.columns[index] for index in indices])
    return replace(table, columns=columns, read=read, guessed=[*table.guessed, said])


def wanted(columns: Columns) -> list[str | int] | None:
    """What the user asked for as a list of names and 1-based numbers; None for everything."""
    if columns is None:
        return None
    given = columns.split(",") if isinstance(columns, str) else list(columns)
    found: list[str | int] = []
    for column in given:
        name = column.strip() if isinstance(column, str) else column
        number = int(name) if isinstance(name, str) and name.isdecimal() else name
        if number in ("", 0) or (isinstance(number, int) and number < 0):
            raise UsageError(f"--columns {columns!r}: a column is a name or a number from 1, e.g. --columns 1,2.")
        found.append(number)
    return found


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names its columns: no cell twice, and most of them well-known column names."""
    names = [cell.strip().casefold() for cell in cells]
    return len(set(names)) == len(names) and sum(name in KNOWN_NAMES for name in names) * 2 > len(names)


def heads_numbers(records: Sequence[Sequence[str]]) -> bool:
    """Whether a first row stands above numbers without being some: in half of its columns or more it has a word, no
    two alike, and the rows below (at least two) have numbers or dates."""
    first, below = [cell.strip() for cell in records[0]], records[1:]
    if len(below) < 2 or len(set(first)) < len(first) or any(len(row) != len(first) for row in below):
        return False
    above = sum(
        bool(name) and not is_number(name) and all(is_number(row[place]) or is_date(row[place]) for row in below)
        for place, name in enumerate(first)
    )
    return above * 2 >= len(first) > 1 and not any(is_number(cell) or is_date(cell) for cell in first)


def heads_little(records: Sequence[Sequence[str]]) -> bool:
    """Whether a row that stands alone, or above one row with a number or a date, names columns: half of its cells or
    more are names of columns of some task, or its first is that of times and stands above one; no two are alike, and
    none is a number, a date or a path."""
    first = [cell.strip().casefold() for cell in records[0]]
    if len(records) > 2 or len(first) < 2 or len(set(first)) < len(first):
        return False
    if any(is_number(cell) or is_date(cell) or kind_of(cell) for cell in first):
        return False
    if len(records) == 2 and not any(is_number(cell) or is_date(cell) for cell in records[1]):
        return False
    if first[0] in TIME_NAMES and (len(records) == 1 or is_number(records[1][0]) or is_date(records[1][0])):
        return True
    return sum(cell in KNOWN_NAMES or cell in LONE_NAMES for cell in first) * 2 >= len(first)


def heads_paths(records: Sequence[Sequence[str]]) -> bool:
    """Whether a first row stands above paths without being one: in some column every row below (at least one) names an
    image or a recording, and the first row names none anywhere."""
    first, below = records[0], records[1:]
    if not below or any(kind_of(cell) for cell in first) or any(len(row) != len(first) for row in below):
        return False
    return any(all(kind_of(row[place]) for row in below) for place in range(len(first)))


def is_number(cell: str) -> bool:
    """Whether a cell is a number, as Python reads one."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_date(cell: str) -> bool:
    """Whether a cell begins as a date does: year and month, a quarter."""
    return _DATE.match(cell.strip()) is not None


def default_names(count: int) -> tuple[str, ...]:
    """Names for columns that have none: text, or source and target and then their numbers."""
    return ("text",) if count == 1 else ("source", "target", *(str(n) for n in range(3, count + 1)))


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names made different: a second ``text`` becomes ``text.2``."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return tuple(result)


def shown(name: str) -> str:
    """A name from the user's file as one printable line of a message."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= 60 else f"{text[:59]}…"


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, commas between them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def select(path: Path, names: Sequence[str], columns: list[str | int] | None) -> list[int]:
    """Indices into ``names`` of the wanted columns; UsageError for an unknown name or a number too high."""
    if columns is None:
        return list(range(len(names)))
    indices = []
    for column in columns:
        if isinstance(column, int):
            if column > len(names):
                raise UsageError(f"{path}: there is no column {column}, only {_count(len(names))} ({listed(names)}).")
            indices.append(column - 1)
        elif column in names:
            indices.append(names.index(column))
        else:
            hint = known(shown(column), [shown(name) for name in names])
            raise UsageError(f"{path}: no column is called '{shown(column)}'. {hint} A number from 1 works too.")
    return indices


def _count(count: int) -> str:
    return f"{count} column" if count == 1 else f"{count} columns"


def wrong_count(path: Path, place: int, given: int, names: Sequence[str], separator: str, text: str = "") -> Wrong:
    """The line (``text``) whose number of columns is another than the table's."""
    cure = (
        f"Remove the extra {separator} or name the columns with --columns."
        if given > len(names)
        else f"Columns are separated by one {separator}."
    )
    if "\r" in text:
        cure = "A carriage return stands in the middle of the line: two lines run together? Put a line feed there."
    what = f"{_count(given)} where {len(names)} {'is' if len(names) == 1 else 'are'} expected ({listed(names)})"
    return Wrong(path, place, "columns", f"{what}. {cure}")
