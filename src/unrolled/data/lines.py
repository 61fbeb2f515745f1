"""Plain lines for prediction, from a file or from standard input: every line counts, empty ones too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from unrolled.base.errors import DataError
from unrolled.data.encodings import BOM
from unrolled.data.opening import MAX_LINE, from_file, read_lines


def lines_of(path: str | Path) -> Iterator[str]:
    """The lines of a text file (also gzipped), or of standard input for ``"-"``, one by one.

    DataError names the line that is not UTF-8, holds a NUL or is longer than 500,000 characters.
    """
    if str(path) == "-":
        yield from _standard_input()
        return
    for _, text in read_lines(from_file(path)):
        yield text or ""


def _standard_input() -> Iterator[str]:
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        if number == 1:
            raw = raw.removeprefix(BOM)
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"standard input:{number}: not UTF-8 (byte {error.start + 1}). Convert it first.") from None
        if "\0" in text:
            raise DataError(f"standard input:{number}: a NUL character. Is this text?")
        if len(text) > MAX_LINE:
            raise DataError(f"standard input:{number}: a line of more than {MAX_LINE:,} characters.")
        yield text
