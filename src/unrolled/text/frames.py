"""Sequences of frames, numbers of some channels each, as cells of a table, and what their channels are like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError

Frames = NDArray[np.float32]
"""[time, channels]."""


def written(frames: NDArray[np.floating[Any]]) -> str:
    """The cell of some frames [time, channels]: channels parted by colons, their numbers by commas."""
    return ":".join(",".join(map(repr, channel)) for channel in np.asarray(frames, np.float64).T.tolist())


def read_frames(cell: str, point: Sequence[str] = ()) -> Frames:
    """The frames of a cell, float32 [time, channels]; DataError for what is no finite number, none, or unequal lengths.

    A cell is what a line of a ``.ts`` file holds: ``1,2,3:4,5,6`` are three frames of two channels. ``point``: a frame
    is a point of these numbers, and called so in errors.
    """
    channels = [_numbers(text, place, point) for place, text in enumerate(cell.split(":"), 1)]
    lengths = [len(channel) for channel in channels]
    if len(set(lengths)) > 1:
        place = next(place for place, length in enumerate(lengths) if length != lengths[0])
        raise DataError(
            f"channel {place + 1} has {lengths[place]} numbers and channel 1 has {lengths[0]}. Each frame needs a "
            "number of every channel."
        )
    return np.stack(channels, axis=1)


def _numbers(text: str, channel: int, point: Sequence[str]) -> NDArray[np.float32]:
    if not text.strip():
        raise DataError(f"channel {channel} is empty. Leave the row out, or give its numbers.")
    pieces = text.split(",")
    try:
        found = np.array(pieces, dtype=np.float64)
    except ValueError:
        found = np.array([_number(piece, _where(channel, place, point)) for place, piece in enumerate(pieces, 1)])
    with np.errstate(over="ignore"):
        small = found.astype(np.float32)
    if not np.isfinite(small).all():
        place = int(np.argmin(np.isfinite(small)))
        raise DataError(
            f"{_where(channel, place + 1, point)}: '{pieces[place].strip()}' is no finite number. Fill the gap "
            "before, or leave the row out."
        )
    return small


def _where(channel: int, place: int, point: Sequence[str]) -> str:
    if not point:
        return f"channel {channel}, frame {place}"
    return f"point {place}, {point[channel - 1]}" if channel <= len(point) else f"point {place}, number {channel}"


def _number(piece: str, where: str) -> float:
    try:
        return float(piece)
    except ValueError:
        kind = "a missing value" if piece.strip() in ("", "?") else "no number"
        raise DataError(
            f"{where}: '{piece.strip()[:40]}' is {kind}. Fill the gap before, or leave the row out."
        ) from None


def moments(sequences: Iterable[Frames]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each channel over all frames; 1 where it never changes."""
    count, total, squares = 0, np.zeros(0), np.zeros(0)
    for one in sequences:
        frames = one.astype(np.float64)
        if not count:
            first = frames[0]
            total, squares = np.zeros(len(first)), np.zeros(len(first))
        if frames.shape[1] != len(total):
            raise DataError(f"{frames.shape[1]} channels where the rows before have {len(total)}.")
        count += len(frames)
        total += (frames - first).sum(axis=0)
        squares += ((frames - first) ** 2).sum(axis=0)
    shift = total / max(count, 1)
    deviation = np.sqrt(np.maximum(squares / max(count, 1) - shift**2, 0.0))
    return first + shift, np.where(deviation > 1e-12, deviation, 1.0)
