"""The user's data as a table: which format it is follows from the name and the first bytes, and is said aloud."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unrolled.base.errors import UsageError, known
from unrolled.data.formats import head, open_csv, open_parallel, open_text, open_tsv
from unrolled.data.jsonlines import open_jsonl
from unrolled.data.opening import first_bytes, regular_file
from unrolled.data.table import Columns, Row, Table

__all__ = ["FORMATS", "Columns", "Row", "Table", "open_parallel", "open_table"]

FORMATS: dict[str, Callable[[Path, Columns], Table]] = {
    "tsv": open_tsv,
    "csv": open_csv,
    "jsonl": open_jsonl,
    "text": open_text,
}

SUFFIXES = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


def open_table(path: str | Path, *, columns: Columns = None, format: str | None = None) -> Table:  # noqa: A002
    """The table in a file; ``columns`` picks by name or 1-based number, in the given order, and None takes all.

    ``format`` is one of FORMATS; None goes by the name (also with .gz behind it), then by the first lines. Nothing but
    the head is read here. DataError for data that cannot be read, UsageError for a column or format that is not there.
    """
    file = regular_file(Path(path))
    guessed: list[str] = []
    if format is None:
        format, guessed = guess_format(file)  # noqa: A001
    elif format not in FORMATS:
        raise UsageError(f"no format is called '{format}'. {known(format, FORMATS)}")
    table = FORMATS[format](file, columns)
    table.guessed[:0] = guessed
    return table


def guess_format(path: Path) -> tuple[str, list[str]]:
    """(format, what to say about it) of a file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]], []
    if first_bytes(path).startswith(b"PAR1"):
        return "parquet", ["The content is Parquet."]
    lines = [text for _, text in head(path)]
    if all(text.lstrip().startswith("{") for text in lines):
        return "jsonl", ["Each line begins with '{': JSON lines."]
    if sum("\t" in text for text in lines) * 2 > len(lines):
        return "tsv", ["The lines hold tabs: tab-separated."]
    return "text", ["The lines hold no tabs: plain text, one example a line."]
