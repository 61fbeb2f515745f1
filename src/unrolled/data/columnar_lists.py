"""Sentences in tables that are stored by column: a list of words a row, and a list of tags."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.data.opening import Report, Wrong
from unrolled.data.table import Columns, Row, Table, listed, select, wanted
from unrolled.data.tagged_json import COLUMNS, TAGS, WORDS


class Lists(NamedTuple):
    """Columns that are lists: of words, and if there are any of tags; the names of tags that are numbers."""

    words: str
    tags: str | None
    names: list[str] | None


def lists_of(schema: Any, columns: Columns) -> Lists | None:
    """The columns of words and tags in an Arrow schema; None where there is no list of words, or others are asked for.

    Two ``columns`` that are lists are words and tags, whatever their names.
    """
    import pyarrow.types as types

    def is_list(name: str, numbers: bool) -> bool:
        kind = schema.field(name).type
        if not (types.is_list(kind) or types.is_large_list(kind)):
            return False
        inner = kind.value_type
        return bool(types.is_string(inner) or types.is_large_string(inner) or (numbers and types.is_integer(inner)))

    chosen = wanted(columns)
    if chosen is not None:
        asked = [one for one in chosen if isinstance(one, str) and one in schema.names]
        if len(asked) != len(chosen) or not 1 <= len(asked) <= 2 or not is_list(asked[0], numbers=False):
            return None
        words, tags = asked[0], asked[1] if len(asked) > 1 else None
        if words not in WORDS if tags is None else not is_list(tags, numbers=True):
            return None
    else:
        found = next((name for name in WORDS if name in schema.names and is_list(name, numbers=False)), None)
        if found is None:
            return None
        words = found
        tags = next((name for name in TAGS if name in schema.names and is_list(name, numbers=True)), None)
    names = None if tags is None else _class_names(schema, tags)
    if tags is not None and names is None and types.is_integer(schema.field(tags).type.value_type):
        names = []
    return Lists(words, tags, names)


def _class_names(schema: Any, column: str) -> list[str] | None:
    """Names of numbered tags, from the note that `datasets` leaves in a schema."""
    try:
        kind = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][column]
        inner = kind[0] if isinstance(kind, list) else kind["feature"]
        return [str(name) for name in inner["names"]]
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError):
        return None


def sentence_table(
    path: Path,
    lists: Lists,
    batches: Callable[[list[str]], Iterable[Any]],
    files: tuple[Path, ...],
    mark: str = "",
) -> Table:
    """A Table of sentences, words and tags parted by tabs as every table of sentences has them."""
    names = [lists.words, *([] if lists.tags is None else [lists.tags])]
    indices = select(path, COLUMNS[: len(names)], None)

    def read(report: Report) -> Iterator[Row]:
        place = 0
        for batch in batches(names):
            for cells in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                place += 1
                problem = _problem(cells, lists)
                if problem:
                    report(Wrong(path, place, "type", problem))
                elif cells[0]:
                    words = "\t".join(" ".join(word.split()) or " " for word in cells[0])
                    tags = [] if lists.tags is None else ["\t".join(_named(tag, lists.names) for tag in cells[1])]
                    yield Row(place, (words, *tags))

    said = [f"Words and tags are the lists {listed(names)}." if lists.tags else f"Words are the list {lists.words}."]
    return Table(path, tuple(COLUMNS[index] for index in indices), read, "tokens", files, said, mark)


def _named(tag: Any, names: list[str] | None) -> str:
    return str(names[tag] if names else tag)


def _problem(cells: tuple[Any, ...], lists: Lists) -> str | None:
    """What makes a row unusable."""
    for name, cell in zip((lists.words, lists.tags), cells, strict=False):
        if cell is None or any(one is None for one in cell):
            return f"'{name}' has no value where a list of {'words' if name == lists.words else 'tags'} is expected."
    if len(cells) > 1 and len(cells[0]) != len(cells[1]):
        return f"{len(cells[0])} words and {len(cells[1])} tags. Write one tag a word."
    if len(cells) > 1 and lists.names:
        strange = next((tag for tag in cells[1] if not 0 <= tag < len(lists.names)), None)
        if strange is not None:
            return f"the tag {strange} is none of the {len(lists.names)} that '{lists.tags}' names."
    return None
