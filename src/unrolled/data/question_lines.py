"""Questions in JSON lines: a document and a question each, and answers in one of the ways that they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.data import jsonlines
from unrolled.data.formats import head
from unrolled.data.opening import Report, read_lines
from unrolled.data.questions import COLUMNS, NAMES, NOWHERE, TAB, elsewhere
from unrolled.data.table import Columns, Row, Table, select, wanted

LOOKED_AT = 20
"""Lines by which a file is told to be one of questions."""


def open_questions(path: Path, columns: Columns = None) -> Table:
    """JSON lines with a document and a question each: ``answer`` a text, or ``answers`` as SQuAD has them
    ({"text": […], "answer_start": […]}); ``candidates`` a list."""
    head(path)
    names = COLUMNS[1:]
    indices = select(path, names, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for number, fields in jsonlines.parsed_lines(path, report, lambda text: _parsed(jsonlines.parse(text))):
            yield Row(number, tuple([fields[index] for index in indices]))

    return Table(path, tuple(names[index] for index in indices), read, "jsonl", (path,))


class Given(NamedTuple):
    """An answer as a file gives it: its text, and where it begins (a number of characters; empty: not said)."""

    text: str
    start: str


def answered(document: str, given: Sequence[Given], *, nowhere: bool) -> tuple[str, str]:
    """The cells ``answer`` and ``start`` of a row: each text once, at its first place; places are moved as white space
    before the document and before an answer is left out. Unusable for an answer that does not stand at its place."""
    if nowhere:
        return "", NOWHERE
    found: dict[str, str] = {}
    before = len(document) - len(document.lstrip())
    for place, (text, start) in enumerate(given):
        if start and not start.isdecimal():
            raise jsonlines.Unusable("type", not_a_place("answer_start", start))
        if not text.strip() and len(given) > 1:
            raise jsonlines.Unusable("question", f"answers[{place}] is empty. Write it, or leave that answer out.")
        if start.isdecimal() and not document.startswith(text, int(start)):
            raise jsonlines.Unusable("question", elsewhere(document, text, int(start)))
        kept = text.strip()
        moved = len(text) - len(text.lstrip()) - before
        if kept:
            found.setdefault(kept.replace(TAB, " "), str(int(start) + moved) if start.isdecimal() else start)
    return TAB.join(found), " ".join(filter(None, found.values()))


def not_a_place(name: str, given: str) -> str:
    """What is wrong with where an answer is said to begin."""
    return f"'{name}' is a whole number, of characters from 0; {given[:40]} was given."


def _parsed(tree: Mapping[str, Any]) -> tuple[str, ...]:
    lower = {key.casefold(): value for key, value in tree.items()}
    given: dict[str, Any] = {column: _first(lower, names) for column, names in NAMES.items()}
    document, found = given["document"], given["answer"]
    answers, starts = found, given["start"]
    if isinstance(found, Mapping):
        answers, starts = found.get("text"), found.get("answer_start")
    elif isinstance(found, list) and all(isinstance(one, Mapping) for one in found):
        answers, starts = [one.get("text") for one in found], [one.get("answer_start") for one in found]
    texts, at = _fields_of("answer", answers), _texts("answer_start", starts)
    told = [Given(text, at[place] if place < len(at) else "") for place, text in enumerate(texts)]
    nowhere = lower.get("is_impossible") is True or (isinstance(found, Mapping) and answers == [])
    return (
        TAB.join(_texts("document", document)).replace(TAB, " "),
        TAB.join(_texts("question", given["question"])).strip(),
        *answered(document if isinstance(document, str) else "", told, nowhere=nowhere),
        TAB.join(_texts("candidates", given["candidates"])),
        " ".join(_texts("support", given["support"])),
        TAB.join(_texts("kind", given["kind"])),
    )


def _first(tree: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((tree[name] for name in names if name in tree), None)


def _fields_of(name: str, value: Any) -> list[str]:
    """A text, a list of texts or nothing, as a list."""
    if value is None:
        return []
    return [jsonlines.field(one, name) for one in (value if isinstance(value, list) else [value])]


def _texts(name: str, value: Any) -> list[str]:
    """The same, without tabs and white space around."""
    return [one.replace(TAB, " ").strip() for one in _fields_of(name, value)]


def is_questions(path: Path) -> bool:
    """Whether a file's first lines are JSON objects with a document and a question, and no label."""
    lines = [text for _, text in islice(read_lines(path, lambda _: None), LOOKED_AT) if text and text.strip()]
    for text in lines:
        try:
            tree = jsonlines.parse(text)
        except jsonlines.Unusable:
            continue
        names = {key.casefold() for key in tree}
        found = all(names.intersection(NAMES[name]) for name in ("document", "question"))
        return found and not names & {"label", "class", "category"}
    return False
