"""The sides of a translator's text: source and target, a tokenizer each or one that both share; and features."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from unrolled.base.errors import DataError, SettingsError, UnrolledError
from unrolled.base.files import write_beside
from unrolled.base.protocol import END, UNKNOWN
from unrolled.base.registry import Part
from unrolled.text.base import Rows
from unrolled.text.featured import Featured
from unrolled.text.lending import LENT, Lending, lend, words_lent
from unrolled.text.padding import pad
from unrolled.text.tokenizer import TOKENIZERS, Encoded, Tokenizer
from unrolled.text.writing import Sides


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """Which tokenizer reads each side, and each column of features where the task has some. ``joint``: one vocabulary,
    learnt on both sides, as weight tying needs; features keep their own."""

    source: Annotated[Part, TOKENIZERS] = "bpe"
    target: Annotated[Part, TOKENIZERS] = "bpe"
    features: Annotated[Part, TOKENIZERS] = "features"
    joint: bool = False


class TextPair(Sides):
    """The tokenizers of source and target; with a joint vocabulary the text of both is read by the same object.

    ``source`` is a tokenizer, or where a source has features beside its text, `Featured`. ``lends``: how many words
    without a symbol each sentence brings a symbol for (`lending`); they follow the vocabularies of both sides.
    """

    settings = TextSettings

    def __init__(self, source: Tokenizer | Featured, target: Tokenizer) -> None:
        self.source = source
        self.target = target

    @staticmethod
    def build(settings: TextSettings, features: int = 0) -> TextPair:
        """Untrained tokenizers, for ``features`` columns of features. Raises SettingsError where a joint vocabulary is
        asked of two different tokenizers."""
        source = TOKENIZERS.complete(settings.source, "text.source")
        target = TOKENIZERS.complete(settings.target, "text.target")
        beside = [TOKENIZERS.build(settings.features, where="text.features") for _ in range(features)]
        if settings.joint and source != target:
            name = next(name for name in [*source, *target] if source.get(name) != target.get(name))
            raise SettingsError(
                f"[text] joint needs the same tokenizer on both sides, but '{name}' is {source.get(name)!r} for the "
                f"source and {target.get(name)!r} for the target. Make them equal or set joint: false."
            )
        left = TOKENIZERS.build(source)
        right = left if settings.joint else TOKENIZERS.build(target)
        return TextPair(Featured(left, beside) if beside else left, right)

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> TextPair:
        """``rows`` are source, target, or source, features, target with any number of columns of features."""
        first = next(iter(rows()), ())
        pair = TextPair.build(TextSettings(**settings), max(0, len(first) - 2))
        pair.train((row[0] for row in rows()), (row[-1] for row in rows()))
        if isinstance(pair.source, Featured):
            pair.source.train(row[1:-1] for row in rows())
        return pair

    @property
    def plain(self) -> Tokenizer:
        """The tokenizer of the source's text."""
        return self.source.text if isinstance(self.source, Featured) else self.source

    @property
    def features(self) -> tuple[Tokenizer, ...]:
        """The tokenizers of the source's columns of features."""
        return self.source.features if isinstance(self.source, Featured) else ()

    def reader(self, name: str) -> Tokenizer:
        return self.plain if name == "source" else super().reader(name)

    @property
    def joint(self) -> bool:
        return self.plain is self.target

    def train(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Learn the vocabulary of each side's texts, or one of both. Each iterable is read once, ``sources`` first."""
        if self.joint:
            self.plain.train(chain(sources, targets))
        else:
            self.plain.train(sources)
            self.target.train(targets)

    def read(self, sources: Sequence[str]) -> list[Encoded]:
        rows, first = self.source.encode_batch(list(sources)), self.source.vocabulary_size
        return [
            lend(self.target, line, row, words_lent(self.target, line, row, self.lends), first) if self.lends else row
            for line, row in zip(sources, rows, strict=True)
        ]

    def read_targets(self, sources: Sequence[str], targets: Sequence[str]) -> list[Encoded]:
        rows, first = self.target.encode_batch(list(targets)), self.target.vocabulary_size
        return [
            lend(self.target, line, row, self.lent(source) if UNKNOWN in row.ids else [], first)
            for source, line, row in zip(sources, targets, rows, strict=True)
        ]

    def lent(self, line: str) -> list[str]:
        """The words of the source ``line`` that have a symbol for this sentence alone, in their order."""
        return words_lent(self.target, line, self.source.encode(line), self.lends) if self.lends else []

    def encoders(self) -> dict[str, Lending]:
        """What turns columns into ids where symbols are lent: one of sources, one of targets `Given` beside them."""
        return {
            "source": Lending(self.source, self.lends, self.read),
            "target": Lending(
                self.target,
                self.lends,
                lambda rows: self.read_targets([one.source for one in rows], [one.target for one in rows]),
            ),
        }

    def names(self, line: str, ids: Sequence[int]) -> list[str]:
        size = self.target.vocabulary_size
        if all(one < size for one in ids):
            return self.target.tokens(ids)
        lent, names = dict(enumerate(self.lent(line), start=size)), [""]
        for one in ids:
            own = None if one in lent else self.target.tokens([one if one < size else UNKNOWN])[0]
            names.append(self.target.standing_in(lent[one], names[-1]) if own is None else own)
        return names[1:]

    def read_ids(self, column: str, ids: Sequence[int]) -> list[int]:
        """A word of the source that is lent a symbol is read as unknown; in the target it is said."""
        lent = self.source.vocabulary_size if column == "source" and self.lends else max(ids, default=0) + 1
        return [one if one < lent else UNKNOWN for one in ids]

    def unknown_ids(self, ids: Sequence[int]) -> list[int]:
        """For each id of a source the one that says "unknown" in its place, that of its column."""
        return self.source.unknown_ids(self.read_ids("source", ids))

    def positions(self, row: Encoded) -> int:
        return len(row.ids)

    def padded(self, rows: Sequence[Encoded]) -> tuple[np.ndarray, np.ndarray]:
        return pad([[*row.ids, END] for row in rows])

    def about(self) -> dict[str, str]:
        sides = {"source": self.plain, "target": self.target}
        sides |= {_column(place): one for place, one in enumerate(self.features)}
        said = {name: side.about() for name, side in sides.items()}
        return said | ({"target": f"{said['target']} (shared)"} if self.joint else {})

    def fingerprint(self) -> str:
        return f"{self.vocabulary_fingerprint()} {self.lends}" if self.lends else self.vocabulary_fingerprint()

    def vocabulary_fingerprint(self) -> str:
        return f"{self.source.fingerprint()} {self.target.fingerprint()}"

    def _files(self) -> dict[str, Tokenizer]:
        """Every tokenizer by the name of its file."""
        sides = {"joint": self.plain} if self.joint else {"source": self.plain, "target": self.target}
        return sides | {_column(place): one for place, one in enumerate(self.features)}

    def save(self, folder: str | Path) -> None:
        """Write ``source.json`` and ``target.json``, or one ``joint.json``; ``features.json``, ``features.2.json``, …;
        each with its settings beside it."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnrolledError(f"{folder}: the folder cannot be made ({error.strerror}).") from None
        sides = self._files()
        for name, side in sides.items():
            side.save(folder / f"{name}.json")
        old = {path.name.removesuffix(".json") for path in folder.glob("features*.json")}
        for name in {"joint", "source", "target", *old} - {*sides, *(f"{name}.settings" for name in sides)}:
            (folder / f"{name}.json").unlink(missing_ok=True)
            (folder / f"{name}.settings.json").unlink(missing_ok=True)
        _save_lent(folder / LENDS, self.lends)

    @classmethod
    def load(cls, folder: str | Path) -> TextPair:
        folder = Path(folder)
        joint = (folder / "joint.json").exists()
        source = Tokenizer.load(folder / ("joint.json" if joint else "source.json"))
        target = source if joint else Tokenizer.load(folder / "target.json")
        features: list[Tokenizer] = []
        while (folder / f"{_column(len(features))}.json").exists():
            features.append(Tokenizer.load(folder / f"{_column(len(features))}.json"))
        pair = TextPair(Featured(source, features) if features else source, target)
        pair.lends = _load_lent(folder / LENDS)
        return pair


LENDS = "lent.json"
"""Says how many symbols are lent; a folder without it lends none."""


def _save_lent(path: Path, lends: int) -> None:
    if lends:
        write_beside(path, json.dumps({"format": 1, "lends": lends}).encode() + b"\n")
    else:
        path.unlink(missing_ok=True)


def _load_lent(path: Path) -> int:
    try:
        about = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"format": 1, "lends": 0}
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: it cannot be read ({error}). Copy the model again.") from None
    lends = about.get("lends") if isinstance(about, dict) and about.get("format") == 1 else None
    if not isinstance(lends, int) or not 0 <= lends <= LENT:
        raise DataError(f"{path}: it must say a format of 1, and how many symbols it lends. Copy the model again.")
    return lends


def _column(place: int) -> str:
    """The name of a column of features."""
    return "features" if place == 0 else f"features.{place + 1}"
