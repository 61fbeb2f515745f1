"""Running text as documents: which rows belong to one, and where it begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from unrolled.base.errors import DataError
from unrolled.data.parts import Part, hold_out

Documents = Literal["file", "blank_line", "line"]
"""What a document is, in plain text: all of it, what stands between blank lines, or every line."""


class Piece(NamedTuple):
    """Some of a document's text. Ends of lines inside the document are part of it."""

    place: int  # the 1-based line where it stands
    text: str
    begins: bool  # a document begins here
    ends: bool  # a document ends here, and is known to


def pieces(part: Part, documents: Documents) -> Iterator[Piece]:
    """The text of a part, in order. A row of a table that is no plain text is a document, whatever ``documents`` is.

    The end of a whole file is not known to be the end of a text: somebody may have cut it there.
    """
    if not is_plain(part):
        for row in part.rows():
            text = row.fields[0].rstrip("\n")
            if text:
                yield Piece(row.place, text, True, True)
    elif documents == "file":
        for number, (place, text) in enumerate(_lines(part)):
            yield Piece(place, text, number == 0, False)
    elif documents == "line":
        begins = True
        for place, text in _lines(part):
            ends = text.endswith("\n")
            if text.strip() or not begins:
                yield Piece(place, text.removesuffix("\n"), begins, ends)
                begins = ends
    else:
        yield from _between_blanks(part)


def is_plain(part: Part) -> bool:
    """Whether the rows are lines of plain text."""
    return part.table.format in ("text", "running")


def _lines(part: Part) -> Iterator[tuple[int, str]]:
    """(place, line with its end) of plain text; a piece of a very long line has none."""
    whole = part.table.format == "text"
    for row in part.rows():
        yield row.place, row.fields[0] + "\n" if whole else row.fields[0]


def _between_blanks(part: Part) -> Iterator[Piece]:
    held: Piece | None = None
    begins = True
    for place, text in _lines(part):
        if text.strip():
            if held is not None:
                yield held
            held, begins = Piece(place, text, begins, False), False
        elif held is not None:
            yield _last(held)
            held, begins = None, True
    if held is not None:
        yield _last(held)


def _last(piece: Piece) -> Piece:
    """A document's last piece: its end of line is the document's end."""
    return piece._replace(text=piece.text.removesuffix("\n"), ends=True)


def divide(part: Part, documents: Documents, share: float, most: int) -> tuple[Part, Part, str]:
    """Training and validation text: the last ``share`` of the lines, at most ``most`` of them; a sentence about it.

    Documents that are lines or rows are chosen by a digest of their text instead, so that no two alike are on both
    sides; documents between blank lines stay whole.
    """
    if not is_plain(part) or documents == "line":
        return hold_out(part, {"valid_share": share, "valid_rows": most}, "text")
    blanks, count = [], 0
    for count, (_, text) in enumerate(_lines(part), start=1):
        if not text.strip():
            blanks.append(count)
    border = count - max(1, min(round(share * count), most))
    if documents == "blank_line":
        border = max((blank for blank in blanks if blank <= border), default=0)
    if border < 1:
        raise DataError(
            f"{part.table.path}: {count} line{'' if count == 1 else 's'}, and some must be held out for validation. "
            "Give more text, or a validation file with --valid."
        )
    said = f"No validation data given: the last {count - border:,} of {count:,} lines are held out."
    return part._replace(last=border), part._replace(first=border), said
