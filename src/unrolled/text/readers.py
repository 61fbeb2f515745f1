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
from unrolled.text.frames import FrameReader, moments, read_frames
from unrolled.text.reading import READERS, Numbers, Reader
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.writing import Sides


@READERS.register("frames")
class Framed(Reader):
    """Sequences of frames, as a line of a ``.ts`` file has them (`read_frames`), or arrays [time, channels].

    ``scale``: each channel less its mean, through its standard deviation (both of the training frames), or as it is.
    ``deltas``: the change of each channel since the frame before as a further one.
    """

    def __init__(self, *, scale: Literal["standard", "none"] = "standard", deltas: bool = False) -> None:
        self.settings = {"kind": "frames", "scale": scale, "deltas": deltas}
        self.deltas = deltas
        self.reader = FrameReader([0.0], [1.0], deltas=deltas)

    @property
    def channels(self) -> int:  # type: ignore[override]
        return self.reader.channels

    def learn(self, cells: Iterable[str]) -> None:
        mean, deviation = moments(read_frames(cell) for cell in cells)
        if self.settings["scale"] == "none":
            mean, deviation = np.zeros_like(mean), np.ones_like(deviation)
        self.reader = FrameReader(mean.tolist(), deviation.tolist(), deltas=self.deltas)

    def scaled(self, given: Any) -> Numbers:
        frames = read_frames(given) if isinstance(given, str) else np.asarray(given, np.float32)
        return self.reader.scaled(frames[:, None] if frames.ndim == 1 else frames)

    def learnt(self) -> Tree:
        return {"mean": self.reader.mean.tolist(), "deviation": self.reader.deviation.tolist()}

    def restore(self, tree: Tree) -> None:
        self.reader = FrameReader(tree["mean"], tree["deviation"], deltas=self.deltas)

    def about(self) -> str:
        more = ", and the change of each" if self.deltas else ""
        return f"frames, {self.reader.given} channel{'' if self.reader.given == 1 else 's'}{more}"


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
        found = []
        for place, source in enumerate(sources):
            try:
                found.append(self.source.scaled(source))
            except DataError as error:
                where = source if isinstance(source, str) and len(source) < 200 else f"source {place}"
                raise DataError(str(error) if where in str(error) else f"{where}: {error}") from None
        return found

    def positions(self, row: Numbers) -> int:
        return len(row)

    def padded(self, rows: Sequence[Numbers]) -> tuple[np.ndarray, np.ndarray]:
        return self.source.padded(rows)
