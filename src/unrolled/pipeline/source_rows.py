"""What is predicted from: plain lines, or where the task has features, rows of a table without the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.base.errors import DataError, SettingsError
from unrolled.data.files import named_format
from unrolled.data.lines import lines_of
from unrolled.data.readers import open_table
from unrolled.data.table import default_names, is_header, listed
from unrolled.tasks.feature_columns import Column, sources_of
from unrolled.text.featured import joined

if TYPE_CHECKING:
    from unrolled.tasks.translate import Translate


def source_lines(file: str, task: Translate) -> Iterator[str]:
    """The sources in ``file`` (``-``: standard input), one a line; an empty line is an empty source.

    With features each line has the columns of the training table, or those without the target, tabs between them; a
    first line that names its columns may have them in any order. So may a CSV, JSON lines or Parquet file.
    DataError for a line that lacks a column.
    """
    if not task.features:
        yield from lines_of(file)
        return
    if file != "-" and named_format(Path(file)) not in (None, "tsv"):
        table = open_table(file)
        chosen = _places(task.features, table.columns, file, named=True)
        for row in table.rows():
            yield joined([row.fields[place] for place in chosen])
        return
    places: tuple[int, ...] = ()
    names: tuple[str, ...] = task.columns[:-1]
    for number, line in enumerate(lines_of(file), start=1):
        cells = line.split("\t")
        where = f"{'standard input' if file == '-' else file}:{number}"
        if not line.strip():
            yield ""
            continue
        if not places and len(cells) >= len(names):
            named = _names_columns(task.features, cells)
            places = _places(task.features, cells if named else default_names(len(cells)), where, named=named)
            names = tuple(cells) if named else task.columns if len(cells) == len(task.columns) else names
            if named:
                continue
        if len(cells) != len(names):
            raise DataError(
                f"{where}: {len(cells)} column{'' if len(cells) == 1 else 's'} where {len(names)} are expected "
                f"({listed(names)}). Columns are separated by one tab."
            )
        yield joined([cells[place] for place in places])


def _names_columns(features: Sequence[Column], cells: Sequence[str]) -> bool:
    """Whether a first line is a header."""
    known = {cell.strip().casefold() for cell in cells}
    names = [one.strip().casefold() for one in features if isinstance(one, str)]
    return is_header(cells) or (bool(names) and all(name in known for name in names))


def _places(features: Sequence[Column], columns: Sequence[str], where: str, *, named: bool) -> tuple[int, ...]:
    try:
        return sources_of(features, columns, named=named)
    except SettingsError as error:
        raise DataError(
            f"{where}: the columns {listed(columns)} are not those that the model reads. {error} "
            "Give the columns of the training table, their names in the first line, or the text and its features alone."
        ) from None
