"""Sequences of frames: numbers that are none, channels that differ from row to row."""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.base.errors import DataError
from unrolled.data.census import Census
from unrolled.data.findings import Finding
from unrolled.text.frames import read_frames

FORMATS = ("ts", "npz", "frames")
PLACES = 5


def wrong(census: Census) -> Iterator[Finding]:
    """Rows that training would refuse, with their lines."""
    table = census.table
    if table.format not in FORMATS or "frames" not in table.columns:
        return
    column, channels = table.columns.index("frames"), 0
    messages: list[str] = []
    places: list[str] = []
    for row in table.rows(lambda _: None):
        try:
            found = read_frames(row.fields[column]).shape[1]
            channels = channels or found
            if found != channels:
                raise DataError(f"{found} channels where the first row has {channels}.")
        except DataError as error:
            messages.append(str(error))
            places.append(table.place(row.place, column))
    if messages:
        yield Finding("error", "frames", census.split, len(messages), messages[0], tuple(places[:PLACES]))
