"""The data doctor: reads every split once and says what is wrong, what costs quality, and what is good to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unrolled.base.registry import Part
from unrolled.data.census import Census
from unrolled.data.checks import (
    drawings,
    duplicates,
    features,
    frames,
    images,
    labels,
    lengths,
    questions,
    series,
    sounds,
    tags,
    text,
    unknown,
)
from unrolled.data.findings import Column, Finding, Report, Split, Unknown
from unrolled.data.formats import PIECE
from unrolled.data.table import Table, listed

_ORDER = {"error": 0, "warning": 1, "note": 2}


def examine(tables: Mapping[str, Table], *, tokenizers: Sequence[Part] = (), separator: str | None = None) -> Report:
    """Read every table to its end, past wrong lines, and report.

    ``tables`` are called train, valid, test; the others are held against train. Unknown characters and words are
    measured anyhow; ``tokenizers`` are trained on train to measure theirs. Memory: 8 bytes a row and column for
    digests, and the different words (a million at most). Columns after the second are features of the first.
    ``separator`` is what stands between the labels of a cell; None: what its cells tell.
    """
    if any(map(series.told, tables.values())):
        return series.report(tables)
    train = Census("train", tables["train"], separator=separator) if "train" in tables else None
    others = [Census(split, table, train, separator=separator) for split, table in tables.items() if split != "train"]
    findings = [
        finding
        for census in ([train] if train else []) + others
        for finding in _alone(census, alone="valid" not in tables)
    ]
    shares: list[Unknown] = []
    if train:
        for census in others:
            findings += _against(train, census)
            shares += unknown.shares(train, census)
        shares += unknown.trained_shares(tables, tokenizers)
    findings += unknown.too_many(shares)
    findings += tags.tag_findings(tables)
    order = list(tables)
    findings.sort(key=lambda finding: (_ORDER[finding.severity], order.index(finding.split)))
    splits = tuple(_split(census) for census in ([train] if train else []) + others)
    return Report(splits, tuple(findings), tuple(shares))


def _alone(census: Census, *, alone: bool) -> Iterator[Finding]:
    """What one split shows by itself; ``alone``: none is there to validate on."""
    yield from text.wrong_lines(census)
    yield from text.odd_texts(census)
    yield from text.line_ends(census)
    if not census.names_files:  # the same text of different files is no repeat
        yield from duplicates.repeated(census)
    yield from duplicates.identical(census)
    yield from duplicates.ambiguous(census)
    yield from lengths.unequal(census)
    yield from lengths.long_tail(census)
    yield from labels.single(census)
    yield from labels.joint(census)
    yield from labels.spread(census)
    yield from features.empty(census)
    yield from frames.wrong(census)
    yield from drawings.wrong(census)
    yield from images.looked_at(census)
    yield from questions.inside(census)
    yield from sounds.wrong(census)
    yield from sounds.repeated(census)
    if census.rows and len(census.table.columns) == 1 and census.split == "train":
        name, plain = census.columns[0].name, census.table.format == "text"
        use = "running text, for a language model; " if plain else ""
        message = f"one column ({name}): {use}to learn a text from a text takes two, source and target."
        yield Finding("note" if plain else "warning", "one column", census.split, 1, message, (str(census.table.path),))
    if census.split == "train" and alone and _indivisible(census):
        message = "one row, and some must be held out for validation: training refuses it. Give more rows, or --valid."
        yield Finding("error", "one row", census.split, 1, message, (str(census.table.path),))
    elif census.split == "train" and 0 < census.rows < 100:
        rows = f"{census.rows} row{'' if census.rows == 1 else 's'}"
        message = f"only {rows} to learn from; some hundreds are the least that is usual."
        yield Finding("warning", "few rows", census.split, census.rows, message)


def _indivisible(census: Census) -> bool:
    """Whether there is one row, of which nothing can be held out; a very long line of running text is cut in pieces."""
    if census.rows != 1 or census.table.format != "text":
        return census.rows == 1
    (row,) = census.table.rows(lambda _: None)
    return len(row.fields[0]) <= PIECE


def _against(train: Census, census: Census) -> Iterator[Finding]:
    """What another split shows when held against train."""
    if len(train.columns) != len(census.columns):
        message = (
            f"the columns are {listed(census.table.columns)}, those of train {listed(train.table.columns)}. "
            "Choose the same ones with --columns."
        )
        yield Finding("error", "columns differ", census.split, 1, message, (str(census.table.path),))
    if not census.names_files:
        yield from duplicates.overlap(train, census)
    yield from sounds.overlap(train, census)
    yield from images.overlap(train, census)
    yield from labels.unseen(train, census)
    yield from features.unseen(train, census)
    yield from unknown.unseen_characters(train, census)


def _split(census: Census) -> Split:
    table = census.table
    columns = tuple(
        Column(
            column.name,
            lengths.measure(census, index),
            sum(count > 0 for count in column.characters.values()),
            len(column.words),
            labels.counts(census, index),
        )
        for index, column in enumerate(census.columns)
        if not (column.name == "frames" and frames.framed(table))
        and not (drawings.is_drawn(table) and (column.name == "drawing" or not any(column.characters.values())))
    )
    wrong = sum(census.wrong.values())
    return Split(census.split, str(table.path), table.format, census.rows, wrong, columns, tuple(table.guessed))
