"""Word vectors in files of word2vec (text and binary), GloVe and fastText: read word by word, and written."""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError, UsageError
from unrolled.base.files import write_beside
from unrolled.data.opening import open_bytes

LONGEST = 10_000
"""Bytes of a word in a binary file; more without a space means that the width of the header is not the file's."""

LOOKED_AT = 1 << 16
"""Bytes by which a file is taken for text or binary."""

Numbers = NDArray[np.float32]


class Vectors(NamedTuple):
    """Words and their vectors, ``matrix`` [words, width]."""

    words: list[str]
    matrix: Numbers


class Found(NamedTuple):
    """How many of a vocabulary's words have a vector: as they are, in lower case only, not at all."""

    exact: int
    lowered: int
    missing: int


def read_vectors(path: str | Path, *, binary: bool | None = None, wanted: Collection[str] | None = None) -> Vectors:
    """The vectors of ``path`` (also gzipped), all or those of the words ``wanted``, in the file's order.

    Text has a word and its numbers a line, after a line "words width" (word2vec, fastText) or without it (GloVe); a
    word may hold spaces. ``binary`` is word2vec's binary format, None: what the file looks like.

    DataError names the line (in a binary file the word) that has another width, no number, a word for the second
    time, is cut off or is not UTF-8, and a file that holds more or fewer words than it says.
    """
    path = Path(path)
    chosen = None if wanted is None else frozenset(wanted)
    seen: dict[str, str] = {}
    rows: list[Numbers] = []
    for place, word, row in _words(path, binary):
        if chosen is not None and word not in chosen:
            continue
        if word in seen:
            raise DataError(f"{place}: the word {word!r} stands already at {seen[word]}. Remove one of the two.")
        seen[word] = place
        rows.append(row)
    return Vectors(list(seen), np.stack(rows) if rows else np.zeros((0, 0), np.float32))


def width_of(path: str | Path) -> int:
    """How many numbers the vectors of ``path`` have; DataError for a file without vectors."""
    path = Path(path)
    for _, _, row in _words(path, None):
        return len(row)
    raise DataError(f"{path}: there is no vector in it. Is it the right file?")


def write_vectors(path: str | Path, vectors: Vectors, *, kind: Literal["word2vec", "binary", "glove"]) -> Path:
    """Write a file that ``read_vectors`` gives back bit for bit; gzipped where its name ends in .gz.

    UsageError for a word that the format cannot hold: an empty one, one with a line end, in binary with a space.
    """
    words, matrix = vectors.words, np.asarray(vectors.matrix, np.float32)
    if kind not in ("word2vec", "binary", "glove"):
        raise UsageError(f"a vector file of kind {kind!r} was asked for. Known: binary, glove, word2vec.")
    if matrix.ndim != 2 or len(matrix) != len(words) or (kind == "glove" and matrix.shape[1] == 1):
        raise UsageError(
            f"{len(words)} words and an array {list(matrix.shape)}; give [words, width], GloVe width 2 up."
        )
    for word in words:
        if not word or word != word.strip(" \r\n") or "\n" in word or (" " in word and kind == "binary"):
            raise UsageError(f"the word {word!r} cannot stand in a {kind} file. Leave it out or write it otherwise.")
    parts = [] if kind == "glove" else [f"{len(words)} {matrix.shape[1]}\n".encode()]
    for word, row in zip(words, matrix, strict=True):
        if kind == "binary":
            parts.append(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")
        else:
            parts.append(f"{word} {' '.join(str(number) for number in row)}\n".encode())
    content = b"".join(parts)
    return write_beside(path, gzip.compress(content, mtime=0) if Path(path).suffix == ".gz" else content)


def fill(matrix: Numbers, symbols: Sequence[str], vectors: Vectors) -> Found:
    """Put into row i of ``matrix`` [symbols, width] the vector of symbol i or of its lower case, if any."""
    if matrix.shape != (len(symbols), vectors.matrix.shape[1]):
        raise UsageError(
            f"an embedding {list(matrix.shape)} for {len(symbols)} symbols and vectors of {vectors.matrix.shape[1]} "
            "numbers. Make the sizes equal."
        )
    rows = {word: index for index, word in enumerate(vectors.words)}
    exact = lowered = 0
    for index, symbol in enumerate(symbols):
        row = rows.get(symbol)
        exact += row is not None
        if row is None:
            row = rows.get(symbol.lower())
            lowered += row is not None
        if row is not None:
            matrix[index] = vectors.matrix[row]
    return Found(exact, lowered, len(symbols) - exact - lowered)


def _words(path: Path, binary: bool | None) -> Iterator[tuple[str, str, Numbers]]:
    """(place, word, vector), in the file's order."""
    with open_bytes(path) as raw:
        stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)
        if binary is None:
            binary = _looks_binary(stream.peek(LOOKED_AT)[:LOOKED_AT])
        content = cast(BinaryIO, stream)
        yield from _binary(path, content) if binary else _lines(path, content)


def _looks_binary(head: bytes) -> bool:
    """Whether what follows a line of two numbers is no line of text: numbers in binary are not UTF-8 for long."""
    first, _, rest = head.partition(b"\n")
    if _header(first) is None:
        return False
    try:
        rest.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end < len(rest)  # else a character is cut off there
    return b"\0" in rest


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    return (int(fields[0]), int(fields[1])) if len(fields) == 2 and all(map(bytes.isdigit, fields)) else None


def _counted(path: Path, said: int, count: int) -> None:
    if said != count:
        raise DataError(f"{path}:1: {said} words are announced, but there are {count}. Was the file cut off?")


def _lines(path: Path, stream: BinaryIO) -> Iterator[tuple[str, str, Numbers]]:
    header, width, count = None, 0, 0
    for number, raw in enumerate(stream, start=1):
        place = f"{path}:{number}"
        if number == 1 and (header := _header(raw)):
            width = header[1]
            continue
        try:
            line = raw.decode("utf-8").rstrip(" \r\n")
        except UnicodeDecodeError:
            raise DataError(f"{place}: this is not UTF-8. Is it a binary file? Then say binary=True.") from None
        width = width or line.count(" ")
        word, *numbers = line.rsplit(" ", width) if width else [line]
        if not numbers or len(numbers) != width or not word:
            raise DataError(f"{place}: {len(numbers)} numbers where {width or 'some'} are expected, after a word.")
        if " " in word and _is_number(word.rsplit(" ", 1)[1]):
            raise DataError(f"{place}: more than the {width} numbers that are expected.")
        yield place, word, _numbers(place, numbers)
        count += 1
    if header:
        _counted(path, header[0], count)


def _numbers(place: str, fields: list[str]) -> Numbers:
    try:
        row = np.array(fields, np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise DataError(f"{place}: {wrong!r} is no number.") from None
    return _finite(place, row)


def _finite(place: str, row: Numbers) -> Numbers:
    if not np.isfinite(row).all():
        raise DataError(f"{place}: a number is infinite or none (NaN).")
    return row


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _binary(path: Path, stream: BinaryIO) -> Iterator[tuple[str, str, Numbers]]:
    header = _header(stream.readline(100))
    if header is None or not header[1]:
        raise DataError(f"{path}:1: a binary file begins with a line of two numbers, words and width. Is it text?")
    for number in range(1, header[0] + 1):
        place, word = f"{path}, word {number}", bytearray()
        while (byte := stream.read(1)) not in (b" ", b"") and len(word) < LONGEST:
            word += byte
        content = stream.read(4 * header[1])
        if byte != b" " or len(content) < 4 * header[1]:
            raise DataError(f"{place}: the file ends here, or is damaged; {header[0]} words are announced.")
        try:
            text = bytes(word).lstrip(b"\n").decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{place}: the word is not UTF-8. Is the width {header[1]} right?") from None
        yield place, text, _finite(place, np.frombuffer(content, "<f4").astype(np.float32))
    if stream.read().strip(b"\n"):
        raise DataError(f"{path}: more follows after the {header[0]} words that are announced.")
