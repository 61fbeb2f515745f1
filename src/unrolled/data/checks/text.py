"""What is wrong with single lines and texts: unreadable, empty, odd characters, line ends."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.base.errors import DataError
from unrolled.data.census import Census
from unrolled.data.checks.drawings import is_drawn
from unrolled.data.checks.unknown import describe
from unrolled.data.column import MOST_ROWS, ODD, PLACES
from unrolled.data.findings import Finding, Severity
from unrolled.data.opening import survey

_WRONG = {
    "encoding": "not UTF-8",
    "half": "with half a character",
    "nul": "with a NUL character",
    "long": "too long",
    "columns": "with another number of columns",
    "json": "not a JSON object",
    "key": "without a key that is needed",
    "type": "with something else than text in it",
    "quote": "wrongly quoted",
    "drawing": "without a whole drawing",
    "story": "of a story that cannot be read",
    "question": "that cannot be answered from what the row says",
}

_ODD: dict[str, tuple[Severity, str]] = {
    "empty": ("error", "empty. Fill in the text or remove the row"),
    "return": ("warning", "with a carriage return in the middle: two lines run together? Remove it"),
    "control": ("warning", "they become symbols that nobody sees. Remove them"),
    "replacement": ("warning", "with U+FFFD, the mark of a lost character. Convert the original anew"),
    "mojibake": ("warning", "like UTF-8 read as Latin-1 ('Ã©' for 'é'). Convert the original anew"),
    "entity": ("note", "with HTML entities ('&amp;'). Put the characters that they stand for"),
    "scripts": ("note", "with Latin beside Greek or Cyrillic letters inside a word. Look-alikes?"),
    "spaces": ("note", "with white space at an end. Tokenizers of characters see it, the others do not"),
    "decomposed": ("note", "not in NFC (accents apart from their letters). The tokenizers normalise them"),
}


def wrong_lines(census: Census) -> Iterator[Finding]:
    """Lines that cannot be read, and what ends the reading of a file altogether."""
    if census.broken:
        yield Finding("error", "unreadable", census.split, 1, census.broken)
    for kind, count in census.wrong.items():
        lines, cure = (f"{count:,} lines", "Repair them.") if count > 1 else ("1 line", "Repair it.")
        message = f"{lines} {_WRONG.get(kind, kind)}, left out here. {cure}"
        yield Finding("error", kind, census.split, count, message, tuple(census.wrong_lines[kind]))
    if not census.rows and not census.broken:
        message = "there is no row that can be used."
        yield Finding("error", "no rows", census.split, 1, message, (str(census.table.path),))
    if census.rows > MOST_ROWS:
        message = f"duplicates and overlap were looked for in the first {MOST_ROWS:,} rows only."
        yield Finding("note", "many rows", census.split, census.rows, message)


def odd_texts(census: Census) -> Iterator[Finding]:
    """Empty texts and odd characters."""
    for column in census.columns:
        for kind, (severity, what) in _ODD.items():
            tally = column.odd.get(kind)
            bare = column.name == "label" and (is_drawn(census.table) or census.names_files)
            if not tally or (kind == "empty" and bare):
                continue  # a drawing needs no label, nor what may have several; where one is needed the row is wrong
            if kind == "control":
                found = sorted(each for each in column.characters if ODD[kind].match(each))
                what = f"with {', '.join(describe(each) for each in found[:PLACES])}: {what}"
            end = "" if what.endswith("?") else "."
            message = f"{tally.count:,} text{'s' if tally.count > 1 else ''} of '{column.name}' {what}{end}"
            yield Finding(severity, kind, census.split, tally.count, message, tuple(tally.places))


def line_ends(census: Census) -> Iterator[Finding]:
    """Byte order marks, and line ends of more than one kind."""
    if census.table.format in ("parquet", "datasets"):
        return
    for path in census.table.files:
        if path.suffix.lower() == ".npz":
            continue
        try:
            found = survey(path)
        except DataError:
            continue  # the reading of the rows has said so already
        if found.bom:
            message = "the file begins with a byte order mark. It is left out."
            yield Finding("note", "byte order mark", census.split, 1, message, (f"{path}:1",))
        # A quoted field of CSV keeps its own line ends.
        mixed = found.lines - found.crlf > 1 and census.table.format != "csv"
        if found.crlf and mixed:
            message = f"{found.crlf:,} of {found.lines:,} lines end in CR LF, the others in LF. The CR is left out."
            yield Finding("warning", "mixed line ends", census.split, 1, message, (str(path),))
        elif found.crlf:
            message = "the lines end in CR LF, as on Windows. The CR is left out."
            yield Finding("note", "windows line ends", census.split, 1, message, (str(path),))
