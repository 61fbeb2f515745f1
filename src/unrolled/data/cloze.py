"""Questions of the CNN and Daily Mail corpora: one a file, its entities named @entity0, @entity1, … already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from unrolled.base.errors import DataError
from unrolled.data.opening import Report, Wrong, read_lines, reason
from unrolled.data.table import Columns, Row, Table, select, wanted

COLUMNS = ("document", "question", "answer", "candidates")
SUFFIX = ".question"
TAB = "\t"


def open_question(path: Path, columns: Columns = None) -> Table:
    """One file of Hermann et al. 2015: address, document, question, answer and entities, blank lines between."""
    return _table(path, [path], columns)


def open_question_folder(folder: Path, columns: Columns = None) -> dict[str, Table]:
    """The splits of a folder with such files, or with folders of them called training, validation, test; none where
    it has none."""
    from unrolled.data.folders import split_of

    try:
        places = {"train": folder} | {
            split: entry
            for entry in sorted(folder.iterdir())
            if entry.is_dir() and (split := split_of(entry.name)) is not None
        }
        files = {split: sorted(place.glob(f"*{SUFFIX}")) for split, place in places.items()}
    except OSError as error:
        raise DataError(f"{folder}: the folder cannot be read ({reason(error)}).") from None
    return {split: _table(places[split], found, columns) for split, found in files.items() if found}


def _table(path: Path, files: Sequence[Path], columns: Columns) -> Table:
    indices = select(path, COLUMNS, wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for place, file in enumerate(files, start=1):
            fields = _fields(file, report)
            if fields is not None:
                yield Row(place, tuple([fields[index] for index in indices]))

    said = f"{len(files):,} question{'s' if len(files) > 1 else ''}, one a file, entities named already."
    return Table(path, tuple(COLUMNS[index] for index in indices), read, "question", tuple(files), [said])


def _fields(file: Path, report: Report) -> tuple[str, ...] | None:
    blocks: list[list[str]] = [[]]
    for _, text in read_lines(file, report):
        if text is not None and text.strip():
            blocks[-1].append(text.strip())
        elif blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    if len(blocks) != 5:
        what = f"{len(blocks)} parts where five are expected: address, document, question, answer, entities"
        report(Wrong(file, 1, "question", f"{what}, a blank line between. Is it a whole file of the corpus?"))
        return None
    names = [line.partition(":")[0] for line in blocks[4]]
    return " ".join(blocks[1]), " ".join(blocks[2]), " ".join(blocks[3]), TAB.join(names)
