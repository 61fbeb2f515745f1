"""Sentences of a CoNLL or CoNLL-U file, a word a line: read one by one, written back with one column replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from unrolled.base.errors import DataError, UsageError
from unrolled.data import encodings
from unrolled.data.opening import Report, Wrong, open_bytes, refuse

TAB = "\t"
UNIVERSAL = 10
"""Columns of CoNLL-U (universaldependencies.org/format.html)."""
_WORD, _OTHER = re.compile(r"[0-9]+"), re.compile(r"[0-9]+(-|\.)[0-9]+")
_FIELD = re.compile(r"[^ \t]+")


class Sentence(NamedTuple):
    """The lines of a sentence as they stand in the file, line ends, comments and the blank lines after it included."""

    path: Path
    first: int  # number of its first line, from 1
    lines: list[str]
    words: list[int]  # which of the lines are words
    tabs: bool  # columns are parted by one tab, else by spaces

    def rows(self) -> list[list[str]]:
        """The cells of each word."""
        return [[self.lines[at][start:stop] for start, stop in _fields(self.lines[at], self.tabs)] for at in self.words]

    def column(self, number: int) -> list[str]:
        """Column ``number``, from 1; -1 is the last. DataError where a word has no such column."""
        return [self.lines[at][slice(*self._field(at, number))] for at in self.words]

    def places(self) -> list[str]:
        """Where each word stands, ``file:line``."""
        return [f"{self.path}:{self.first + at}" for at in self.words]

    def replaced(self, number: int, values: Sequence[str]) -> str:
        """The sentence's text with one value a word in column ``number``, every other character as it was."""
        if len(values) != len(self.words):
            raise UsageError(f"{len(values)} values for the {len(self.words)} words of {self.path}:{self.first}.")
        lines = list(self.lines)
        for at, value in zip(self.words, values, strict=True):
            start, stop = self._field(at, number)
            lines[at] = lines[at][:start] + value + lines[at][stop:]
        return "".join(lines)

    def appended(self, values: Sequence[str]) -> str:
        """The sentence's text with one value a word in a new last column, parted as the others."""
        if len(values) != len(self.words):
            raise UsageError(f"{len(values)} values for the {len(self.words)} words of {self.path}:{self.first}.")
        lines = list(self.lines)
        for at, value in zip(self.words, values, strict=True):
            body = lines[at].rstrip("\r\n")
            alone = len(_fields(body, tabs=False)) == 1
            lines[at] = f"{body}{TAB if self.tabs or alone else ' '}{value}{lines[at][len(body) :]}"
        return "".join(lines)

    def _field(self, at: int, number: int) -> tuple[int, int]:
        fields = _fields(self.lines[at], self.tabs)
        if number == 0 or not -len(fields) <= number <= len(fields):
            raise DataError(f"{self.path}:{self.first + at}: column {number} of {len(fields)}. Name one that is there.")
        return fields[number - 1 if number > 0 else number]


def sentences(path: str | Path, *, universal: bool = False, report: Report = refuse) -> Iterator[Sentence]:
    """The sentences of ``path`` (also gzipped); their texts, end to end, are the file.

    A line of white space alone ends a sentence. A sentence without words holds the blank lines, the ``-DOCSTART-`` or
    the comments that stand alone. ``universal`` reads CoNLL-U: ranges (1-2) and empty nodes (8.1) are no words.
    DataError names the line that is not UTF-8; a sentence with a line that has another number of columns than the
    file's first word goes to ``report``, and is left out where that accepts it.
    """
    path, block, first, width, ended = Path(path), list[str](), 1, UNIVERSAL if universal else 0, False
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            line = _decoded(path, number, raw)
            blank = not line.strip("\ufeff \t\r\n")
            if ended and not blank:
                sentence, width = _reported(path, first, block, width, universal, report)
                if sentence is not None:
                    yield sentence
                block, first = [], number
            block.append(line)
            ended = blank
    if block:
        sentence, _ = _reported(path, first, block, width, universal, report)
        if sentence is not None:
            yield sentence


class _Unlike(Exception):
    """A line that is not like those before."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at, self.message = at, message


def _reported(
    path: Path, first: int, lines: list[str], width: int, universal: bool, report: Report
) -> tuple[Sentence | None, int]:
    try:
        return _parsed(path, first, lines, width, universal)
    except _Unlike as error:
        report(Wrong(path, first + error.at, "columns", error.message))
        return None, width


def _parsed(path: Path, first: int, lines: list[str], width: int, universal: bool) -> tuple[Sentence, int]:
    full = [at for at, line in enumerate(lines) if line.strip("\ufeff \t\r\n")]
    tabs = universal or (bool(full) and "\t" in lines[full[-1]])
    words: list[int] = []
    for at in full:
        fields = _fields(lines[at], tabs)
        start = lines[at].removeprefix("\ufeff")
        comment = start.startswith("#") and not words and len(fields) != (width or len(_fields(lines[full[-1]], tabs)))
        alone = not width and at == full[-1] and start.startswith("# ")  # before the file's first word
        if start.startswith("-DOCSTART-") or comment or alone:
            continue
        width = width or len(fields)
        if len(fields) != width:
            raise _Unlike(
                at,
                f"{len(fields)} column{'' if len(fields) == 1 else 's'} where {width} are expected, as in the lines "
                "before. Add what is missing, or remove the extra one.",
            )
        if universal and not _WORD.fullmatch(lines[at][slice(*fields[0])]):
            if not _OTHER.fullmatch(lines[at][slice(*fields[0])]):
                raise _Unlike(at, f"the ID {lines[at][slice(*fields[0])]!r} is no number, range or 8.1.")
            continue
        words.append(at)
    return Sentence(path, first, lines, words, tabs), width


def _fields(line: str, tabs: bool) -> list[tuple[int, int]]:
    """Where the columns of a line begin and end."""
    begin = int(line.startswith("\ufeff"))
    body = line.rstrip("\r\n")
    if not tabs:
        return [found.span() for found in _FIELD.finditer(body, begin)]
    spans = []
    for text in body[begin:].split("\t"):
        spans.append((begin, begin + len(text)))
        begin += len(text) + 1
    return spans


def _decoded(path: Path, number: int, raw: bytes) -> str:
    if number == 1:
        encodings.refuse_foreign(path, raw)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{number}: {encodings.explain(path, raw, error)}") from None
