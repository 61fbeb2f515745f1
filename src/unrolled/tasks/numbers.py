"""What tasks share whose source is numbers: how rows are learnt from, held out, stored and batched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unrolled.base.errors import DataError, SettingsError, within
from unrolled.data.opening import placed
from unrolled.data.parts import Part, hold_out
from unrolled.text.base import Rows
from unrolled.text.reading import READERS, Reader

if TYPE_CHECKING:
    from unrolled.data.frames import NumberRows
    from unrolled.data.store import Store

T = TypeVar("T")


def check_read(settings: Mapping[str, Any], nouns: str, source: str, front: str) -> None:
    """SettingsError where ``nouns`` are not read as ``source`` (`READERS`) and fed to the ``front`` (`FRONTS`)."""
    for section, name, kind in (("text", "source", source), ("model", "front", front)):
        given = settings[section][name]["kind"]
        if given != kind:
            raise SettingsError(f"[{section}.{name}] '{given}' was given, and {nouns} are read by '{kind}'.")


@contextmanager
def in_source() -> Iterator[None]:
    """A SettingsError is one of ``text.source``."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(within("text.source", str(error))) from None


def learnt(part: Part, learn: Callable[[Rows], T]) -> T:
    """What ``learn`` makes of the rows of ``part``; a DataError begins with the place of the row that was read last."""
    last: list[str] = []

    def rows() -> Iterator[tuple[str, ...]]:
        for row in part.rows():
            last[:] = [part.table.place(row.place, part.pick[0])]
            yield row.fields

    try:
        return learn(rows)
    except DataError as error:
        where = last[0] if last else str(part.table.path)
        raise DataError(placed(where, error)) from None


def held_out(part: Part, data: Mapping[str, Any], noun: str) -> tuple[Part, Part, str]:
    """`hold_out`, which is by the names of files where a table names them."""
    train, valid, said = hold_out(part, data, noun)
    return train, valid, said.replace("of their text", "of their names") if part.table.root else said


def number_rows(store: Store, column: str, settings: Mapping[str, Any]) -> tuple[NumberRows, Reader]:
    """The rows of a store whose ``column`` is numbers, and what has read them; ``settings``: a run's whole tree."""
    from unrolled.data.frames import NumberRows

    reader = READERS.build(settings["text"]["source"], where="text.source")
    return NumberRows(store, column, reader.stored, reader.axes, reader.counted), reader


def files_mark(part: Part, mark: str) -> str:
    """A mark of a store that changes where a file that the rows name has been changed."""
    from unrolled.data.store import fingerprint

    if not part.table.root:
        return mark
    found = [mark]
    for path in dict.fromkeys(row.fields[0] for row in part.rows()):
        if Path(path).is_file():
            about = Path(path).stat()
            found.append(f"{about.st_size} {about.st_mtime_ns}")
    return fingerprint((), found)
