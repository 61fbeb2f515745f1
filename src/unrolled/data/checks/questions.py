"""Questions about documents: whether the answers stand there, and so may be pointed at."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.data.census import Census
from unrolled.data.findings import Finding, percent
from unrolled.data.questions import ASKED, UNANSWERED, UNTAUGHT, place_of

PLACES = 5

POINTED = ("squad", "jsonl")
"""Formats in which a row may say at which character its answer begins."""


def inside(census: Census) -> Iterator[Finding]:
    """How many answers stand in their document: what spans and anonymous entities need of all."""
    table = census.table
    if table.columns != ASKED:
        return
    places, outside, rows, nowhere = [], 0, 0, 0
    partly: list[str] = []
    for row in table.rows(lambda _: None):
        document, _, _ = row.fields[0].rpartition("\n")
        if row.fields[1] == UNANSWERED:
            nowhere += 1
            continue
        rows += 1
        if place_of(document, row.fields[1], None) is not None:
            continue
        if row.fields[1] in document and table.format in POINTED:
            partly.append(table.place(row.place))
        else:
            outside += 1
            places.append(table.place(row.place))
    if nowhere:
        message = (
            f"{percent(nowhere / (rows + nowhere))} of the questions are said not to be answered by their document: a "
            "span may be none (task.answer=span), an entity may not."
        )
        yield Finding("note", "unanswered", census.split, nowhere, message)
    if not rows:
        if nowhere and census.split == "train":
            yield Finding("error", "nothing to learn", census.split, nowhere, UNTAUGHT, (str(table.path),))
        return
    if partly:
        message = (
            f"{percent(len(partly) / rows)} of the answers stand in their document as a part of a word alone: a "
            "span is learnt as the whole words where the file says where it begins (answer_start), else refused."
        )
        yield Finding("note", "parts of words", census.split, len(partly), message, tuple(partly[:PLACES]))
    if not outside:
        if not partly:
            message = "every answer stands in its document: a span or an anonymous entity can be one (task.answer)."
            yield Finding("note", "answers", census.split, rows, message)
        return
    message = (
        f"{percent(outside / rows)} of the answers do not stand in their document: they can be told as one of a list "
        "(task.answer=entity), not as a span or an anonymous entity."
    )
    yield Finding("note", "answers", census.split, outside, message, tuple(places[:PLACES]))
