"""From a path to checked lines: every byte of a user's file passes here, in blocks; what is wrong gets its line number.

Lines end in a line feed; carriage returns before it are dropped. Nothing else ends a line: not U+2028, not a form feed.
Memory is bounded by the longest line allowed, whatever the file holds.
"""

from __future__ import annotations

import gzip
import shlex
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from unrolled.base.errors import DataError, UsageError
from unrolled.data import encodings

MAX_LINE = 500_000
"""Characters. A longer line is hardly ever one example (that is a novel): a lost line end, or not text at all."""

BLOCK = 1 << 20


class Wrong(NamedTuple):
    """A line that cannot be used. ``kind`` groups them: encoding, half, nul, long, columns, json, quote, type, key."""

    path: Path
    place: int  # 1-based line, or row where there are no lines
    kind: str
    message: str
    sign: str = ":"  # what stands before the place: "#" where it is the number of an example
    named: str = ""  # what messages say instead of path and place, where rows are files

    @property
    def where(self) -> str:
        """``"pairs.tsv:12"``, for messages."""
        return self.named or f"{self.path}{self.sign}{self.place}"

    def __str__(self) -> str:
        return placed(self.where, self.message)


def placed(where: str, message: object) -> str:
    """``message`` with the place before it, unless it begins with that already.

    >>> placed("table.tsv:3", "a.png: 1 × 1 pixels"), placed("a.png", "a.png: 1 × 1 pixels")
    ('table.tsv:3: a.png: 1 × 1 pixels', 'a.png: 1 × 1 pixels')
    """
    return str(message) if str(message).startswith(f"{where}: ") else f"{where}: {message}"


Report = Callable[[Wrong], None]
"""What happens to a wrong line: ``refuse`` raises; the doctor takes a note, and the line is left out."""


def refuse(wrong: Wrong) -> None:
    """Raise the wrong line as DataError."""
    raise DataError(str(wrong))


def from_file(given: str | Path, what: str = "data") -> Path:
    """``given`` as a path; UsageError for an empty one and for standard input, as what is read more than once."""
    if str(given) == "":
        raise UsageError("'' was given where a file is expected. Name one.")
    if str(given) == "-":
        raise UsageError(
            f"-: {what} are read more than once, and standard input cannot be. Write them to a file and name it."
        )
    return Path(given)


def regular_file(path: Path) -> Path:
    """``path`` itself, or DataError where it is missing (nearest name given), a folder, a pipe or a device."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: there is no such file. {_nearest(path)}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{str(path)!r}: the file cannot be read ({reason(error)}).") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"{path}: this is a folder where a file is expected. Name a file in it.")
    if not stat.S_ISREG(mode):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise DataError(f"{path}: this is {kind}, but data is read more than once. Write it to a file first.")
    return path


def _nearest(path: Path) -> str:
    import difflib

    folder = path.parent
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return f"Nor is there a folder '{folder}'."
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"Did you mean '{folder / near[0]}'?" if near else f"Is it in another folder than '{folder.resolve()}'?"


def reason(error: Exception) -> str:
    """Why the system refused, in its own words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def is_gzip(path: Path) -> bool:
    """Whether the file's first bytes are gzip's; DataError where the name says so and the bytes do not."""
    head = first_bytes(path)
    if head[:2] == b"\x1f\x8b":
        return True
    if path.suffix.lower() == ".gz" and head:
        raise DataError(
            f"{path}: the name ends in .gz but the content is not gzip. Rename it to '{path.with_suffix('').name}'."
        )
    return False


def first_bytes(path: Path, count: int = 16) -> bytes:
    """The raw beginning of a regular file."""
    try:
        with regular_file(path).open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({reason(error)}).") from None


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The file's content as a binary stream, unpacked where it is gzip; DataError instead of every system error."""
    packed = is_gzip(path)
    try:
        with gzip.open(path) if packed else path.open("rb", buffering=0) as stream:
            yield stream
    except EOFError:
        raise DataError(
            f"{path}: the gzip file ends too early. Was the download or copy cut off? Fetch it again."
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is damaged ({reason(error)}). Fetch or pack it again.") from None
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({reason(error)}).") from None


def blocks(path: Path) -> Iterator[bytes]:
    """The unpacked content in pieces of about a megabyte, with no regard to lines."""
    with open_bytes(path) as stream:
        while block := stream.read(BLOCK):
            yield block


def read_lines(path: Path, report: Report = refuse, limit: int = MAX_LINE) -> Iterator[tuple[int, str | None]]:
    """(1-based number, text without its line end) of every line; a line that ``report`` accepted as wrong is None.

    UTF-8 alone is read; a byte order mark at the beginning is dropped. A line is wrong that is not UTF-8, holds a NUL
    or is longer than ``limit`` characters. DataError for other encodings, known binary formats and unreadable files.
    """
    number = 0
    with open_bytes(path) as stream:
        for block in _whole_lines(path, stream, 4 * limit):
            if number == 0:
                encodings.refuse_foreign(path, block)
                block = block.removeprefix(encodings.BOM)
            for text in _texts(path, block, number, report, limit):
                number += 1
                yield number, text


def _whole_lines(path: Path, stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Blocks that end at a line end, which is left out. A line above ``most`` bytes is cut after ``most + 1``."""
    carry, fed = b"", False
    while block := stream.read(BLOCK):
        whole, feed, rest = block.rpartition(b"\n")
        if feed:
            if len(carry) <= most:
                yield carry + whole
            else:
                yield carry
                if b"\n" in whole:
                    yield whole[whole.index(b"\n") + 1 :]
            carry, fed = rest, True
        elif len(carry) <= most:
            carry = (carry + block)[: most + 1]
    if carry and not fed and b"\r" in carry.rstrip(b"\r"):
        old, new = shlex.quote(path.name), shlex.quote(f"{path.stem}.lines{path.suffix}")
        cure = f"Convert them with: tr '\\r' '\\n' < {old} > {new}"
        raise DataError(f"{path}: the lines end in a carriage return alone, as on old Macintoshes. {cure}")
    if carry:
        yield carry


def _texts(path: Path, block: bytes, before: int, report: Report, limit: int) -> Iterable[str | None]:
    """The lines of a block, all at once where nothing is wrong, one by one otherwise."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        lines = text.split("\n")
        if "\r" in text:
            lines = [line.rstrip("\r") for line in lines]
        if len(text) <= limit or max(map(len, lines)) <= limit:
            return lines
    return (_text(path, raw, before + index, report, limit) for index, raw in enumerate(block.split(b"\n"), start=1))


def _text(path: Path, raw: bytes, number: int, report: Report, limit: int) -> str | None:
    if len(raw) > 4 * limit:
        report(Wrong(path, number, "long", _too_long(limit)))
        return None
    try:
        text = raw.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        report(Wrong(path, number, "encoding", encodings.explain(path, raw, error)))
        return None
    if len(text) > limit:
        report(Wrong(path, number, "long", _too_long(limit)))
        return None
    if "\0" in text:
        at = text.index("\0") + 1
        report(Wrong(path, number, "nul", f"a NUL character (at character {at}). Is this a text file?"))
        return None
    return text


def _too_long(limit: int) -> str:
    return f"a line of more than {limit:,} characters. Is a line end missing, or is this not a text file?"


class Survey(NamedTuple):
    """How a file's lines end, counted over its bytes; the places are 1-based lines, 0 where there is none."""

    size: int  # unpacked bytes
    lines: int
    crlf: int
    lone_returns: int
    first_lone_return: int
    bom: bool
    ends_in_newline: bool


def survey(path: Path) -> Survey:
    """Count a file's line ends, in one pass over its bytes."""
    size = feeds = crlf = lone = first_lone = 0
    bom, tail = False, b""
    for block in blocks(path):
        bom = bom or (size == 0 and block.startswith(encodings.BOM))
        size += len(block)
        if tail == b"\r":
            block = tail + block
        tail = block[-1:]
        whole = block[:-1] if tail == b"\r" else block
        pairs, returns = whole.count(b"\r\n"), whole.count(b"\r")
        if returns > pairs and not first_lone:
            first_lone = feeds + 1 + whole.count(b"\n", 0, _lone(whole))
        crlf, lone, feeds = crlf + pairs, lone + returns - pairs, feeds + whole.count(b"\n")
    if tail == b"\r":
        lone += 1
        first_lone = first_lone or feeds + 1
    return Survey(size, feeds + (tail not in (b"", b"\n")), crlf, lone, first_lone, bom, tail in (b"", b"\n"))


def _lone(block: bytes) -> int:
    at = block.find(b"\r")
    while block[at + 1 : at + 2] == b"\n":
        at = block.find(b"\r", at + 1)
    return at
