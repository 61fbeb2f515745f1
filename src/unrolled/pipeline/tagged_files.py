"""The sentences of a file that is to be tagged, and how each is written back: as it was, with other tags."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.data import conll
from unrolled.data.files import guess_format, open_file
from unrolled.data.lines import lines_of
from unrolled.data.opening import from_file, open_bytes, regular_file
from unrolled.data.sentences import SENTENCES
from unrolled.data.tagged_json import Unusable, parse
from unrolled.tasks.tag import Tag
from unrolled.text.kinds import read_words
from unrolled.text.spans import Span

Write = Callable[[Sequence[str], Sequence[Span]], str]
"""Makes a text of a sentence's tags, or of the spans that they write."""


class Piece(NamedTuple):
    """A sentence, or what stands between two (then without words)."""

    words: list[str]
    write: Write  # its text with these tags and the spans that they write


def pieces(file: str, task: Tag, *, spans: bool, spaces: bool = False) -> Iterator[Piece]:
    """What ``file`` (``-``: lines of standard input) holds, in order: written back with the same tags it is the file.

    A CoNLL or CoNLL-U file keeps all but its column of tags, JSON lines all but their spans or tags (``spans``: whether
    the tags write some). A row of Parquet becomes a JSON line of words and tags. Of plain lines the words are cut out,
    at white space alone with ``spaces``, and each is written as ``word/tag``.
    """
    kind = "text" if file == "-" else guess_format(regular_file(from_file(file)))[0]
    if kind in ("conll", "conllu"):
        yield from _conll(Path(file), kind, task)
    elif kind in SENTENCES:
        if kind != "tokens" and not spans:
            raise UsageError(f"{file}: holds spans of words, and this model gives each word its own tag.")
        yield from _json(Path(file), kind)
    elif kind == "parquet":
        yield from _parquet(Path(file))
    elif kind in ("text", "tsv"):
        for line in lines_of(file):
            words = line.split() if spaces else [line[start:stop] for start, stop in read_words(line)]
            yield Piece(words, partial(_line, words))
    else:
        raise DataError(f"{file}: {kind} is no file of sentences. Give CoNLL, CoNLL-U, or a sentence a line.")


def _line(words: Sequence[str], tags: Sequence[str], _: Sequence[Span]) -> str:
    return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)) + "\n"


def _conll(path: Path, kind: str, task: Tag) -> Iterator[Piece]:
    columns = open_file(path, format=kind).columns
    places = (0,) if len(columns) == 1 else task.named(columns)
    if places is None:
        raise SettingsError(f"{path}: no column of words among {columns}.")
    for sentence in conll.sentences(path, universal=kind == "conllu"):
        words = [row[places[0]] for row in sentence.rows()]
        write = sentence.appended if len(columns) == 1 else partial(sentence.replaced, places[-1] + 1)
        yield Piece(words, partial(_tags_only, write))


def _tags_only(write: Callable[[Sequence[str]], str], tags: Sequence[str], _: Sequence[Span]) -> str:
    return write(tags)


def _parquet(path: Path) -> Iterator[Piece]:
    table = open_file(path, format="parquet")
    if table.format != "tokens":
        raise DataError(f"{path}: no column holds a list of words. Call it tokens.")
    for row in table.rows():
        words = row.fields[0].split("\t")
        yield Piece(words, partial(_as_json, words))


def _as_json(words: Sequence[str], tags: Sequence[str], _: Sequence[Span]) -> str:
    return json.dumps({"tokens": list(words), "tags": list(tags)}, ensure_ascii=False) + "\n"


def _json(path: Path, kind: str) -> Iterator[Piece]:
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                line = raw.decode("utf-8")
                body = line.strip("\ufeff \t\r\n")
                if body:
                    found, at = parse(body, kind), line.index(body)
                    yield Piece(found.words, partial(_between, line[:at], found.write, line[at + len(body) :]))
                else:
                    yield Piece([], partial(_between, line, _nothing, ""))
            except (UnicodeDecodeError, Unusable) as error:
                raise DataError(f"{path}:{number}: {error}") from None


def _between(before: str, write: Write, after: str, tags: Sequence[str], spans: Sequence[Span]) -> str:
    return before + write(tags, spans) + after


def _nothing(tags: Sequence[str], spans: Sequence[Span]) -> str:  # noqa: ARG001
    return ""
