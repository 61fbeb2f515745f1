"""Stories with questions in between, as bAbI writes them: numbered lines, a question with answer and support."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from unrolled.data.formats import head
from unrolled.data.opening import Report, Wrong, read_lines
from unrolled.data.table import Columns, Row, Table, select, wanted

COLUMNS = ("story", "document", "question", "answer", "support")

_NUMBERED = re.compile(r"\s*(\d+)\s+(.*)")

LOOKED_AT = 1000
"""Lines by which a file is told to be one of stories."""


class _Story:
    """The lines of a story so far."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.last = 0  # the number of the line before
        self.sentences: list[str] = []
        self.places: dict[int, int] = {}  # the number of a sentence's line → which sentence it is

    def say(self, number: int, sentence: str) -> None:
        self.places[number] = len(self.sentences)
        self.sentences.append(sentence)

    def fields(self, text: str) -> tuple[str, ...]:
        """A question as a row of ``COLUMNS``; ValueError with what is wrong about it."""
        parts = [part.strip() for part in text.split("\t")]
        if len(parts) > 3:
            raise ValueError(f"{len(parts)} parts where question, answer and supporting lines are expected.")
        question, answer, support = [*parts, "", ""][:3]
        found = []
        for word in support.split():
            number = int(word) if word.isdecimal() else -1
            if number not in self.places:
                raise ValueError(
                    f"'{word}' is said to support the answer, and no sentence before it in the story has that number "
                    f"(its lines are 1 to {self.last})."
                )
            found.append(str(self.places[number]))
        return self.key, "\n".join(self.sentences), question, answer, " ".join(found)


def open_babi(path: Path, columns: Columns = None) -> Table:
    """Stories (Weston et al. 2015, arXiv:1502.05698): lines numbered from 1 in each; a line with a tab, or that ends in
    a question mark, is a question, its document the sentences of the story before it.

    ``story`` tells stories apart, ``document`` has a sentence a line, ``support`` are the numbers of sentences, from 0.
    """
    head(path)
    indices = select(path, COLUMNS, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for row in _rows(path, report):
            yield Row(row.place, tuple([row.fields[index] for index in indices]))

    said = "Lines are numbered, questions have tabs: stories as bAbI has them."
    return Table(path, tuple(COLUMNS[index] for index in indices), read, "babi", (path,), [said])


def _rows(path: Path, report: Report) -> Iterator[Row]:
    story: _Story | None = None
    for place, text in read_lines(path, report):
        if text is None or not text.strip():
            continue
        found = _NUMBERED.fullmatch(text)
        number = int(found[1]) if found else 0
        if number == 1:
            story = _Story(f"{path.name}:{place}")
        elif not found or (story is not None and number != story.last + 1):
            report(Wrong(path, place, "story", _misnumbered(number, story)))
            story = None  # the rest of a story without one of its lines would be another story
            continue
        if story is None or found is None:
            if place == 1:
                report(Wrong(path, place, "story", _misnumbered(number, None)))
            continue
        story.last = number
        body = found[2]
        if "\t" not in body and not body.rstrip().endswith("?"):
            story.say(number, body.strip())
            continue
        try:
            yield Row(place, story.fields(body))
        except ValueError as error:
            report(Wrong(path, place, "story", str(error)))


def _misnumbered(number: int, story: _Story | None) -> str:
    if not number:
        return "no number in front: each line of a story has one, from 1 on. Write it, or take the line out."
    last = 0 if story is None else story.last
    return (
        f"the number {number} follows {last}: the lines of a story are numbered 1, 2, 3, … and a new story begins with "
        "1. Is a line missing? (All of this story from here on is left out where wrong lines are.)"
    )


def is_babi(path: Path) -> bool:
    """Whether a file's first lines are a story: numbers in front, from 1 on, one after the other but for mistakes, and
    a question between sentences."""
    lines = [text for _, text in islice(read_lines(path, lambda _: None), LOOKED_AT) if text and text.strip()]
    found = [one for text in lines if (one := _NUMBERED.fullmatch(text))]
    if len(found) < 2 or len(found) * 4 < len(lines) * 3 or not _NUMBERED.fullmatch(lines[0]) or int(found[0][1]) != 1:
        return False
    numbers = [int(one[1]) for one in found]
    following = sum(here in (1, before + 1) for before, here in pairwise(numbers))
    asking = ["\t" in one[2] or one[2].rstrip().endswith("?") for one in found]
    return following * 2 >= len(numbers) - 1 and any(asking) and not all(asking)


def joined(tables: Sequence[Table], folder: Path, kinds: Sequence[str]) -> Table:
    """Several files of stories as one table, with a column ``kind``: which file a question is of."""

    def read(report: Report) -> Iterator[Row]:
        for table, kind in zip(tables, kinds, strict=True):
            for row in table.rows(report):
                yield Row(row.place, (*row.fields, kind))

    files = tuple(file for table in tables for file in table.files)
    said = f"{len(tables)} files of stories are read as one: {', '.join(kinds)}."
    return Table(folder, (*tables[0].columns, "kind"), read, "babi", files, [said])
