"""What the doctor found, as plain data: findings with their places, and the measures of each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
"""An error must be repaired (exit code 3); a warning costs quality; a note is good to know."""


@dataclass(frozen=True)
class Finding:
    """One kind of thing found in one split. ``places`` are the first few, ``count`` is all of them."""

    severity: Severity
    kind: str
    split: str
    count: int
    message: str
    places: tuple[str, ...] = ()


PLACES = 5
"""Places that a finding names."""


def by_cause(kind: str, split: str, found: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """An error for each different message of ``found``, (place, message) of everything that training would refuse."""
    causes: dict[str, list[str]] = {}
    for place, message in found:
        causes.setdefault(message, []).append(place)
    for message, places in causes.items():
        yield Finding("error", kind, split, len(places), message, tuple(places[:PLACES]))


def percent(share: float) -> str:
    """A share for a message, to one digit where that shows anything."""
    return f"{share:.1%}" if share >= 0.0005 or share == 0 else "under 0.1%"


@dataclass(frozen=True)
class Lengths:
    """How long the texts of a column are.

    Bin i of ``histogram`` counts lengths from i * ``width`` + 1 to (i + 1) * ``width``; shorter and longer ones count
    in the first and the last.
    """

    unit: Literal["words", "characters"]
    shortest: int
    median: int
    mean: float
    percentile_99: int
    longest: int
    longest_place: str
    longest_share: float  # of all units, in the longest 1 % of the texts
    width: int
    histogram: tuple[int, ...]


@dataclass(frozen=True)
class Column:
    """Measures of one column of a split."""

    name: str
    lengths: Lengths | None  # None without rows
    characters: int  # different ones
    words: int  # different ones
    labels: dict[str, int] | None = None  # counts, most frequent first, where the column looks like classes


@dataclass(frozen=True)
class Split:
    """One table as it was read."""

    name: str
    path: str
    format: str
    rows: int
    wrong: int  # lines left out
    columns: tuple[Column, ...]
    guessed: tuple[str, ...]


@dataclass(frozen=True)
class Unknown:
    """The share of a split's symbols that a vocabulary made from train does not hold."""

    split: str
    column: str
    tokenizer: str
    share: float
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All that `unrolled check` says."""

    splits: tuple[Split, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[Unknown, ...] = ()
    ok: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ok", self.count("error") == 0)

    def count(self, severity: Severity) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def tree(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return asdict(self)
