"""The rows that a run takes of a table: chosen columns, and of a table that is divided, one side of the border."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.opening import Report, Wrong, refuse
from unrolled.data.table import Row, Table


class Part(NamedTuple):
    """Some rows of a table: those whose first field falls in [low, high) of a digest's range, and whose number, from 0,
    in [first, last)."""

    table: Table
    pick: tuple[int, ...]  # which fields, in the task's order
    low: float = 0.0
    high: float = 1.0
    wrong_lines: Literal["refuse", "skip"] = "refuse"
    first: int = 0
    last: int | None = None

    @property
    def report(self) -> Report:
        """What happens to a wrong line."""
        return refuse if self.wrong_lines == "refuse" else _leave_out

    def rows(self) -> Iterator[Row]:
        whole = (self.low, self.high) == (0.0, 1.0)
        for row in itertools.islice(self.table.rows(self.report), self.first, self.last):
            fields = tuple(row.fields[index] for index in self.pick)
            if whole or self.low <= self.share(fields[0]) < self.high:
                yield Row(row.place, fields)

    def share(self, field: str) -> float:
        """`share_of` a first field; of a path, wherever the folder lies."""
        return share_of(field.removeprefix(self.table.root))

    def choice(self) -> str:
        """What tells these rows from others of the same table, for a fingerprint."""
        return repr((self.pick, self.low, self.high, self.wrong_lines, self.first, self.last))


def _leave_out(wrong: Wrong) -> None:
    """A wrong line is counted when the table is opened; here it is only passed over."""


def share_of(source: str) -> float:
    """Where a text falls in [0, 1): the same for the same text, whatever file it stands in."""
    return int.from_bytes(hashlib.blake2b(source.encode("utf-8", "replace"), digest_size=6).digest(), "big") / 2**48


def hold_out(part: Part, data: Mapping[str, Any], noun: str) -> tuple[Part, Part, str]:
    """A training and a validation part that share no first field, and a sentence; ``data``: the section of that name.

    The latter has ``valid_share`` of all different ones, at least one and at most ``valid_rows``. ``noun`` is what a
    first field is called.
    """
    share, most = data["valid_share"], data["valid_rows"]
    enough = math.ceil(min((most + 1) / share, 1e15)) + 1  # with so many, ``most`` decides, not ``share``
    places = smallest((part.share(row.fields[0]) for row in part.rows()), enough)
    if len(places) < 2:
        raise DataError(
            f"{part.table.path}: {len(places)} {noun}{'' if len(places) == 1 else 's'}, and some must be held "
            "out for validation. Give more data, or a validation file with --valid."
        )
    held = max(1, min(round(share * len(places)), most, len(places) - 1))
    border = float(places[held])
    are = f"{noun} is" if held == 1 else f"{noun}s are"
    said = f"No validation data given: {held:,} {are} held out, chosen by a digest of their text."
    return part._replace(low=border), part._replace(high=border), said


def smallest(numbers: Iterator[float], most: int) -> np.ndarray:
    """The different numbers in order, or the ``most`` smallest of them; a few more than that are held."""
    found = np.empty(0, dtype=np.float64)
    while len(block := np.fromiter(itertools.islice(numbers, 1 << 14), dtype=np.float64)):
        found = np.unique(np.concatenate([found, block]))[:most]
    return found
