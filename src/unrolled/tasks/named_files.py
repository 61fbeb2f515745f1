"""Tables that name files in one column and have labels in another: which is which, and rows that lack something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.settings import Tree
from unrolled.data.endings import KINDS
from unrolled.data.label_folders import FORMAT
from unrolled.data.opening import Report, Wrong
from unrolled.data.referenced import column_of, resolved
from unrolled.data.table import Row, Table, arranged, listed
from unrolled.tasks.label_columns import label_by_looks, label_column, looks_of

TEXTS = (
    "caption", "captions", "text", "description", "sentence", "target", "transcript", "transcription", "words",
)  # fmt: skip
"""What columns are called that hold texts of files, however short they are; compared in lower case."""

NOUNS = {"image": "images", "sound": "recordings"}
"""What files of each kind are called."""


def labels_beside(table: Table, kind: str) -> int | None:
    """The column of labels of a table that names files of that ``kind`` in another: by its name, else by few short
    values that come again and again; None where the table names none, or has texts of them."""
    files = column_of(table, kind)
    if files is None or len(table.columns) < 2:
        return None
    if table.format == FORMAT:
        return 1 - files
    named = label_column(table.columns)
    if any(name.strip().casefold() in TEXTS for name in table.columns):
        return None
    found = label_by_looks(looks_of(table)) if named is None else named
    return None if found == files else found


def recognised(table: Table, kind: str) -> str | None:
    """A sentence about a table that names files of that ``kind`` and has labels of them; None for any other."""
    label = labels_beside(table, kind)
    if label is None:
        return None
    if table.format == FORMAT:
        return f"{table.path}: folders of {NOUNS[kind]}, one for each label."
    values = [value for value, _ in looks_of(table)[label].most_common()]
    files = table.columns[column_of(table, kind) or 0]
    return (
        f"{table.path}: the column '{files}' names {NOUNS[kind]} and '{table.columns[label]}' has {len(values)} "
        f"different short value{'' if len(values) == 1 else 's'} ({listed(values, 4)})."
    )


def concluded(table: Table, kind: str) -> tuple[Tree, list[str]]:
    """The setting ``task.label``, where labels are told by their looks among other columns, and a sentence."""
    if table.format == FORMAT or len(table.columns) < 3 or label_column(table.columns) is not None:
        return {}, []
    found = labels_beside(table, kind)
    if found is None:
        return {}, []
    return {"task": {"label": found + 1}}, [f"The labels are taken from column {found + 1} (task.label)."]


def labelled(table: Table, kind: str, label: str | int | None, *, bare: bool = False) -> Table:
    """The table with the paths of its files first, as seen from here, and their labels second, where it has some; rows
    without one are wrong, unless ``bare`` ones are taken. ``label``: the column of the labels, by name or 1-based
    number; None, or one that is not there: the one that looks so, else the first beside the files. DataError where no
    column names files of that ``kind``."""
    columns = (kind, "label")
    if table.format == FORMAT or (table.columns == columns and table.root):
        return table
    files = column_of(table, kind)
    if files is None:
        raise DataError(
            f"{table.path}: no column names {NOUNS[kind]} ({', '.join(KINDS[kind][:3])}, …) in every row. Name the "
            f"file of each in one of its columns ({', '.join(table.columns)})."
        )
    found = resolved(table, files)
    if len(table.columns) == 1:
        return arranged(found, [files], f"The column names {NOUNS[kind]}.", columns[:1])
    place = _label(table, kind, files, label)
    said = (
        f"{NOUNS[kind].capitalize()} are named in '{table.columns[files]}', labels stand in '{table.columns[place]}'."
    )
    chosen = arranged(found, [files, place], said, columns)
    return chosen if bare else full(chosen, "label")


def refuse_label(table: Table, kind: str, label: str | int | None) -> None:
    """SettingsError where the column ``label`` that was asked for is not one of the table beside its files."""
    files = column_of(table, kind)
    if label is None or files is None:
        return
    if table.format == FORMAT:
        raise SettingsError(
            f"[task.label] {label!r} was given, and {table.path} is a folder of labels: it has no columns. "
            "Leave it out."
        )
    others = [place for place in range(len(table.columns)) if place != files]
    if label not in [table.columns[place] for place in others] and label not in [place + 1 for place in others]:
        beside = f"the columns beside the files are {_others(table.columns, files)}" if others else "it has none"
        raise SettingsError(f"[task.label] {label!r} was given, and of {table.path} {beside}.")


def _label(table: Table, kind: str, files: int, label: str | int | None) -> int:
    columns = table.columns
    if isinstance(label, str) and label in columns:
        return columns.index(label)
    if isinstance(label, int) and label <= len(columns) and label - 1 != files:
        return label - 1
    found = label_column(columns)
    found = labels_beside(table, kind) if found is None else found
    return found if found is not None and found != files else 1 - min(files, 1)


def _others(columns: Sequence[str], files: int) -> str:
    return listed([name for place, name in enumerate(columns) if place != files])


def full(table: Table, what: str) -> Table:
    """The table, in which a row without a second field is wrong; ``what``: what that field is called."""

    def read(report: Report) -> Iterator[Row]:
        for row in table.rows(report):
            if row.fields[1].strip():
                yield row
            else:
                report(
                    Wrong(
                        table.path,
                        row.place,
                        what,
                        f"the {what} of {row.fields[0]} is empty. Write one, or leave the row out.",
                    )
                )

    return replace(table, read=read)


def looked_at(table: Table, kind: str, check: Callable[[str], object]) -> Table:
    """The table, in which a row is wrong whose file ``check`` refuses by its head; each file is looked at once."""
    seen: dict[str, str] = {}

    def wrong(path: str) -> str:
        try:
            check(path)
        except DataError as error:
            return str(error)
        return ""

    def read(report: Report) -> Iterator[Row]:
        for row in table.rows(report):
            path = row.fields[0]
            if path not in seen:
                seen[path] = wrong(path)
            if seen[path]:
                named = table.place(row.place) if table.named else ""
                report(Wrong(table.path, row.place, kind, seen[path], named=named))
            else:
                yield row

    return replace(table, read=read)
