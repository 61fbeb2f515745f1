"""Frames as literal cells, and the text side of a task whose source is no text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.registry import Part
from unrolled.base.settings import Tree
from unrolled.text.base import Rows
from unrolled.text.frames import moments, read_frames
from unrolled.text.labelled import Labels, LabelSide, LabelsSettings
from unrolled.text.reading import READERS, Numbers, Reader
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.writing import Sides


@READERS.register("frames")
class Framed(Reader):
    """Sequences of frames, as a line of a ``.ts`` file has them (`read_frames`), or arrays [time, channels].

    ``scale``: each channel less its mean, through its standard deviation (both of the training frames), or as it is.
    ``deltas``: the change of each channel since the frame before as a further one.
    A frame with deltas has twice the channels. ``names``: what the channels are called, or nothing.
    """

    step = 1.0  # frames are counted, not timed

    def __init__(self, *, scale: Literal["standard", "none"] = "standard", deltas: bool = False) -> None:
        self.settings = {"kind": "frames", "scale": scale, "deltas": deltas}
        self.deltas = deltas
        self.mean, self.deviation = np.zeros(1), np.ones(1)
        self.names: tuple[str, ...] = ()

    @property
    def given(self) -> int:
        """Channels of the user's frames."""
        return len(self.mean)

    @property
    def channels(self) -> int:  # type: ignore[override]
        return self.given * (2 if self.deltas else 1)

    def learn(self, cells: Iterable[str]) -> None:
        self.mean, self.deviation = moments(read_frames(cell) for cell in cells)
        if self.settings["scale"] == "none":
            self.mean, self.deviation = np.zeros_like(self.mean), np.ones_like(self.deviation)

    def scaled(self, given: Any) -> Numbers:
        """Float32 [time, channels] of a cell or an array [time, channels], or [time] of one channel; DataError for
        another number of channels, for no frame and for a number that is not finite."""
        if isinstance(given, str):
            return self._scaled(self.checked(read_frames(given)))
        frames = self.frames(given)
        if frames.ndim != 2 or frames.shape[1] != self.given or not len(frames):
            raise DataError(
                f"frames of shape {list(frames.shape)}; this model reads [time, {self.given}] with at least one frame."
            )
        if not np.isfinite(frames).all():
            raise DataError("it holds a number that is not finite. Fill the gap before.")
        return self._scaled(frames)

    def frames(self, given: Any) -> Numbers:
        """The frames of a cell or an array, as the user gave them, float32 [time, channels]."""
        found = read_frames(given) if isinstance(given, str) else np.asarray(given, np.float32)
        return found[:, None] if found.ndim == 1 else found

    def checked(self, frames: Numbers) -> Numbers:
        """The frames, which have as many channels as the training rows; DataError for others."""
        if frames.shape[1] != self.given:
            raise DataError(
                f"{frames.shape[1]} channels where training rows have {self.given}. Each row needs the "
                "same ones, in the same order."
            )
        return frames

    def _scaled(self, frames: Numbers) -> Numbers:
        found = ((frames - self.mean) / self.deviation).astype(np.float32)
        if not self.deltas:
            return found
        return np.concatenate([found, np.diff(found, axis=0, prepend=found[:1])], axis=1)

    def learnt(self) -> Tree:
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist(), "names": list(self.names)}

    def restore(self, tree: Tree) -> None:
        self.mean, self.deviation = (np.array(tree[name], np.float64) for name in ("mean", "deviation"))
        self.names = tuple(tree.get("names", ()))

    def about(self) -> str:
        more = ", and the change of each" if self.deltas else ""
        named = f" ({', '.join(self.names)})" if self.names else ""
        return f"frames, {self.given} channel{'' if self.given == 1 else 's'}{named}{more}"


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """What reads the source, and which tokenizer the target."""

    source: Annotated[Part, READERS] = "frames"
    target: Annotated[Part, TOKENIZERS] = "character"


class ReadText(Sides):
    """A reader of the source, a tokenizer of the target."""

    settings = ReadSettings

    def __init__(self, source: Reader, target: Tokenizer) -> None:
        self.source, self.target = source, target

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> ReadText:
        source, target = READERS.build(settings["source"], where="text.source"), TOKENIZERS.build(settings["target"])
        source.learn(row[0] for row in rows())
        target.train(row[1] for row in rows())
        return cls(source, target)

    def fingerprint(self) -> str:
        return f"{self.source.fingerprint()} {self.target.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        self.source.save(Path(folder) / "source.json")
        self.target.save(Path(folder) / "target.json")

    @classmethod
    def load(cls, folder: str | Path) -> ReadText:
        return cls(Reader.load(Path(folder) / "source.json"), Tokenizer.load(Path(folder) / "target.json"))

    def about(self) -> dict[str, str]:
        return {"source": self.source.about(), "target": self.target.about()}

    def read(self, sources: Sequence[Any]) -> list[Numbers]:
        return self.source.read(sources)

    def positions(self, row: Numbers) -> int:
        return len(row)

    def padded(self, rows: Sequence[Numbers]) -> tuple[np.ndarray, np.ndarray]:
        return self.source.padded(rows)


@dataclass(frozen=True, kw_only=True)
class ReadLabelSettings(LabelsSettings):
    """What reads the source. ``separator``: what stands between the labels of a row that may have several, or none;
    null: a row has one label."""

    source: Annotated[Part, READERS] = "frames"


class ReadLabels(LabelSide):
    """A reader of the source, labels by number: of a whole source, or of frames one for each."""

    settings = ReadLabelSettings

    def __init__(self, source: Reader, labels: Labels) -> None:
        self.source, self.labels = source, labels

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows, *, each: bool = False) -> ReadLabels:
        """``each``: a cell of labels holds one for each frame."""
        source = READERS.build(settings["source"], where="text.source")
        source.learn(row[0] for row in rows())
        return cls(source, Labels.learn((row[1] for row in rows()), settings["separator"], ordered=each))

    def fingerprint(self) -> str:
        return f"{self.source.fingerprint()} {self.labels.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        self.source.save(Path(folder) / "source.json")
        self.labels.save(Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> ReadLabels:
        return cls(Reader.load(Path(folder) / "source.json"), Labels.load(folder))

    def about(self) -> dict[str, str]:
        return {"source": self.source.about(), "label": self.labels.about()}
