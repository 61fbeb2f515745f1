"""The user's data as tables, whatever it is given as: a file, parallel files, a folder, a name on the hub."""

from __future__ import annotations

from pathlib import Path

from unrolled.base.errors import DataError
from unrolled.data.cloze import open_question_folder
from unrolled.data.files import FORMATS, named_format, open_file
from unrolled.data.folders import open_folder
from unrolled.data.formats import open_parallel
from unrolled.data.opening import from_file, reason
from unrolled.data.strokes import open_points, parts_in
from unrolled.data.table import Columns, Row, Table, shown

__all__ = ["FORMATS", "Columns", "Row", "Table", "open_parallel", "open_table", "splits"]


def open_table(path: str | Path, *, columns: Columns = None, format: str | None = None) -> Table:  # noqa: A002
    """The table in a file; ``columns`` picks by name or 1-based number, in the given order, and None takes all.

    ``format`` is one of FORMATS; None goes by the name (also with .gz behind it), then by the first lines. Nothing but
    the head is read here. A folder or a name on the hub gives its train split. DataError for data that cannot be read,
    UsageError for a column or format that is not there.
    """
    if format is None:
        found = splits(path, columns=columns)
        split = next(iter(found))
        if len(found) > 1:
            found[split].guessed.append(f"Taken is {split}, of {', '.join(found)}.")
        return found[split]
    return open_file(from_file(path), columns, format)


def splits(path: str | Path, *, columns: Columns = None) -> dict[str, Table]:
    """All that ``path`` holds, as train, valid and test (those that are there); a single file is train.

    A path may be a file, a folder (files called train, valid, test; parallel pairs of them; images or recordings with a
    text beside each, or in a folder for each label; a folder saved by the `datasets` library; a local copy of a hub
    repository) or ``owner/name[:config]`` on the Hugging Face hub.
    """
    from unrolled.data import hub, label_folders, referenced

    here = from_file(path)
    try:
        folder = here.is_dir()
        name = not folder and hub.is_hub_name(str(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{shown(str(path))}: this cannot be a path ({reason(error)}).") from None
    if name:
        return hub.open_hub(str(path), columns)
    if not folder:
        beside = parts_in(here) if named_format(here) == "npz" else []
        return {split: open_points(here, columns, split) for split in beside} or {"train": open_file(here, columns)}
    if hub.is_saved_folder(here):
        return hub.open_saved(here, columns)
    if hub.is_repository(here):
        return hub.open_repository(here, columns)
    if referenced.holds_files(here):
        return referenced.open_beside(here, columns)
    if label_folders.holds_labels(here):
        return label_folders.open_labelled(here, columns)
    questions = open_question_folder(here, columns)
    if questions:
        return questions
    label_folders.refuse_loose(here)
    return open_folder(here, columns)
