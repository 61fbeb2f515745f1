"""A folder for each label, with the files that have it: how people keep images and recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unrolled.base.errors import DataError, UsageError
from unrolled.data.endings import kind_of
from unrolled.data.files import named_format
from unrolled.data.folders import SPLITS, split_of
from unrolled.data.opening import Report, reason
from unrolled.data.table import Columns, Row, Table, listed, select, wanted

FORMAT = "folders"
"""The format of a table that `open_labelled` makes."""


def holds_labels(folder: Path) -> bool:
    """Whether the folders in a folder, or those in its train, valid and test, hold files of KINDS; and no table, and
    none of these files, lies beside them."""
    try:
        inside = _visible(folder)
        if any(entry.is_file() and (named_format(entry) or kind_of(entry)) for entry in inside):
            return False
        return any(_labels(one) for one in _parts(folder).values())
    except OSError:
        return False


def refuse_loose(folder: Path) -> None:
    """DataError where a folder without a table has files of KINDS outside folders of labels, or has none in them."""
    try:
        inside = _visible(folder)
        files = [entry for entry in inside if entry.is_file()]
        folders = [entry.name for entry in inside if entry.is_dir()]
        labels = [label for label, held in _labels(folder).items() if held]
    except OSError:
        return
    loose = [entry for entry in files if kind_of(entry)]
    if any(map(named_format, files)) or not (loose or (folders and not files)):
        return
    what = {"image": "images", "sound": "recordings"}[str(kind_of(loose[0]))] if loose else "images or recordings"
    if labels:
        raise DataError(
            f"{folder}: {loose[0].name} lies beside the folders of labels ({listed(labels, 4)}), and so has none. Move "
            "it into one of them."
        )
    how = f"{what.capitalize()} lie in a folder for each label ({HOW[what]})"
    if loose:
        raise DataError(
            f"{folder}: {len(loose):,} {what} lie here, in no folder of a label, and no table names them. {how}: give "
            f"the folder that holds these ({folder.resolve().parent}, if this is one of them); or a table that names "
            "each file beside its label or text."
        )
    raise DataError(
        f"{folder}: there is no file in this folder, and neither images nor recordings in those in it "
        f"({listed(folders, 4)}). {how}; a table is named itself."
    )


HOW = {
    "images": "cat/1.png, dog/2.png",
    "recordings": "bell/1.wav, horn/2.wav",
    "images or recordings": "cat/1.png, dog/2.png",
}
"""How files of each kind lie, in messages."""


def open_labelled(folder: Path, columns: Columns = None) -> dict[str, Table]:
    """The splits of a folder with a folder for each label: ``cat/1.png``, ``dog/2.png``, at any depth below the label.

    The folders of labels lie in the folder itself, which is train, or in folders called train, valid, test. Columns are
    the kind of the files and ``label``. DataError where files of two kinds lie there, or a label's folder is empty.
    """
    try:
        return {split: _open(one, columns) for split, one in _parts(folder).items()}
    except OSError as error:
        raise DataError(f"{folder}: the folder cannot be read ({reason(error)}).") from None


def _visible(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))


def _files(folder: Path) -> list[Path]:
    """The files of KINDS below a folder, by their paths; hidden ones are passed over."""
    found: list[Path] = []
    for entry in _visible(folder):
        found += _files(entry) if entry.is_dir() else [entry] if kind_of(entry) else []
    return found


def _labels(folder: Path) -> dict[str, list[Path]]:
    """The files of each folder in a folder; nothing where none has any."""
    found = {entry.name: _files(entry) for entry in _visible(folder) if entry.is_dir()}
    return found if any(found.values()) else {}


def _parts(folder: Path) -> dict[str, Path]:
    """The folders called after a split that hold folders of labels; else the folder itself, as train. DataError where
    two could be the same split."""
    found: dict[str, Path] = {}
    for entry in _visible(folder):
        split = split_of(entry.name) if entry.is_dir() else None
        if split is None or not _labels(entry):
            continue
        if split in found:
            raise DataError(f"{folder}: both {found[split].name} and {entry.name} could be {split}. Name the folders.")
        found[split] = entry
    return {split: found[split] for split in SPLITS if split in found} or {"train": folder}


def _open(folder: Path, columns: Columns) -> Table:
    labels = _labels(folder)
    loose = [entry.name for entry in _visible(folder) if entry.is_file() and kind_of(entry)]
    if loose:
        raise DataError(
            f"{folder}: {loose[0]} lies beside the folders of labels, and so has none. Move it into one of them."
        )
    empty = [label for label, files in labels.items() if not files]
    if empty:
        raise DataError(f"{folder}: nothing is in the folder of the label '{empty[0]}'. Remove it, or put files in it.")
    rows = [(str(file), label) for label, files in labels.items() for file in files]
    kinds = sorted({str(kind_of(path)) for path, _ in rows})
    if len(kinds) != 1:
        raise UsageError(f"{folder}: there are several kinds of files in it ({listed(kinds)}). Give a folder of one.")
    names = (kinds[0], "label")
    indices = select(folder, names, wanted(columns))

    def read(report: Report) -> Iterator[Row]:  # noqa: ARG001
        for number, cells in enumerate(rows, start=1):
            yield Row(number, tuple(cells[index] for index in indices))

    counts = [f"{label} ({len(files):,})" for label, files in labels.items()]
    said = f"The folder that a file lies in is its label: {listed(counts, 6)}."
    below = [entry.name for entry in _visible(folder / next(iter(labels))) if entry.is_dir()]
    if len(labels) == 1 and below:
        one = next(iter(labels))
        said = (
            f"All files lie in {one}, which is their label. If the labels are {listed(below, 4)}: give {folder / one}."
        )
    mark = "\n".join(path for path, _ in rows)
    chosen = tuple(names[index] for index in indices)
    named = tuple(path for path, _ in rows)
    return Table(folder, chosen, read, FORMAT, (), [said], mark, root=f"{folder}/", named=named)
