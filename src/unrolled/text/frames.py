"""Sequences of frames, numbers of some channels each, as cells of a table; scaled alike, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError
from unrolled.text.base import Rows, Text
from unrolled.text.labelled import Labels
from unrolled.text.trees import tree_of, write_tree

Frames = NDArray[np.float32]
"""[time, channels]."""


def written(frames: NDArray[np.floating[Any]]) -> str:
    """The cell of some frames [time, channels]: channels parted by colons, their numbers by commas."""
    return ":".join(",".join(map(repr, channel)) for channel in np.asarray(frames, np.float64).T.tolist())


def read_frames(cell: str) -> Frames:
    """The frames of a cell, float32 [time, channels]; DataError for what is no finite number, none, or unequal lengths.

    A cell is what a line of a ``.ts`` file holds: ``1,2,3:4,5,6`` are three frames of two channels.
    """
    channels = [_numbers(text, place) for place, text in enumerate(cell.split(":"), 1)]
    lengths = [len(channel) for channel in channels]
    if len(set(lengths)) > 1:
        place = next(place for place, length in enumerate(lengths) if length != lengths[0])
        raise DataError(
            f"channel {place + 1} has {lengths[place]} numbers and channel 1 has {lengths[0]}. Each frame needs a "
            "number of every channel."
        )
    return np.stack(channels, axis=1)


def _numbers(text: str, channel: int) -> NDArray[np.float32]:
    if not text.strip():
        raise DataError(f"channel {channel} is empty. Leave the row out, or give its numbers.")
    pieces = text.split(",")
    try:
        found = np.array(pieces, dtype=np.float64)
    except ValueError:
        found = np.array([_number(piece, channel, place) for place, piece in enumerate(pieces, 1)])
    with np.errstate(over="ignore"):
        small = found.astype(np.float32)
    if not np.isfinite(small).all():
        place = int(np.argmin(np.isfinite(small)))
        raise DataError(
            f"channel {channel}, frame {place + 1}: '{pieces[place].strip()}' is no finite number. Fill the gap "
            "before, or leave the row out."
        )
    return small


def _number(piece: str, channel: int, place: int) -> float:
    try:
        return float(piece)
    except ValueError:
        kind = "a missing value" if piece.strip() in ("", "?") else "no number"
        raise DataError(
            f"channel {channel}, frame {place}: '{piece.strip()[:40]}' is {kind}. Fill the gap before, or leave the "
            "row out."
        ) from None


@dataclass(frozen=True, kw_only=True)
class FramedSettings:
    """``scale``: each channel less its mean, through its standard deviation (both of the training frames), or as it is.
    ``deltas``: the change of each channel since the frame before as a further one."""

    scale: Literal["standard", "none"] = "standard"
    deltas: bool = False


class FrameReader:
    """Cells to scaled frames, flat: what a store keeps.

    ``mean`` and ``deviation`` float64 [channels]; with ``deltas`` a frame has twice the channels. ``names``: what the
    channels are called, or nothing.
    """

    vocabulary_size = 0  # numbers, no symbols

    def __init__(
        self, mean: Sequence[float], deviation: Sequence[float], *, deltas: bool, names: Sequence[str] = ()
    ) -> None:
        self.names = tuple(names)
        self.mean, self.deviation = np.array(mean, np.float64), np.array(deviation, np.float64)
        self.deltas = deltas

    @property
    def given(self) -> int:
        """Channels of the user's frames."""
        return len(self.mean)

    @property
    def channels(self) -> int:
        """Channels that a network reads."""
        return self.given * (2 if self.deltas else 1)

    def scaled(self, frames: Frames) -> Frames:
        """Float32 [time, channels] of the user's frames; DataError for another number of channels or of no frame."""
        if frames.ndim != 2 or frames.shape[1] != self.given or not len(frames):
            raise DataError(
                f"frames of shape {list(frames.shape)}; this model reads [time, {self.given}] with at least one frame."
            )
        found = ((frames - self.mean) / self.deviation).astype(np.float32)
        if not self.deltas:
            return found
        return np.concatenate([found, np.diff(found, axis=0, prepend=found[:1])], axis=1)

    def encode_ids(self, texts: Sequence[str]) -> list[Any]:
        """Of each cell float32 [1 + time · channels]: how many channels, then frame by frame."""
        rows = (self.scaled(self.checked(read_frames(text))) for text in texts)
        return [np.concatenate([np.array([self.channels], np.float32), row.ravel()]) for row in rows]

    def checked(self, frames: Frames) -> Frames:
        """The frames, which have as many channels as the training rows; DataError for others."""
        if frames.shape[1] != self.given:
            raise DataError(
                f"{frames.shape[1]} channels where training rows have {self.given}. Each row needs the "
                "same ones, in the same order."
            )
        return frames


class FramedText(Text):
    """Frames through their scale, labels by number: of a whole sequence, or one for each frame."""

    settings = FramedSettings

    def __init__(self, frames: FrameReader, labels: Labels) -> None:
        self.frames, self.labels = frames, labels

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows, *, each: bool = False) -> FramedText:
        """``each``: a cell of labels holds one for each frame."""
        mean, deviation = moments(read_frames(row[0]) for row in rows())
        if settings["scale"] == "none":
            mean, deviation = np.zeros_like(mean), np.ones_like(deviation)
        reader = FrameReader(mean.tolist(), deviation.tolist(), deltas=settings["deltas"])
        return FramedText(reader, Labels.learn((row[1] for row in rows()), ordered=each))

    def fingerprint(self) -> str:
        reader = self.frames
        scale = f"{reader.mean.tolist()!r} {reader.deviation.tolist()!r} {reader.deltas}"
        return f"{scale} {reader.names!r} {self.labels.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        folder, reader = Path(folder), self.frames
        tree: dict[str, Any] = {"channels": reader.names, "deltas": reader.deltas}
        tree |= {"mean": reader.mean.tolist(), "deviation": reader.deviation.tolist()}
        write_tree(folder / "frames.json", tree)
        self.labels.save(folder)

    @classmethod
    def load(cls, folder: str | Path) -> FramedText:
        with tree_of(Path(folder) / "frames.json", "scale of the frames") as tree:
            names, deltas = tree.get("channels", ()), bool(tree["deltas"])
            reader = FrameReader(tree["mean"], tree["deviation"], deltas=deltas, names=names)
        return FramedText(reader, Labels.load(folder))

    def about(self) -> dict[str, str]:
        reader = self.frames
        more = ", and the change of each" if reader.deltas else ""
        named = f" ({', '.join(reader.names)})" if reader.names else ""
        return {
            "frames": f"{reader.given} channel{'' if reader.given == 1 else 's'}{named}{more}",
            "label": f"{len(self.labels):,} labels, {self.labels.how}",
        }

    @property
    def several(self) -> bool:
        """Whether a sequence may have several labels at once: never."""
        return False

    def targets(self, cells: Iterable[str]) -> NDArray[np.int64]:
        """Int64 [rows], or of the frames of all rows one after the other; -1 for a label unseen in training."""
        found = [self.labels.number(label) for cell in cells for label in self.labels.split(cell)]
        return np.array(found, dtype=np.int64)


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
