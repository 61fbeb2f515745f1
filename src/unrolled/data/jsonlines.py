"""JSON lines: one object a line, the columns being keys, also inside one another (``translation.de``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from unrolled.base.errors import DataError, known
from unrolled.data.formats import head
from unrolled.data.opening import Report, Wrong, read_lines, refuse
from unrolled.data.table import Columns, Row, Table, listed, select, shown, wanted

T = TypeVar("T")

PAIRS = (
    ("source", "target"),
    ("src", "tgt"),
    ("src", "trg"),
    ("input", "output"),
    ("text", "label"),
    ("sentence", "label"),
    ("en", "de"),
)
"""Keys that go together; the first pair that is there is taken."""


def _refuse_constant(name: str) -> None:
    raise Unusable("json", f"not JSON ({name} is no value there). Write a number, a text or null.")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
"""Numbers stay as they are written; nothing is rounded and no number is too long."""


def open_jsonl(path: Path, columns: Columns = None) -> Table:
    """One JSON object a line. Values are text, numbers or true/false; numbers keep their spelling."""
    lines = head(path)
    objects = _objects(path, lines)
    names = keys(objects[0])
    chosen = wanted(columns)
    guessed: list[str] = []
    if chosen is None:
        taken = guess_keys(names)
        guessed = [f"Of the keys {listed(names)} these are the columns: {listed(taken)}."]
    else:
        every = list(dict.fromkeys(name for each in objects for name in keys(each)))
        taken = tuple(every[index] for index in select(path, every, chosen))
    paths = [route(name, objects) for name in taken]

    def read(report: Report) -> Iterator[Row]:
        for number, cells in parsed_lines(path, report, lambda text: fields(parse(text), paths)):
            yield Row(number, cells)

    return Table(path, taken, read, "jsonl", (path,), guessed)


class Unusable(Exception):
    """An object that gives no row."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


def parsed_lines(path: Path, report: Report, parse_line: Callable[[str], T]) -> Iterator[tuple[int, T]]:
    """What ``parse_line`` makes of every line that is not empty, by its number; one that it finds Unusable is told."""
    for number, text in read_lines(path, report):
        if not text or not text.strip():
            continue
        try:
            found = parse_line(text)
        except Unusable as problem:
            report(Wrong(path, number, problem.kind, problem.message))
            continue
        yield number, found


def _objects(path: Path, lines: list[tuple[int, str]]) -> list[Mapping[str, Any]]:
    """The objects of the head that can be read; DataError with the first mistake where there is none."""
    found: list[Mapping[str, Any]] = []
    first: Wrong | None = None
    for number, text in lines:
        try:
            found.append(parse(text))
        except Unusable as problem:
            first = first or Wrong(path, number, problem.kind, problem.message)
    if not found and first:
        if lines[0][1].lstrip().startswith("[") and (len(lines) == 1 or "not JSON" in first.message):
            packed, plain = path.suffix.lower() == ".gz", path.name.removesuffix(".gz")
            new = f"{plain.partition('.')[0]}.lines.jsonl"
            cure = f"gunzip -c {path.name} | jq -c '.[]' > {new}" if packed else f"jq -c '.[]' {plain} > {new}"
            raise DataError(f"{path}: a JSON array where one object a line is expected. Convert it with: {cure}")
        refuse(first)
    found = [each for each in found if each] or found
    if not keys(found[0]):
        raise DataError(f'{path}: the objects have no keys with text. Write e.g. {{"source": "…", "target": "…"}}.')
    return found


def parse(text: str) -> Mapping[str, Any]:
    """A line as an object."""
    try:
        tree = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Unusable(
            "json", f"not JSON ({error.msg[0].lower()}{error.msg[1:]}, character {error.pos + 1})."
        ) from None
    except RecursionError:
        raise Unusable("json", "brackets nested too deep. Write one flat object a line.") from None
    if not isinstance(tree, dict):
        kind = "an array" if isinstance(tree, list) else "a single value"
        raise Unusable("json", f'{kind} where an object is expected, e.g. {{"source": "…", "target": "…"}}.')
    return tree


def keys(tree: Mapping[str, Any], before: str = "") -> list[str]:
    """Keys whose values can be fields, inner ones joined by a dot: ``translation.de``. Three levels at most."""
    found: list[str] = []
    for key, value in tree.items():
        if isinstance(value, Mapping) and before.count(".") < 2:
            found += keys(value, f"{before}{key}.")
        elif isinstance(value, str | bool):
            found.append(f"{before}{key}")
    return found


def guess_keys(names: Sequence[str]) -> tuple[str, ...]:
    """A well-known pair of keys, else the two of a ``translation``, else all."""
    for pair in PAIRS:
        if all(name in names for name in pair):
            return pair
    inner = [name for name in names if name.startswith("translation.")]
    return tuple(inner) if len(inner) == 2 else tuple(names)


def route(name: str, objects: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The keys to follow, one after the other; a key may itself hold a dot."""
    if any(name in each for each in objects):
        return (name,)
    return tuple(name.split("."))


def fields(tree: Mapping[str, Any], paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The wanted values as text."""
    return tuple([field(_follow(tree, path), ".".join(path)) for path in paths])


def _follow(tree: Any, path: tuple[str, ...]) -> Any:
    here = tree
    for key in path:
        if not isinstance(here, Mapping) or key not in here:
            name = shown(".".join(path))
            raise Unusable("key", f"the key '{name}' is missing. {known(name, map(shown, keys(tree)[:12]))}")
        here = here[key]
    return here


def field(value: Any, name: str) -> str:
    """A value as the text of a field; numbers arrive as they were written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    name = shown(name)
    if not isinstance(value, str):
        if isinstance(value, int | float):
            what = f"the number {value}"
        else:
            what = "null" if value is None else "an array" if isinstance(value, list) else "an object"
        raise Unusable("type", f"'{name}' is {what} where text is expected.")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            escape = f"\\u{ord(value[error.start]):04x}"
            raise Unusable(
                "half", f"'{name}' holds half a character ({escape}, a lone surrogate). Write both halves or none."
            ) from None
    if "\0" in value:
        raise Unusable("nul", f"'{name}' holds a NUL character (\\u0000). Remove it.")
    return value
