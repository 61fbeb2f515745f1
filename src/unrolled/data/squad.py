"""Questions as SQuAD nests them: data → paragraphs → a context and its questions; each is a row, by its number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.base.errors import DataError
from unrolled.data import encodings
from unrolled.data.jsonlines import Unusable, field
from unrolled.data.opening import Report, Wrong, blocks
from unrolled.data.question_lines import Given, answered, not_a_place
from unrolled.data.table import Columns, Row, Table, listed, select, wanted

COLUMNS = ("document", "question", "answer", "start")

_NESTED = re.compile(r'"(?:paragraphs|qas)"\s*:\s*\[')


class Asked(NamedTuple):
    """A question as it stands in the file: its number, from 1, where it is, its context and itself."""

    number: int
    where: str
    context: Any
    tree: Any


def open_squad(path: Path, columns: Columns = None) -> Table:
    """SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, arXiv:1606.05250; 2018, arXiv:1806.03822):

    {"data": [{"paragraphs": [{"context": …, "qas": [{"question": …, "answers": [{"text": …, "answer_start": …}],
    "is_impossible": …}]}]}]}

    Keys beside these are passed over. DataError for a file that is no such object; a question that is wrong is named
    by its number and by where it stands.
    """
    indices = select(path, COLUMNS, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for asked in _asked(path, report):
            try:
                fields = _fields(asked)
            except Unusable as problem:
                report(_wrong(path, asked.number, problem.kind, f"{asked.where}: {problem.message}"))
                continue
            yield Row(asked.number, tuple([fields[index] for index in indices]))

    places: list[str] = []

    def within(number: int) -> str:
        if not places:
            places.extend(asked.where for asked in _asked(path, lambda _: None))
        return places[number - 1]

    _articles(path)
    said = "One object with contexts and their questions: as SQuAD nests them; a question's place is its number."
    return Table(
        path, tuple(COLUMNS[index] for index in indices), read, "squad", (path,), [said], sign="#", within=within
    )


def is_squad(path: Path) -> bool:
    """Whether a file begins as a JSON object in which paragraphs or questions are nested."""
    head = next(iter(blocks(path)), b"").removeprefix(encodings.BOM).decode("utf-8", "replace")
    return head.lstrip().startswith("{") and (_NESTED.search(head) is not None or _is_bare(head))


def _is_bare(head: str) -> bool:
    """Whether a whole file is the object around the questions, and holds none of them."""
    try:
        tree = json.loads(head)
    except (ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and (tree.keys() == {"version"} or ("data" in tree and tree["data"] in ([], {})))


def _articles(path: Path) -> list[Any]:
    raw = b"".join(blocks(path))
    encodings.refuse_foreign(path, raw)
    try:
        tree = json.loads(raw.removeprefix(encodings.BOM))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {encodings.explain(path, raw, error)}") from None
    except json.JSONDecodeError as error:
        cure = "One object is expected, as SQuAD nests questions: {'data': [{'paragraphs': […]}]}."
        raise DataError(f"{path}:{error.lineno}: not JSON ({error.msg}, character {error.colno}). {cure}") from None
    except RecursionError:
        raise DataError(f"{path}: brackets nested too deep.") from None
    try:
        found = _list(tree, "data", "the file")
    except Unusable as problem:
        raise DataError(f"{path}: {problem.message}") from None
    if not found:
        raise DataError(f"{path}: no questions in 'data': the list is empty. Give some, as SQuAD nests them.")
    return found


def _asked(path: Path, report: Report) -> Iterator[Asked]:
    """Every question; a part that holds none is reported at the next one's number."""
    numbers = count(1)
    number = next(numbers)
    for at, article in enumerate(_articles(path)):
        try:
            paragraphs = _list(article, "paragraphs", f"data[{at}]")
        except Unusable as problem:
            report(_wrong(path, number, problem.kind, problem.message))
            continue
        for inner, paragraph in enumerate(paragraphs):
            where = f"data[{at}].paragraphs[{inner}]"
            try:
                found = _list(paragraph, "qas", where)
            except Unusable as problem:
                report(_wrong(path, number, problem.kind, problem.message))
                continue
            for place, tree in enumerate(found):
                name = f", id {tree['id']}" if isinstance(tree, Mapping) and tree.get("id") else ""
                yield Asked(number, f"{where}.qas[{place}]{name}", paragraph, tree)
                number = next(numbers)


def _wrong(path: Path, number: int, kind: str, message: str) -> Wrong:
    return Wrong(path, number, kind, message, "#")


def _fields(asked: Asked) -> tuple[str, ...]:
    document = field(_value(asked.context, "context", "its paragraph"), "context")
    question = field(_value(asked.tree, "question", "it"), "question")
    impossible, answers = asked.tree.get("is_impossible", False), asked.tree.get("answers")
    if not isinstance(impossible, bool):
        raise Unusable("type", f"'is_impossible' is true or false; {json.dumps(impossible)[:40]} was given.")
    if answers is None:
        answers = []
    if not isinstance(answers, list):
        raise Unusable("type", "'answers' is no list. Write a list of objects with 'text' and 'answer_start'.")
    given = [Given(*_answer(one, f"answers[{place}]")) for place, one in enumerate(answers)]
    if impossible and given:
        raise Unusable(
            "question", f"'is_impossible' is true, and the answer '{given[0].text[:60]}' is given. Remove one of both."
        )
    return document, question, *answered(document, given, nowhere=impossible)


def _answer(tree: Any, where: str) -> tuple[str, str]:
    text = field(_value(tree, "text", where), f"{where}.text")
    start = _value(tree, "answer_start", where)
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        raise Unusable("type", not_a_place(f"{where}.answer_start", json.dumps(start)))
    if not text.strip():
        raise Unusable("question", f"'{where}.text' is empty. Write it, or leave that answer out.")
    return text, str(start)


def _value(tree: Any, key: str, where: str) -> Any:
    if not isinstance(tree, Mapping):
        raise Unusable("type", f"{where} is no object with the key '{key}'.")
    if key not in tree:
        raise Unusable("key", f"{where} has no key '{key}'; it has {_keys(tree)}.")
    return tree[key]


def _list(tree: Any, key: str, where: str) -> list[Any]:
    found = _value(tree, key, where)
    if not isinstance(found, list):
        raise Unusable("type", f"'{key}' of {where} is no list.")
    return found


def _keys(tree: Mapping[str, Any]) -> str:
    names: Sequence[str] = list(tree)
    return listed(names, 6) if names else "none"
