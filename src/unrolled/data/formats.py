"""One reader a text format: tab-separated, comma-separated, JSON lines, plain and parallel text."""

from __future__ import annotations

import csv
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from unrolled.base.errors import DataError
from unrolled.data.opening import MAX_LINE, Report, Wrong, read_lines, refuse
from unrolled.data.table import (
    Columns,
    Row,
    Table,
    default_names,
    heads_little,
    heads_numbers,
    heads_paths,
    is_header,
    listed,
    select,
    unique,
    wanted,
    wrong_count,
)

LONGEST = 1 << 27
"""Characters of a line of running text: a whole corpus is sometimes written as one."""

FIRST = 6
"""Rows that tell whether the first one is a header."""

HEAD = 100
"""Lines that are not blank, read to guess what a file is."""


def head(path: Path, limit: int = MAX_LINE) -> list[tuple[int, str]]:
    """The first lines that hold something, with their numbers; DataError for a file that has none.

    Lines that are wrong are passed over here (reading the rows names them), unless they are all that there is.
    """
    wrong: list[Wrong] = []
    found: list[tuple[int, str]] = []
    seen = 0
    for seen, text in read_lines(path, wrong.append, limit):
        if text is not None and text.strip():
            found.append((seen, text))
        if len(found) == HEAD or len(wrong) == HEAD:
            break
    if not found:
        if wrong:
            refuse(wrong[0])
        raise DataError(f"{path}: the file is empty." if seen == 0 else f"{path}: all {seen:,} lines are blank.")
    return found


def common(counts: Sequence[int]) -> int:
    """The most frequent number; the first one among equals."""
    return Counter(counts).most_common(1)[0][0]


def picker(indices: list[int], count: int) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """A function that takes the chosen cells of a row."""
    if indices == list(range(count)):
        return tuple
    if len(indices) == 1:
        return lambda cells: (cells[indices[0]],)
    return operator.itemgetter(*indices)


class Layout:
    """What a delimited file's head says: its columns, whether the first row names them, and which are wanted."""

    def __init__(self, path: Path, records: Sequence[Sequence[str]], count: int, columns: Columns) -> None:
        first = records[0]
        chosen = wanted(columns)
        named = [column for column in chosen or () if isinstance(column, str)]
        cells = [cell.strip() for cell in first]
        asked = bool(named) and all(name in cells for name in named)
        told = is_header(cells) or heads_numbers(records) or heads_paths(records) or heads_little(records)
        self.header = len(cells) == count and (told or asked)
        self.names = unique(cells) if self.header else default_names(count)
        self.indices = select(path, self.names, chosen)
        # Columns asked for by number alone: what stands behind them may come and go.
        self.fewest = max(self.indices) + 1 if chosen and not named else count
        self.most = count if self.fewest == count and not (chosen and not named) else 1 << 30
        self.columns = tuple(self.names[index] for index in self.indices)
        self.pick = picker(self.indices, count) if self.most == count else picker(self.indices, -1)

    def refuse_bare(self, path: Path, lines: Sequence[tuple[int, str]]) -> None:
        """DataError for a header without anything below it, be it wrong."""
        if self.header and len(lines) == 1:
            wrong: list[Wrong] = []
            for _ in read_lines(path, wrong.append):
                pass
            if not wrong:
                raise DataError(f"{path}: a header ({listed(self.names)}) and no rows below it. Give some rows.")

    def guesses(self) -> list[str]:
        """Sentences about the columns."""
        if self.header:
            found = f"The first row is a header: {listed(self.names)}."
        else:
            found = f"No header row; the columns are called {listed(self.names)}."
        return [found] if len(self.names) > 1 or self.header else [found.replace("columns are", "column is")]


def open_tsv(path: Path, columns: Columns = None) -> Table:
    """Tab-separated text. There is no quoting: a quotation mark is a quotation mark."""
    lines = head(path)
    records = [text.split("\t") for _, text in lines]
    layout = Layout(path, records[:FIRST], common(list(map(len, records))), columns)
    layout.refuse_bare(path, lines)
    skip = lines[0][0] if layout.header else 0
    guessed = layout.guesses()
    if len(layout.names) == 1 and _loose_width([text for _, text in lines]) > 1:
        guessed.append("The lines hold no tabs but commas or semicolons: if they are columns, name the file .csv.")

    def read(report: Report) -> Iterator[Row]:
        fewest, most, pick = layout.fewest, layout.most, layout.pick
        for number, text in read_lines(path, report):
            if not text or number == skip:
                continue
            cells = text.split("\t")
            if fewest <= len(cells) <= most:
                yield Row(number, pick(cells))
            elif text.strip():
                report(wrong_count(path, number, len(cells), layout.names, "tab", text))

    return Table(path, layout.columns, read, "tsv", (path,), guessed)


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


def open_csv(path: Path, columns: Columns = None) -> Table:
    """Comma- or semicolon-separated text with quotes (RFC 4180); a quoted field may hold line ends."""
    lines = head(path)
    delimiter = _delimiter([text for _, text in lines])
    records = [cells for cells in _loose([text for _, text in lines], delimiter) if cells]
    layout = Layout(path, records[:FIRST], common([len(cells) for cells in records]), columns)
    layout.refuse_bare(path, lines)
    skip = lines[0][0] if layout.header else 0

    def read(report: Report) -> Iterator[Row]:
        for number, cells in _records(path, delimiter, report):
            if number == skip or (len(cells) == 1 and not cells[0].strip()):
                continue
            if layout.fewest <= len(cells) <= layout.most:
                yield Row(number, layout.pick(cells))
            else:
                report(wrong_count(path, number, len(cells), layout.names, DELIMITERS[delimiter]))

    guessed = [f"The delimiter is the {DELIMITERS[delimiter]}.", *layout.guesses()]
    return Table(path, layout.columns, read, "csv", (path,), guessed)


def _loose(lines: list[str], delimiter: str) -> list[list[str]]:
    """Records of a file's head, as far as they go."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    records = []
    try:
        for cells in csv.reader((text + "\n" for text in lines), delimiter=delimiter):
            records.append(cells)
    except csv.Error:
        pass
    return records or [[lines[0]]]


def _delimiter(lines: list[str]) -> str:
    """The delimiter that cuts most records into the same number of columns, above one; the comma if none does."""

    def share(delimiter: str) -> float:
        counts = [len(cells) for cells in _loose(lines, delimiter)]
        usual = common(counts)
        return counts.count(usual) / len(counts) if usual > 1 else 0.0

    return max(DELIMITERS, key=share)


def _loose_width(lines: list[str]) -> int:
    """How many columns most lines have when they are read as CSV."""
    return common([len(cells) for cells in _loose(lines, _delimiter(lines))])


def _records(path: Path, delimiter: str, report: Report) -> Iterator[tuple[int, list[str]]]:
    """(line where it begins, cells) of each record; the csv module reads on by itself inside quotes."""
    begin, length = 0, 0

    def lines() -> Iterator[str]:
        nonlocal begin, length
        for number, text in read_lines(path, report):
            if text is None:
                continue
            begin = begin or number
            length += len(text) + 1
            if length > MAX_LINE:
                raise DataError(f"{path}:{begin}: {_UNCLOSED}")
            yield text + "\n"

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        begin, length = 0, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            report(Wrong(path, begin, "quote", _quoting(str(error), delimiter)))
            continue
        if cells:
            yield begin, cells


_UNCLOSED = 'a quotation mark (") opens here and is never closed. Close it, or write "" for a mark inside quotes.'


def _quoting(reason: str, delimiter: str) -> str:
    if "unexpected end" in reason:
        return _UNCLOSED
    if "expected after" in reason:
        name = DELIMITERS[delimiter]
        return f'after a closing quotation mark (") a {name} must follow. Write "" for a mark inside quotes.'
    if "new-line" in reason:
        return "a carriage return in the middle of the line. Remove it, or quote the field."
    return f"not CSV ({reason})."


def open_text(path: Path, columns: Columns = None) -> Table:
    """Plain text: one column, one example a line, blank lines too."""
    head(path, LONGEST)
    select(path, ("text",), wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for number, text in read_lines(path, report):
            if text is not None:
                yield Row(number, (text,))

    return Table(path, ("text",), read, "text", (path,))


PIECE = 1 << 12
"""Characters into which a longer line of running text is cut, at a space where there is one."""


def open_running(path: Path, columns: Columns = None) -> Table:
    """Running text: lines with their ends; a very long one in pieces, all but the last of which end in none."""
    head(path, LONGEST)
    select(path, ("text",), wanted(columns))

    def read(report: Report) -> Iterator[Row]:
        for number, text in read_lines(path, report, LONGEST):
            if text is not None:
                for piece in _pieces(text):
                    yield Row(number, (piece,))

    return Table(path, ("text",), read, "running", (path,))


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > PIECE:
        space = line.rfind(" ", start + PIECE // 2, start + PIECE)
        end = space if space > 0 else start + PIECE
        yield line[start:end]
        start = end
    yield line[start:] + "\n"


def open_parallel(source: str | Path, target: str | Path, names: tuple[str, str] = ("source", "target")) -> Table:
    """Two text files whose n-th lines belong together; DataError naming both where one has more lines."""
    left, right = Path(source), Path(target)
    for path in (left, right):
        head(path)

    def read(report: Report) -> Iterator[Row]:
        counts = [0, 0]
        for one, other in itertools.zip_longest(read_lines(left, report), read_lines(right, report)):
            if one and other:
                if one[1] is not None and other[1] is not None:
                    yield Row(one[0], (one[1], other[1]))
                counts = [one[0], one[0]]
            else:
                counts[0 if one else 1] += 1
        if counts[0] != counts[1]:
            raise DataError(_unequal(left, right, counts))

    return Table(left, names, read, "parallel", (left, right))


def _unequal(left: Path, right: Path, counts: list[int]) -> str:
    return (
        f"{left} has {counts[0]:,} lines and {right} has {counts[1]:,}. Parallel files need the same number of lines, "
        "the n-th of one belonging to the n-th of the other; an empty line keeps its place."
    )
