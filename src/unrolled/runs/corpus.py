"""The data of a run on disk: the vocabulary, learnt once; the encoded rows; the batches over them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError
from unrolled.workshop.sources import Part, Tables

if TYPE_CHECKING:
    from unrolled.data.batching import Batches
    from unrolled.data.store import Store
    from unrolled.tasks import Task
    from unrolled.text.texts import TextPair

SEEN = 5000
"""Validation rows over which the share of unknown symbols is taken."""


class Corpus:
    """Tables turned into text, stores and batches in ``folder``; ``settings`` is a run's complete tree."""

    def __init__(self, folder: Path, tables: Tables, task: Task, settings: dict[str, Any]) -> None:
        self.folder, self.tables, self.task, self.settings = folder, tables, task, settings
        self._stores: dict[str, Store] = {}

    def learn_text(self, text: TextPair | None = None) -> None:
        """Write the vocabulary: ``text``, or one learnt on the training rows."""
        from unrolled.text.texts import TextPair, TextSettings

        if text is None:
            rows = self.tables.train.rows
            text = TextPair.build(TextSettings(**self.settings["text"]))
            text.train((row.fields[0] for row in rows()), (row.fields[1] for row in rows()))
        text.save(self.folder / "text")

    def open_text(self) -> TextPair:
        """The vocabulary that ``learn_text`` wrote."""
        from unrolled.text.texts import TextPair

        self.text = TextPair.load(self.folder / "text")
        return self.text

    def encode(self) -> None:
        """Write the encoded rows, unless the same ones are there; DataError where too much of them is unknown."""
        from unrolled.data.store import Store, fingerprint

        for name in ("train", "valid"):
            part = self.part(name)
            place = str(part.table.path)
            mark = fingerprint([], [part.table.fingerprint(), self.text.fingerprint(), repr(part[1:])])
            encoders = self.task.encoders(self.text)
            store = Store.encode(self.folder / "data" / name, part.rows, encoders, fingerprint=mark, name=place)
            if not len(store):
                raise DataError(f"{place}: no rows for {name}. Give more data, or another file.")
        self._refuse_unknown()

    def _refuse_unknown(self) -> None:
        from unrolled.text.tokenizer import unknown_share

        valid, most = self.store("valid"), self.settings["data"]["max_unknown"]
        for column in self.task.columns:
            share = unknown_share(row.tolist() for row in valid.take(column, range(min(len(valid), SEEN))))
            if share > most:
                raise DataError(
                    f"{self.tables.valid.table.path}: {share:.0%} of the {column} symbols are unknown to the "
                    f"vocabulary (at most {most:.0%} are allowed). Try --set text.{column}=bpe or character, a larger "
                    "size, or raise data.max_unknown."
                )

    def part(self, name: str) -> Part:
        """The rows of ``train`` or ``valid``."""
        return self.tables.train if name == "train" else self.tables.valid

    def store(self, name: str) -> Store:
        """The encoded rows of ``train`` or ``valid``."""
        from unrolled.data.store import Store

        if name not in self._stores:
            self._stores[name] = Store(self.folder / "data" / name)
        return self._stores[name]

    def batches(self, name: str = "train") -> Batches:
        """The batches of the training rows, shuffled anew each epoch, or of the validation rows."""
        from unrolled.data.batching import Batches

        train, data = self.settings["train"], self.settings["data"]
        sentences = train["batch_sentences"]
        return Batches(
            self.store(name),
            tokens=None if sentences else train["batch_tokens"],
            sentences=sentences,
            seed=train["seed"],
            shuffle=name == "train",
            max_length=data["max_length"],
            too_long=data["too_long"],
            name=str(self.part(name).table.path),
        )


def pairs(part: Part, most: int | None = None) -> tuple[list[str], list[str]]:
    """The sources and targets of the first rows, as text."""
    rows = [row.fields for row in islice(part.rows(), most)]
    return [fields[0] for fields in rows], [fields[1] for fields in rows]
