"""Tags of sentences: whether they follow their scheme, which are rare, which of them train has never seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from unrolled.base.errors import DataError
from unrolled.data.findings import Finding
from unrolled.data.sentences import SENTENCES, cells, places
from unrolled.data.table import Row, Table, listed
from unrolled.text.spans import Scheme, spans_of
from unrolled.text.tagged import scheme_of

FEW = 5
SHOWN = 5


class TagCensus:
    """The tags in the second column of a table of sentences: words of each, or spans of each kind."""

    def __init__(self, split: str, table: Table, scheme: Scheme | None = None) -> None:
        self.split, self.table = split, table
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}  # where each is met first
        self.broken: list[str] = []  # sentences whose tags break the scheme, the first ones with their place
        self.wrong = 0
        rows = list(_rows(table))
        tags = [cells(row.fields[1]) for row in rows]
        self.scheme = scheme or scheme_of(tags)
        for row, sentence in zip(rows, tags, strict=True):
            self._count(row, sentence)

    def _count(self, row: Row, tags: list[str]) -> None:
        try:
            names = tags if self.scheme is None else [span.label for span in spans_of(tags, self.scheme)]
        except DataError:
            self.wrong += 1
            if len(self.broken) < SHOWN:
                self.broken.append(self._said(row, tags))
            return
        self.counts.update(names)
        for name in names:
            if name not in self.first:
                self.first[name] = self.table.place(row.place)

    def _said(self, row: Row, tags: list[str]) -> str:
        where = places(self.table, row.place) or [f"{self.table.place(row.place)}"] * len(tags)
        try:
            spans_of(tags, self.scheme or "iob2", where)
        except DataError as error:
            return str(error)
        return where[0]


def _rows(table: Table) -> Iterator[Row]:
    """The rows that can be read."""
    try:
        yield from table.rows(lambda _: None)
    except DataError:
        return


def tag_findings(tables: Mapping[str, Table]) -> Iterator[Finding]:
    """What is wrong with the tags of tables of sentences; nothing of others."""
    train: TagCensus | None = None
    for split, table in tables.items():
        if table.format not in SENTENCES or len(table.columns) < 2:
            continue
        census = TagCensus(split, table, train.scheme if train else None)
        yield from _alone(census)
        if split == "train":
            train = census
        elif train is not None:
            yield from _unseen(train, census)


def _alone(census: TagCensus) -> Iterator[Finding]:
    what = "tags" if census.scheme is None else f"kinds of span ({census.scheme})"
    if census.wrong:
        message = f"{census.wrong} sentences have tags that {census.scheme} does not allow."
        yield Finding("error", "broken tags", census.split, census.wrong, message, tuple(census.broken))
    most = listed([f"{name} {count:,}" for name, count in census.counts.most_common()], 8)
    yield Finding("note", "tags", census.split, len(census.counts), f"{len(census.counts)} {what}: {most}.")
    rare = [name for name, count in census.counts.items() if count < FEW]
    if rare and census.split == "train":
        message = f"{len(rare)} of {len(census.counts)} {what} are seen fewer than {FEW} times: {listed(rare, 5)}."
        yield Finding("warning", "rare tags", census.split, len(rare), message)


def _unseen(train: TagCensus, census: TagCensus) -> Iterator[Finding]:
    new = [name for name in census.counts if name not in train.counts]
    if new:
        message = f"{len(new)} tags never seen in train: {listed(new, 5)}. No model can answer them."
        where = tuple(census.first[name] for name in new[:SHOWN])
        yield Finding("warning", "unseen tags", census.split, len(new), message, where)
