"""Sequences of frames: numbers that are none, channels that differ from row to row."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.base.errors import DataError
from unrolled.data.census import Census
from unrolled.data.findings import Finding, by_cause
from unrolled.data.table import Table
from unrolled.text.frames import read_frames

FORMATS = ("ts", "npz", "frames")


def framed(table: Table) -> bool:
    """Whether the rows of ``table`` are sequences of frames."""
    return table.format in FORMATS and "frames" in table.columns


def wrong(census: Census) -> Iterator[Finding]:
    """Rows that training would refuse, with their lines; and how long and wide the others are."""
    table = census.table
    if not framed(table):
        return
    column, channels = table.columns.index("frames"), 0
    refused: list[tuple[str, str]] = []
    lengths: list[int] = []
    for row in table.rows(lambda _: None):
        try:
            length, found = read_frames(row.fields[column]).shape
            channels = channels or found
            if found != channels:
                raise DataError(f"{found} channels where the first row has {channels}.")
            lengths.append(length)
        except DataError as error:
            refused.append((table.place(row.place, column), str(error)))
    yield from by_cause("frames", census.split, refused)
    if lengths:
        span = f"{min(lengths):,}" if min(lengths) == max(lengths) else f"{min(lengths):,} to {max(lengths):,}"
        message = f"sequences of {span} frames, {channels} channel{'' if channels == 1 else 's'}."
        yield Finding("note", "frames", census.split, len(lengths), message)
