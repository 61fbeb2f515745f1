"""A source of several inputs, a text and its features, read as one: features first, in vocabularies of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from unrolled.base.errors import DataError
from unrolled.base.protocol import UNKNOWN
from unrolled.text.tokenizer import SILENT, Encoded, Tokenizer

BETWEEN = "\t"
"""Stands between the cells of a source: it is a row of a table."""


class Featured:
    """A text through its tokenizer, and each column of ``features`` through one of its own.

    A source is a row of a table: the text, then the features, tabs between them. Its symbols are those of the features,
    column by column, and then the text's; a source whose text has no symbols has none. The text keeps its tokenizer's
    ids; those of the features follow them, the first at ``border``.
    """

    def __init__(self, text: Tokenizer, features: Sequence[Tokenizer]) -> None:
        self.text, self.features = text, tuple(features)

    @property
    def kind(self) -> str:
        return self.text.kind

    # --- rows -----------------------------------------------------------------------------------------------------

    def cells(self, line: str) -> list[str]:
        """The text and the features of a source; DataError where a column is missing. An empty line has empty cells."""
        cells = line.rsplit(BETWEEN, len(self.features))
        wanted = len(self.features) + 1
        if len(cells) < wanted and line.strip():
            raise DataError(
                f"{len(cells)} column{'' if len(cells) == 1 else 's'} where {wanted} are expected, the text and "
                f"{len(self.features)} of features, a tab between them: {line[:60]!r}."
            )
        return cells if len(cells) == wanted else [""] * wanted

    def train(self, rows: Iterable[Sequence[str]]) -> None:
        """Learn the vocabularies of the features; ``rows`` are the columns of features, read once."""
        held: list[dict[str, int]] = [{} for _ in self.features]
        for row in rows:
            for counts, cell in zip(held, row, strict=True):
                counts[cell] = counts.get(cell, 0) + 1
        for place, (tokenizer, counts) in enumerate(zip(self.features, held, strict=True), start=1):
            if not any(cell.strip() for cell in counts):
                raise DataError(
                    f"column {place} of features is empty in every row: there is nothing to learn from it. Leave it "
                    "out of task.features, or give another column."
                )
            tokenizer.train(chain.from_iterable([cell] * count for cell, count in counts.items()))

    # --- ids ------------------------------------------------------------------------------------------------------

    @property
    def border(self) -> int:
        """The first id of a feature."""
        return self.text.vocabulary_size

    @property
    def vocabulary_size(self) -> int:
        return self.border + self.features_size

    @property
    def features_size(self) -> int:
        """Ids of all features together; each column begins with the special symbols."""
        return sum(tokenizer.vocabulary_size for tokenizer in self.features)

    def _columns(self) -> Iterator[tuple[int, Tokenizer]]:
        """(first id, tokenizer) of each column of features."""
        first = self.border
        for tokenizer in self.features:
            yield first, tokenizer
            first += tokenizer.vocabulary_size

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every symbol by id."""
        return (*self.text.vocabulary, *chain.from_iterable(tokenizer.vocabulary for tokenizer in self.features))

    def unknown_features(self) -> list[int]:
        """Of each column the unknown feature, counted from ``border``."""
        return [first - self.border + UNKNOWN for first, _ in self._columns()]

    def unknown_ids(self, ids: Iterable[int]) -> list[int]:
        """For each id the one that says "unknown" in its place: the text's, or that of its column."""
        bounds = [(first, first + UNKNOWN) for first, _ in self._columns()]
        return [next((unknown for first, unknown in reversed(bounds) if one >= first), UNKNOWN) for one in ids]

    def encode(self, line: str) -> Encoded:
        return self.encode_batch([line])[0]

    def encode_batch(self, lines: Sequence[str]) -> list[Encoded]:
        """Symbols with their spans in the source as it was given; DataError for a source without its columns."""
        return [self._encoded(self.cells(line)) for line in lines]

    def _encoded(self, cells: Sequence[str]) -> Encoded:
        text, *columns = cells
        read = self.text.encode(text)
        if not read.ids:
            return read
        ids, tokens, spans = [], [], []
        place = len(text) + 1
        for (first, tokenizer), cell in zip(self._columns(), columns, strict=True):
            found = tokenizer.encode(cell)
            ids += [first + one for one in found.ids]
            tokens += found.tokens
            spans += [(place + start, place + end) for start, end in found.spans]
            place += len(cell) + 1
        return Encoded([*ids, *read.ids], [*tokens, *read.tokens], [*spans, *read.spans])

    def encode_ids(self, lines: Sequence[str]) -> list[list[int]]:
        rows = [self.cells(line) for line in lines]
        texts = self.text.encode_ids([row[0] for row in rows])
        found: list[list[int]] = [[] for _ in rows]
        for place, (first, tokenizer) in enumerate(self._columns(), start=1):
            for ids, read in zip(found, tokenizer.encode_ids([row[place] for row in rows]), strict=True):
                ids += [first + one for one in read]
        return [[*ids, *text] if text else [] for ids, text in zip(found, texts, strict=True)]

    def decode(self, ids: Iterable[int]) -> str:
        """A source that reads as ``ids``, sorted by column."""
        ids = list(ids)
        cells = [self.text.decode(one for one in ids if one < self.border)]
        for first, tokenizer in self._columns():
            last = first + tokenizer.vocabulary_size
            own = [one - first for one in ids if first <= one < last]
            cells.append(tokenizer.decode(one for one in own if one not in SILENT))
        return BETWEEN.join(cells)

    def unseen(self, line: str) -> list[str]:
        """The features of a source that no training row had, as they are written."""
        encoded = self.encode(line)
        unknown = self.unknown_ids(encoded.ids)
        return [
            line[start:end]
            for one, other, (start, end) in zip(encoded.ids, unknown, encoded.spans, strict=True)
            if one == other and one >= self.border
        ]

    # --- words ----------------------------------------------------------------------------------------------------

    def words(self, line: str) -> list[tuple[int, int]]:
        """Spans of the features, one by one, and then of the text's words."""
        return [*self.beside(line), *self.text.words(self.cells(line)[0])]

    def pieces(self, line: str) -> list[tuple[int, int]]:
        """Spans of what can stand in for an unknown symbol of the target: words of the text alone."""
        return self.text.pieces(self.cells(line)[0])

    def beside(self, line: str) -> list[tuple[int, int]]:
        """Spans of the features, one by one."""
        text, *columns = self.cells(line)
        spans, place = [], len(text) + 1
        for tokenizer, cell in zip(self.features, columns, strict=True):
            spans += [(place + start, place + end) for start, end in tokenizer.words(cell)]
            place += len(cell) + 1
        return spans

    def fingerprint(self) -> str:
        return " ".join(tokenizer.fingerprint() for tokenizer in (self.text, *self.features))


def joined(cells: Sequence[str]) -> str:
    """The source of a row's text and features; white space in features is folded, since a tab ends a cell."""
    return BETWEEN.join([cells[0], *(" ".join(cell.split()) for cell in cells[1:])])
