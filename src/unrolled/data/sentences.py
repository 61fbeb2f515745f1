"""Tagged sentences as a table: a row a sentence, the words and every other column each as one field, tabs between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

from unrolled.base.errors import DataError
from unrolled.data import conll
from unrolled.data.opening import Report, Wrong, read_lines, refuse
from unrolled.data.table import Columns, Row, Table, cut, listed, select, wanted
from unrolled.text.spans import writes_span

TAB = "\t"

UNIVERSAL = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of CoNLL-U (universaldependencies.org/format.html)."""

SENTENCES = frozenset({"conll", "conllu", "spans", "chunks", "tokens"})
"""Formats whose rows are sentences."""

WORDS = ("form", "word", "words", "token", "tokens")
TAGS = ("tag", "tags", "upos", "label", "labels")
"""What columns of words and of tags are called, the likeliest first; compared in lower case."""

LOOKED_AT = 400
"""Lines by which a file is told to be CoNLL."""


def cells(field: str) -> list[str]:
    """A sentence's words, tags, … from their field."""
    return field.split(TAB)


def joined(values: Sequence[str]) -> str:
    """The field of a sentence's words, tags, …"""
    return TAB.join(values)


def usual(columns: Sequence[str]) -> tuple[int, int]:
    """Which columns hold words and tags, where nobody says."""
    names = [name.casefold() for name in columns]
    words = next((names.index(name) for name in WORDS if name in names), 0)
    return words, next((names.index(name) for name in TAGS if name in names), len(columns) - 1)


def sentences_first(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables as words and tags, where they hold sentences; else nothing."""
    if not all(table.format in SENTENCES for table in tables.values()):
        return {}
    return {split: cut(table, [table.columns[at] for at in usual(table.columns)]) for split, table in tables.items()}


def places(table: Table, row: int) -> list[str]:
    """Where each word of the sentence in ``row`` stands: ``train.conll:12``; of other formats than CoNLL the line."""
    if table.format in ("conll", "conllu"):
        for sentence in conll.sentences(table.path, universal=table.format == "conllu", report=lambda _: None):
            if sentence.words and sentence.first + sentence.words[0] == row:
                return sentence.places()
    return []


def open_conll(path: Path, columns: Columns = None) -> Table:
    """CoNLL: a word a line, columns by tabs or spaces, the word first (or behind its number), the tag last."""
    return _open(path, columns, "conll")


def open_conllu(path: Path, columns: Columns = None) -> Table:
    """CoNLL-U: ten columns by tabs; ranges (1-2) and empty nodes (8.1) are no words."""
    return _open(path, columns, "conllu")


def _open(path: Path, columns: Columns, kind: str) -> Table:
    universal = kind == "conllu"
    names, seen = _names(path, universal)
    indices = select(path, names, wanted(columns))
    whole = indices == list(range(len(names)))

    def read(report: Report) -> Iterator[Row]:
        for sentence in conll.sentences(path, universal=universal, report=report):
            if sentence.words:
                fields = tuple(map(joined, zip(*sentence.rows(), strict=True)))
                yield Row(sentence.first + sentence.words[0], fields if whole else tuple([fields[i] for i in indices]))

    said = f"A word a line, {seen}; the columns are {listed(names)}."
    return Table(path, tuple(names[index] for index in indices), read, kind, (path,), [said])


def _names(path: Path, universal: bool) -> tuple[tuple[str, ...], str]:
    """The columns' names, and how they are parted."""
    wrong: list[Wrong] = []
    for sentence in conll.sentences(path, universal=universal, report=wrong.append):
        if sentence.words:
            break
    else:
        if wrong:
            refuse(wrong[0])
        raise DataError(f"{path}: there is no sentence in it. Write a word a line, a blank line after each sentence.")
    rows = sentence.rows()
    said = f"columns by {'tabs' if sentence.tabs else 'spaces'}"
    if universal:
        return UNIVERSAL[: len(rows[0])], said
    numbered = len(rows[0]) > 2 and [row[0] for row in rows] == [str(n) for n in range(1, len(rows) + 1)]
    first = ("id", "word") if numbered else ("word",)
    middle = tuple(str(n) for n in range(len(first) + 1, len(rows[0])))
    return (*first, *middle, "tag")[: max(len(rows[0]), 1)], said


def is_conll(path: Path) -> str | None:
    """``conllu`` or ``conll`` where a file's first lines are a word each, in sentences; None where they are not.

    Blank lines part blocks of which one at least has several lines; every line has as many columns, two at least, no
    first cell holds a space, and what stands last comes again and again, or is O, B-X, I-X, ….
    """
    lines = [text for _, text in islice(read_lines(path, lambda _: None), LOOKED_AT) if text is not None]
    full = [text for text in lines if text.strip() and not text.startswith("-DOCSTART-")]
    tab = any(TAB in text for text in full)
    rows = [text.split(TAB if tab else " ") for text in full if not text.startswith("#" if tab else "# ")]
    widths = {len(row) for row in rows}
    blank = [not text.strip() for text in lines]
    parted = any(here and not before for before, here in pairwise(blank))
    several = any(not one and not other for one, other in pairwise(blank))
    if len(widths) != 1 or widths == {1} or not parted or not several or len(rows) < 4:
        return None
    if widths == {conll.UNIVERSAL} and all(row[0][:1].isdigit() for row in rows):
        return "conllu"
    last = {row[-1] for row in rows}
    few = len(last) * 2 <= len(rows) or all(writes_span(tag) for tag in last)
    return "conll" if few and not any(" " in row[0].strip() for row in rows) else None
