"""What the recordings of a table are like: rate, channels, length, silence, and whether two are the same."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from unrolled.base.errors import DataError
from unrolled.data.table import Table
from unrolled.text.recordings import read_recording, silent


class Clip(NamedTuple):
    """One recording. Where it cannot be read, ``wrong`` says why and the rest is empty."""

    place: str
    text: str
    wrong: str = ""
    rate: int = 0
    channels: int = 0
    seconds: float = 0.0
    silent: bool = False
    digest: bytes = b""  # of the samples, whatever the file is called


def clips_of(table: Table, sound: int, text: int | None) -> list[Clip]:
    """The recordings in the column ``sound``, read once each; wrong rows are passed over."""
    found = []
    for row in table.rows(lambda _: None):
        place, said = table.place(row.place, sound), "" if text is None else row.fields[text].strip()
        try:
            samples, rate = read_recording(row.fields[sound])
        except DataError as error:
            found.append(Clip(place, said, str(error)))
            continue
        digest = hashlib.blake2b(samples.tobytes(), digest_size=12).digest()
        still = all(silent(samples[:, channel]) for channel in range(samples.shape[1]))
        found.append(Clip(place, said, "", rate, samples.shape[1], len(samples) / rate, still, digest))
    return found
