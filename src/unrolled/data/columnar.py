"""Parquet and Arrow: tables that are stored by column, read a thousand rows at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from unrolled.base.errors import DataError, UsageError
from unrolled.data.columnar_lists import lists_of, sentence_table
from unrolled.data.jsonlines import guess_keys
from unrolled.data.opening import MAX_LINE, Report, Wrong, blocks, is_gzip
from unrolled.data.table import Columns, Row, Table, listed, select, shown, wanted

BATCH = 1000
"""Rows held at a time."""


def open_parquet(path: Path, columns: Columns = None) -> Table:
    """A Parquet file; inner fields are named with a dot (``translation.de``), class labels by their names."""
    with _refusing_damage(path), _parquet(path) as file:
        schema, count = file.schema_arrow, file.metadata.num_rows
    if count == 0:
        raise DataError(f"{path}: the table has no rows.")

    def batches(names: list[str]) -> Iterator[Any]:
        with _parquet(path) as file:
            yield from file.iter_batches(BATCH, columns=names, use_threads=False)

    return arrow_table(path, schema, batches, columns, "parquet", (path,))


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    """The open file."""
    import tempfile

    import pyarrow.parquet

    if not is_gzip(path):
        with pyarrow.parquet.ParquetFile(path, memory_map=True, pre_buffer=False) as file:
            yield file
    else:
        with tempfile.TemporaryFile() as unpacked:
            _unpack(path, unpacked)
            with pyarrow.parquet.ParquetFile(unpacked) as file:
                yield file


@contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    """DataError for everything that can be wrong with an Arrow or Parquet file."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        cause = " ".join(str(error).split()).rstrip(". ")[:200] or type(error).__name__
        raise DataError(f"{path}: the file is not whole ({cause}). Write or fetch it again.") from None


def _checked(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches, each found to be what it says it is (offsets within bounds, text in UTF-8)."""
    iterator = iter(batches)
    while True:
        with _refusing_damage(path):
            batch = next(iterator, None)
            if batch is None:
                return
            batch.validate(full=True)
        yield batch


def _unpack(path: Path, into: BinaryIO) -> None:
    for block in blocks(path):
        into.write(block)
    into.seek(0)


def arrow_table(
    path: Path,
    schema: Any,
    batches: Callable[[list[str]], Iterable[Any]],
    columns: Columns,
    format: str,  # noqa: A002
    files: tuple[Path, ...],
    mark: str = "",
) -> Table:
    """A Table over an Arrow schema and a function that reads the named top-level columns batch by batch.

    A column that holds a list of words a row makes it a table of sentences.
    """
    sentences = lists_of(schema, columns)
    if sentences is not None:
        return sentence_table(path, sentences, lambda names: _checked(path, batches(names)), files, mark)
    names = [name for field in schema for name in _names(field, "")]
    chosen = wanted(columns)
    _refuse_others(path, names, schema, chosen or [])
    if not names:
        raise DataError(
            f"{path}: no column holds text, numbers or labels. Columns: {', '.join(schema.names) or 'none'}."
        )
    taken = guess_keys(names) if chosen is None else tuple(names[index] for index in select(path, names, chosen))
    guessed = [f"Of the columns {listed(names)} these are taken: {listed(taken)}."] if chosen is None else []
    labels = _class_labels(schema)
    top = list(dict.fromkeys(_route(name, schema)[0] for name in taken))

    def read(report: Report) -> Iterator[Row]:
        place = 0
        for batch in _checked(path, batches(top)):
            cells = [_cells(batch, _route(name, schema), labels.get(name)) for name in taken]
            for fields in zip(*cells, strict=True):
                place += 1
                problem = _problem(fields, taken)
                if problem is None:
                    yield Row(place, fields)
                else:
                    report(Wrong(path, place, *problem))

    return Table(path, taken, read, format, files, guessed, mark)


def _refuse_others(path: Path, names: list[str], schema: Any, chosen: Sequence[str | int]) -> None:
    """UsageError for a column that is not there, or that cannot be text."""
    asked = [one for one in chosen if isinstance(one, str)]
    select(path, list(dict.fromkeys([*names, *schema.names])), [*asked])
    other = next((one for one in asked if one not in names), None)
    if other is not None:
        texts = f"Columns with text are {listed(names)}" if names else "No column holds text"
        raise UsageError(
            f"{path}: the column '{shown(other)}' is {schema.field(other).type}, and a text is expected. {texts}; of a "
            "table of sentences name the words and their tags, two columns of lists."
        )


def _names(field: Any, before: str) -> list[str]:
    """The names of what can be text in a column: itself, or its inner fields."""
    import pyarrow.types as types

    name = f"{before}{field.name}"
    if types.is_struct(field.type):
        return [inner for child in field.type.fields for inner in _names(child, f"{name}.")]
    unusable = types.is_nested(field.type) or types.is_null(field.type) or "binary" in str(field.type)
    return [] if unusable else [name]


def _route(name: str, schema: Any) -> tuple[str, ...]:
    return (name,) if name in schema.names else tuple(name.split("."))


def _class_labels(schema: Any) -> dict[str, list[str]]:
    """Names of numbered classes, from the note that `datasets` leaves in a schema."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {name: kind["names"] for name, kind in features.items() if kind.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _cells(batch: Any, path: tuple[str, ...], names: list[str] | None) -> list[str | None]:
    """One column of a batch as text, None where there is no value; of numbers and times then "", as in a text file."""
    import pyarrow.compute
    import pyarrow.types as types

    column = batch.column(path[0])
    for key in path[1:]:
        column = pyarrow.compute.struct_field(column, key)
    values = column.to_pylist()
    if names:
        return [names[value] if isinstance(value, int) and 0 <= value < len(names) else None for value in values]
    if values and isinstance(values[0], str):
        return values
    kind = column.type
    empty = "" if types.is_floating(kind) or types.is_integer(kind) or types.is_temporal(kind) else None
    return [empty if value is None else _text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _problem(fields: tuple[str | None, ...], names: tuple[str, ...]) -> tuple[str, str] | None:
    """(kind, message) of what makes a row unusable."""
    for field, name in zip(fields, names, strict=True):
        if field is None:
            return "type", f"'{shown(name)}' has no value where text is expected."
        if "\0" in field:
            return "nul", f"'{shown(name)}' holds a NUL character. Remove it."
        if len(field) > MAX_LINE:
            return "long", f"'{shown(name)}' has more than {MAX_LINE:,} characters. Is this one example?"
    return None
