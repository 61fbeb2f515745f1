"""Sentences with tags as JSON lines: spans of a text, a text in chunks, or a list of words; as table rows, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.base.errors import DataError, UsageError
from unrolled.data import jsonlines
from unrolled.data.opening import Report, read_lines
from unrolled.data.table import Columns, Row, Table, listed, select, wanted
from unrolled.text.kinds import read_words
from unrolled.text.spans import Span, tags_of

SPANS = ("spans", "entities", "label", "labels")
"""Keys of a list of spans beside ``text``, each a mapping with start, end and label, or these three in a list."""

WORDS = ("tokens", "words")
TAGS = ("tags", "ner_tags", "pos_tags", "labels")
"""Keys of lists of words and of their tags."""

COLUMNS = ("word", "tag")

LOOKED_AT = 20
"""Lines by which a file is told."""


class Tagged(NamedTuple):
    """A line: its words, a tag each (none where the line has none), and its text with others in their place."""

    words: list[str]
    tags: list[str] | None
    write: Callable[[Sequence[str], Sequence[Span]], str]


class Unusable(jsonlines.Unusable):
    """A line that gives no sentence."""

    def __init__(self, message: str) -> None:
        super().__init__("json", message)


def tagged_kind(path: Path) -> str | None:
    """``spans``, ``chunks`` or ``tokens`` where the first lines of a file are so; None where they are not."""
    kinds = set()
    for _, text in islice(read_lines(path, lambda _: None), LOOKED_AT):
        if text and text.strip():
            kinds.add(_kind(text))
    kinds.discard("bare")  # of a text without spans the others tell
    return kinds.pop() if len(kinds) == 1 else None


def _kind(line: str) -> str | None:
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(tree, list):
        chunks = tree and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in tree)
        return "chunks" if chunks else None
    if not isinstance(tree, dict):
        return None
    if any(_all_text(tree.get(words)) for words in WORDS) and any(_all_text(tree.get(tags)) for tags in TAGS):
        return "tokens"
    if not isinstance(tree.get("text"), str):
        return None
    key = next((key for key in SPANS if isinstance(tree.get(key), list)), None)
    if key is None:
        return "bare"
    return "spans" if all(_triple(one) is not None for one in tree[key]) else None


def _all_text(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(one, str) for one in values)


def _triple(span: Any) -> tuple[int, int, str] | None:
    values = [span.get(key) for key in ("start", "end", "label")] if isinstance(span, Mapping) else span
    if not isinstance(values, list) or len(values) != 3:
        return None
    start, end, label = values
    whole = isinstance(start, int) and isinstance(end, int) and not isinstance(start, bool)
    return (start, end, label) if whole and isinstance(label, str) else None


def open_spans(path: Path, columns: Columns = None) -> Table:
    """A text and spans of characters a line: {"text": "…", "spans": [{"start": 0, "end": 3, "label": "…"}]}."""
    return _open(path, columns, "spans", "Words are cut out of the text; tags are those of its spans, in iob2.")


def open_chunks(path: Path, columns: Columns = None) -> Table:
    """A text in pieces a line, of which some are spans: [{"text": "play "}, {"text": "Blue", "entity": "album"}]."""
    return _open(path, columns, "chunks", "Words are cut out of the text; tags are those of its entities, in iob2.")


def open_tokens(path: Path, columns: Columns = None) -> Table:
    """Words and tags a line: {"tokens": ["a", "b"], "tags": ["X", "Y"]}."""
    return _open(path, columns, "tokens", "Words and tags are lists.")


def _open(path: Path, columns: Columns, kind: str, said: str) -> Table:
    indices = select(path, COLUMNS, wanted(columns))

    def tagged(text: str) -> tuple[str, str]:
        found = parse(text, kind)
        if found.tags is None:
            raise Unusable(f"there are no {kind} beside the text. Write an empty list where it has none.")
        return "\t".join(found.words), "\t".join(found.tags)

    def read(report: Report) -> Iterator[Row]:
        for number, fields in jsonlines.parsed_lines(path, report, tagged):
            if fields[0]:
                yield Row(number, tuple(fields[index] for index in indices))

    return Table(path, tuple(COLUMNS[index] for index in indices), read, kind, (path,), [said])


def parse(line: str, kind: str) -> Tagged:
    """A line of a file of ``kind``; Unusable says what is wrong with it."""
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON ({error}).") from None
    if kind == "chunks":
        return _chunks(tree, line)
    if not isinstance(tree, dict):
        raise Unusable('an object is expected, e.g. {"text": "…", "spans": []}.')
    return _tokens(tree, line) if kind == "tokens" else _spans(tree, line)


def _spans(tree: Mapping[str, Any], line: str) -> Tagged:
    text = tree.get("text")
    if not isinstance(text, str):
        raise Unusable("'text' is missing or no text.")
    key = next((key for key in SPANS if key in tree), None)
    cuts = read_words(text)
    given = [] if key is None else tree[key]
    triples = [_triple(one) for one in given] if isinstance(given, list) else [None]
    if None in triples:
        raise Unusable(f'\'{key}\' holds what is no span. Write {{"start": 0, "end": 3, "label": "…"}}.')
    tags = None if key is None else _tags(text, cuts, [one for one in triples if one is not None])
    as_list = bool(given) and isinstance(given[0], list)

    def write(_: Sequence[str], spans: Sequence[Span]) -> str:
        found: list[Any] = []
        for span in spans:
            start, end = cuts[span.start][0], cuts[span.stop - 1][1]
            found.append([start, end, span.label] if as_list else {"start": start, "end": end, "label": span.label})
        return replaced(line, key or "spans", found)

    return Tagged([text[start:end] for start, end in cuts], tags, write)


def _tags(text: str, cuts: Sequence[tuple[int, int]], triples: Sequence[tuple[int, int, str]]) -> list[str]:
    """Spans of characters as tags of words; white space at the ends of a span is no part of it."""
    starts, ends = ({cut[side]: word for word, cut in enumerate(cuts)} for side in (0, 1))
    spans = []
    for start, end, label in triples:
        if not 0 <= start < end <= len(text):
            raise Unusable(f"the span [{start}, {end}] does not lie in a text of {len(text)} characters.")
        body = text[start:end]
        first, last = start + len(body) - len(body.lstrip()), end - len(body) + len(body.rstrip())
        if not body.strip():
            raise Unusable(f"the span [{start}, {end}] holds white space alone.")
        if first not in starts or last not in ends:
            near = listed([text[one:other] for one, other in cuts if one < end and other > start])
            raise Unusable(
                f"the span {body!r} [{start}, {end}] ends inside a word: words are {near}. Move it to the word's end, "
                "or leave such lines out (data.wrong_lines=skip)."
            )
        spans.append(Span(starts[first], ends[last] + 1, label))
    try:
        return tags_of(spans, len(cuts), "iob2")
    except DataError as error:
        raise Unusable(str(error)) from None


def _chunks(tree: Any, line: str) -> Tagged:
    if not isinstance(tree, list) or not all(
        isinstance(one, dict) and isinstance(one.get("text"), str) for one in tree
    ):
        raise Unusable('a list of pieces is expected, e.g. [{"text": "play "}, {"text": "Blue", "entity": "album"}].')
    text, triples = "", []
    for one in tree:
        if one.get("entity") is not None and one["text"].strip():
            triples.append((len(text), len(text) + len(one["text"]), str(one["entity"])))
        text += one["text"]
    cuts = read_words(text)

    def write(_: Sequence[str], spans: Sequence[Span]) -> str:
        found, at = [], 0
        for span in spans:
            start, end = cuts[span.start][0], cuts[span.stop - 1][1]
            found += [{"text": text[at:start]}] if start > at else []
            found.append({"text": text[start:end], "entity": span.label})
            at = end
        found += [{"text": text[at:]}] if at < len(text) else []
        return json.dumps(found, ensure_ascii=line.isascii())

    return Tagged([text[start:end] for start, end in cuts], _tags(text, cuts, triples), write)


def _tokens(tree: Mapping[str, Any], line: str) -> Tagged:
    words = next((tree[key] for key in WORDS if _all_text(tree.get(key))), None)
    key = next((key for key in TAGS if isinstance(tree.get(key), list)), None)
    if words is None:
        raise Unusable(f"no list of words. Write it under '{WORDS[0]}'.")
    tags = None if key is None else tree[key]
    if tags is not None and (len(tags) != len(words) or not all(isinstance(tag, str) for tag in tags)):
        raise Unusable(f"{len(words)} words and {len(tags)} tags. Write one tag a word, each a text.")

    def write(written: Sequence[str], _: Sequence[Span]) -> str:
        return replaced(line, key or TAGS[0], list(written))

    return Tagged([" ".join(word.split()) or " " for word in words], tags, write)


def replaced(line: str, key: str, value: Any) -> str:
    """The object in ``line`` with another value of ``key``, every other character as it was; a new key comes last."""
    text = json.dumps(value, ensure_ascii=line.isascii())
    decoder, at, last = json.JSONDecoder(), line.index("{") + 1, 0
    while True:
        at = _past_space(line, at)
        if line[at] == "}":
            comma = ", " if last else ""
            return f"{line[: last or at]}{comma}{json.dumps(key)}: {text}{line[last or at :]}"
        if line[at] == ",":
            at = _past_space(line, at + 1)
        name, at = decoder.raw_decode(line, at)
        start = _past_space(line, _past_space(line, at) + 1)
        _, last = decoder.raw_decode(line, start)
        if name == key:
            return line[:start] + text + line[last:]
        at = last


def _past_space(line: str, at: int) -> int:
    while at < len(line) and line[at] in " \t\r\n":
        at += 1
    if at == len(line):
        raise UsageError("the line is no whole JSON object.")
    return at
