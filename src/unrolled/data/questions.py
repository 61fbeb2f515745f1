"""Questions about documents as rows of one shape, whatever file they come from; what cannot be answered is named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from unrolled.base.errors import DataError
from unrolled.data.opening import Report, Wrong
from unrolled.data.table import Row, Table, listed

COLUMNS = ("story", "document", "question", "answer", "start", "candidates", "support", "kind")
"""Of each question: what ties rows together that must not be divided, where it is asked, itself, its answers, where
each begins in the document (a number of characters; ``NOWHERE``: the document does not answer it), from what it is
chosen, which sentences say it, which kind it is of.
Several values in a cell have tabs between; what a file does not say is empty."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "story": (),
    "document": ("document", "context", "passage", "paragraph", "article", "story", "text"),
    "question": ("question", "query"),
    "answer": ("answer", "answers"),
    "start": ("answer_start", "start"),
    "candidates": ("candidates", "options", "choices"),
    "support": ("support",),
    "kind": ("kind", "type", "question_type"),
}
"""What columns are called, the likeliest first; compared in lower case."""

TAB = "\t"
NOWHERE = "nowhere"

_ENDS = re.compile(r"(?<=[.!?…。！？])\s+")


class Question(NamedTuple):
    """A row of ``COLUMNS``, its cells parted."""

    document: str
    question: str
    answers: tuple[str, ...]
    starts: tuple[int, ...]
    candidates: tuple[str, ...]
    support: tuple[int, ...]
    kind: str
    nowhere: bool = False  # its document does not answer it, and that is known

    @property
    def answer(self) -> str:
        """The first answer; empty where the document has none."""
        return self.answers[0] if self.answers else ""


def question_of(fields: Sequence[str]) -> Question:
    """The parts of a row that `questions` gave."""
    _, document, question, answer, start, candidates, support, kind = fields
    return Question(
        document,
        question,
        tuple(filter(None, answer.split(TAB))),
        () if start == NOWHERE else tuple(map(int, start.split())),
        tuple(filter(None, candidates.split(TAB))),
        tuple(map(int, support.split())),
        kind,
        start == NOWHERE,
    )


def sentences(document: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a document: its lines, or where it is one line what ends in a full stop, a question or
    an exclamation mark before white space."""
    if "\n" in document.strip():
        spans = [(found.start(), found.end()) for found in re.finditer(r"[^\n]+", document)]
    else:
        cuts = [(found.start(), found.end()) for found in _ENDS.finditer(document)]
        spans = list(zip([0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(document)], strict=True))
    return [(start, end) for start, end in spans if document[start:end].strip()]


def places_of(columns: Sequence[str]) -> dict[str, int]:
    """Which of a table's columns hold what, by their names."""
    lower = [name.strip().casefold() for name in columns]
    found = {
        column: lower.index(name)
        for column, names in NAMES.items()
        if (name := next((name for name in names if name in lower), None)) is not None
    }
    if "story" in lower and found.get("document") != lower.index("story"):
        found["story"] = lower.index("story")
    return found


def questions(table: Table, *, answered: bool = True, inside: bool = False, nowhere: bool = True) -> Table:
    """The table as one of ``COLUMNS``. By the names of its columns, else the first three are document, question and
    answer.

    ``answered``: a row without an answer is wrong. ``inside``: so is an answer that does not stand in its document.
    ``nowhere``: a document may be said to hold no answer. DataError where the table has too few columns.
    """
    if table.columns == COLUMNS:
        return table
    places = places_of(table.columns)
    needed = ("document", "question", "answer") if answered else ("document", "question")
    if not all(name in places for name in needed):
        if len(table.columns) < len(needed) or any(name in places for name in needed):
            missing = ", ".join(name for name in needed if name not in places)
            raise DataError(
                f"{table.path}: no column is called {missing}; there are {listed(table.columns)}. Name the columns "
                f"{', '.join(needed)} in a first row, or give just these in that order: --columns 1,2,3."
            )
        places = {name: place for place, name in enumerate(("document", "question", "answer")[: len(table.columns)])}

    def read(report: Report) -> Iterator[Row]:
        for row in table.rows(report):
            fields = _fields(row.fields, places)
            wrong = fault(fields, answered=answered, inside=inside, nowhere=nowhere)
            if wrong is None:
                yield Row(row.place, fields)
            else:
                report(Wrong(table.path, row.place, "question", f"{table.nested(row.place)}{wrong}", table.sign))

    return replace(table, columns=COLUMNS, read=read)


ASKED = ("document and question", "answer")

UNANSWERED = "(no answer)"
"""What stands for the answer, in words, where the document has none."""


def paired(table: Table) -> Table:
    """The table as pairs: document and question, a line feed between, and the answer."""
    whole = questions(table)

    def read(report: Report) -> Iterator[Row]:
        for row in whole.rows(report):
            one = question_of(row.fields)
            asked = " ".join(one.question.split("\n"))
            yield Row(row.place, (f"{one.document}\n{asked}", one.answer or UNANSWERED))

    return replace(whole, columns=ASKED, read=read)


def _fields(cells: Sequence[str], places: Mapping[str, int]) -> tuple[str, ...]:
    found = {column: cells[place].strip() for column, place in places.items()}
    document = found.get("document", "")
    if TAB not in found.get("candidates", ""):
        found["candidates"] = TAB.join(one.strip() for one in found.get("candidates", "").split("|") if one.strip())
    return tuple(found.get(column, document if column == "story" else "") for column in COLUMNS)


def fault(fields: Sequence[str], *, answered: bool, inside: bool = False, nowhere: bool = True) -> str | None:
    """What is wrong with a row of ``COLUMNS``, in a sentence; None where nothing is."""
    _, document, question, answer, start, candidates, support, _ = fields
    for name, text in (("document", document), ("question", question)):
        if not text.strip():
            return f"the {name} is empty. Write it, or leave the row out."
    answers = [one for one in answer.split(TAB) if one]
    if start == NOWHERE:
        return None if nowhere or not answered else _UNANSWERED
    if answered and not answers:
        return "the answer is empty. Write it, or leave the row out."
    odd = next((word for word in f"{start} {support}".split() if not word.isdecimal()), None)
    if odd is not None:
        return f"where the answer begins and what supports it are whole numbers from 0; '{odd[:40]}' was given."
    chosen = [one for one in candidates.split(TAB) if one]
    if chosen and answers and answers[0] not in chosen:
        return f"the answer '{answers[0][:60]}' is not among its candidates ({listed(chosen, 6)})."
    if any(int(word) >= len(sentences(document)) for word in support.split()):
        last = len(sentences(document))
        return f"sentence {support.split()[-1]} is said to support it; the document has {last}, counted from 0."
    return _misplaced(document, answers, [int(word) for word in start.split()], inside=inside)


UNTAUGHT = (
    "every question is said not to be answered by its document: there is nothing to learn. Give some with answers."
)

_UNANSWERED = (
    "the document is said not to answer it, and only spans may be none. Take task.answer=span, or leave such rows out: "
    "data.wrong_lines=skip."
)


def _misplaced(document: str, answers: Sequence[str], starts: Sequence[int], *, inside: bool) -> str | None:
    if starts and len(starts) != len(answers):
        return f"{len(answers)} answers and {len(starts)} places where they begin; give as many of both."
    for one, at in zip(answers, starts, strict=False):
        if document[at : at + len(one)] != one:
            return elsewhere(document, one, at)
    if inside and answers and not starts and place_of(document, answers[0], None) is None:
        return absent(document, answers[0])
    return None


def absent(document: str, answer: str) -> str:
    """What is wrong with an answer that is to be found in its document and stands there nowhere as whole words."""
    at = document.find(answer)
    if at < 0:
        return f"the answer '{answer[:60]}' does not stand in the document, and is to be found there."
    return (
        f"the answer '{answer[:60]}' stands in the document only as a part of a word ('{word_around(document, at)}'). "
        "Say where it begins (answer_start), and a span is learnt as the whole words, or leave the row out."
    )


def word_around(document: str, at: int) -> str:
    """The word that a character of a document is in, for messages."""
    before, after = re.search(r"\w*\Z", document[:at]), re.match(r"\w*", document[at:])
    return f"{before[0] if before else ''}{after[0] if after else ''}"[:60]


def elsewhere(document: str, answer: str, at: int) -> str:
    """What is wrong with an answer that does not begin ``at`` the character where it is said to."""
    found = document[at : at + len(answer)]
    there = document.find(answer)
    hint = f" It stands at character {there}." if there >= 0 else " It stands nowhere in the document."
    what = f"where '{found[:60]}' stands" if found else "behind its end"
    return f"the answer '{answer[:60]}' is said to begin at character {at}, {what}.{hint}"


def place_of(document: str, answer: str, start: int | None) -> tuple[int, int] | None:
    """The span of an answer in its document: at ``start``, else the first place where it stands as whole words, as it
    is written or else in other case; None where it stands nowhere."""
    if start is not None:
        return start, start + len(answer)
    return next(iter(places_in(document, answer)), None)


def places_in(document: str, answer: str) -> list[tuple[int, int]]:
    """The spans of every place where an answer stands as whole words: as it is written, or else in other case."""
    for flags in (re.NOFLAG, re.IGNORECASE):
        found = [one.span() for one in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", document, flags)]
        if found:
            return found
    return []
