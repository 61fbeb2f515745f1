"""One pass over a table that counts everything the doctor asks about, in memory that does not hold the texts."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.clips import Clip, clips_of
from unrolled.data.column import MOST_ROWS, PLACES, ColumnCensus, Tally
from unrolled.data.opening import Wrong
from unrolled.data.referenced import text_columns
from unrolled.data.table import Row, Table
from unrolled.text.features import values_of

BATCH = 1000

FIRST_FEATURES = 2
"""Columns after source and target are features of the source."""

RATIO_STEPS = 20
"""Steps of one in the logarithm of a length ratio, in which ratios are counted."""


class Census:
    """What one table holds. ``train`` is the training split's census: it names the places of what that one lacks.

    ``columns`` are those of text: of a file that a cell names, what is in it is looked at elsewhere. ``separator``:
    what stands between the labels of a cell, where it is given.
    """

    def __init__(self, split: str, table: Table, train: Census | None = None, *, separator: str | None = None) -> None:
        self.split, self.table = split, table
        known: list[ColumnCensus] = train.columns if train else []
        self.texts = text_columns(table)
        self.columns: list[ColumnCensus] = [
            ColumnCensus(
                table.columns[place],
                partial(table.place, column=place),
                known[index] if index < len(known) else None,
                separator,
            )
            for index, place in enumerate(self.texts)
        ]
        self.values: list[dict[str, str]] = [{} for _ in self.columns[FIRST_FEATURES:]]  # feature → its first place
        self.rows = 0
        self.places = array("q")  # of the rows whose digests are kept
        self.identical = Tally()
        self.ratios: Counter[int] = Counter()
        self.wrong: Counter[str] = Counter()  # lines left out, by kind
        self.wrong_lines: dict[str, list[str]] = {}  # the first ones, with their messages
        self.broken: str | None = None  # what ended the reading too early
        self._extremes: list[tuple[float, int]] = []
        self._count()

    def _count(self) -> None:
        rows = self._read()
        while batch := list(itertools.islice(rows, BATCH)):
            places = [row.place for row in batch]
            fields = list(zip(*(row.fields for row in batch), strict=True))
            texts = [fields[place] for place in self.texts]
            for column, of_column in zip(self.columns, texts, strict=True):
                column.add(places, of_column)
            if len(texts) > 1:
                self._pairs(places, texts[0], texts[1])
            for values, cells in zip(self.values, texts[FIRST_FEATURES:], strict=True):
                for cell in dict.fromkeys(cells):
                    for value in values_of(cell):
                        if value.symbol not in values:
                            values[value.symbol] = self.table.place(places[cells.index(cell)])
            if self.rows < MOST_ROWS:
                self.places.extend(places)
            self.rows += len(batch)

    @property
    def names_files(self) -> bool:
        """Whether some cells are paths of files, not text."""
        return len(self.texts) < len(self.table.columns)

    @cached_property
    def clips(self) -> list[Clip]:
        """The recordings that its first column names."""
        return clips_of(self.table, 0, self.texts[0] if self.texts else None)

    def _read(self) -> Iterator[Row]:
        """The rows; wrong ones are noted, and so is an end that comes too early."""

        def note(wrong: Wrong) -> None:
            self.wrong[wrong.kind] += 1
            kept = self.wrong_lines.setdefault(wrong.kind, [])
            if len(kept) < PLACES:
                kept.append(str(wrong))

        try:
            yield from self.table.rows(note)
        except DataError as error:
            self.broken = str(error)

    def _pairs(self, places: list[int], sources: tuple[str, ...], targets: tuple[str, ...]) -> None:
        for place, source, target in zip(places, sources, targets, strict=True):
            if source == target and source:
                self.identical.add(self.table.place(place))
        full = [index for index, each in enumerate(zip(sources, targets, strict=True)) if all(each)]
        ratios = log_ratio([len(sources[index]) for index in full], [len(targets[index]) for index in full])
        steps, counts = np.unique(np.rint(ratios * RATIO_STEPS).astype(int), return_counts=True)
        self.ratios.update(dict(zip(steps.tolist(), counts.tolist(), strict=True)))
        order = np.argsort(ratios, kind="stable")
        ends = order if len(order) <= 2 * PLACES else np.concatenate([order[:PLACES], order[-PLACES:]])
        self._extremes += [(float(ratios[index]), places[full[index]]) for index in ends]
        if len(self._extremes) > 1000:
            ordered = sorted(self._extremes)
            self._extremes = ordered[:PLACES] + ordered[-PLACES:]

    def extremes(self, low: float, high: float) -> list[tuple[float, int]]:
        """(log ratio, place) of the most unequal pairs outside [low, high], the worst first."""
        middle = (low + high) / 2
        found = [each for each in self._extremes if not low <= each[0] <= high]
        return sorted(found, key=lambda each: (-abs(each[0] - middle), each[1]))[:PLACES]


def log_ratio(source: list[int], target: list[int]) -> np.ndarray:
    """ln of target by source length in characters, each plus five so that short texts weigh little: float64 [n]."""
    ratio: np.ndarray = np.log((np.asarray(target) + 5) / (np.asarray(source) + 5))
    return ratio
