"""The two sides of a translator's text: a tokenizer each, or one that both share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from unrolled.base.errors import SettingsError, UnrolledError
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """Which tokenizer reads each side. ``joint``: one vocabulary, learnt on both sides, as weight tying needs."""

    source: Annotated[Part, TOKENIZERS] = "bpe"
    target: Annotated[Part, TOKENIZERS] = "bpe"
    joint: bool = False


class TextPair(Text):
    """The tokenizers of source and target; with a joint vocabulary they are the same object."""

    settings = TextSettings

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source = source
        self.target = target

    @staticmethod
    def build(settings: TextSettings) -> TextPair:
        """Untrained tokenizers. Raises SettingsError where a joint vocabulary is asked of two different tokenizers."""
        source = TOKENIZERS.complete(settings.source, "text.source")
        target = TOKENIZERS.complete(settings.target, "text.target")
        if not settings.joint:
            return TextPair(TOKENIZERS.build(source), TOKENIZERS.build(target))
        if source != target:
            name = next(name for name in [*source, *target] if source.get(name) != target.get(name))
            raise SettingsError(
                f"[text] joint needs the same tokenizer on both sides, but '{name}' is {source.get(name)!r} for the "
                f"source and {target.get(name)!r} for the target. Make them equal or set joint: false."
            )
        shared = TOKENIZERS.build(source)
        return TextPair(shared, shared)

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> TextPair:
        pair = TextPair.build(TextSettings(**settings))
        pair.train((row[0] for row in rows()), (row[1] for row in rows()))
        return pair

    @property
    def joint(self) -> bool:
        return self.source is self.target

    def train(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Learn the vocabulary of each side, or one from both. Each iterable is read once, ``sources`` first."""
        if self.joint:
            self.source.train(chain(sources, targets))
        else:
            self.source.train(sources)
            self.target.train(targets)

    def about(self) -> dict[str, str]:
        sides = {"source": self.source, "target": self.target}
        said = {name: f"{side.kind}, {side.vocabulary_size:,} symbols" for name, side in sides.items()}
        return said | ({"target": f"{said['target']} (shared)"} if self.joint else {})

    def fingerprint(self) -> str:
        return f"{self.source.fingerprint()} {self.target.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        """Write ``source.json`` and ``target.json``, or one ``joint.json``, each with its settings beside it."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnrolledError(f"{folder}: the folder cannot be made ({error.strerror}).") from None
        sides = {"joint": self.source} if self.joint else {"source": self.source, "target": self.target}
        for name, side in sides.items():
            side.save(folder / f"{name}.json")
        for name in {"joint", "source", "target"} - set(sides):
            (folder / f"{name}.json").unlink(missing_ok=True)
            (folder / f"{name}.settings.json").unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: str | Path) -> TextPair:
        folder = Path(folder)
        if (folder / "joint.json").exists():
            shared = Tokenizer.load(folder / "joint.json")
            return TextPair(shared, shared)
        return TextPair(Tokenizer.load(folder / "source.json"), Tokenizer.load(folder / "target.json"))
