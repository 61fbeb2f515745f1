"""Recordings, or other frames, with a text of each: a reader of frames and a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.reading import READERS, Reader
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer


@dataclass(frozen=True, kw_only=True)
class SpokenSettings:
    """How sources are read, and which tokenizer divides the texts."""

    source: Annotated[Part, READERS] = "audio"
    target: Annotated[Part, TOKENIZERS] = "character"


class SpokenText(Text):
    """Sources through a reader of frames, texts through a tokenizer."""

    settings = SpokenSettings

    def __init__(self, source: Reader, target: Tokenizer) -> None:
        self.source, self.target = source, target

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> SpokenText:
        source = READERS.build(settings["source"], where="text.source")
        source.learn(row[0] for row in rows())
        target = TOKENIZERS.build(settings["target"], where="text.target")
        target.train(row[1] for row in rows())
        return SpokenText(source, target)

    def fingerprint(self) -> str:
        return f"{self.source.fingerprint()} {self.target.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        self.source.save(Path(folder) / "source.json")
        self.target.save(Path(folder) / "target.json")

    @classmethod
    def load(cls, folder: str | Path) -> SpokenText:
        return SpokenText(Reader.load(Path(folder) / "source.json"), Tokenizer.load(Path(folder) / "target.json"))

    def about(self) -> dict[str, str]:
        return {"source": self.source.about(), "target": self.target.about()}
