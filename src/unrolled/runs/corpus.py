"""The data of a run on disk: the vocabulary, learnt once; the encoded rows; the batches over them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.parts import Part
from unrolled.runs.contextual import put_readers, take_readers
from unrolled.workshop.sources import Tables

if TYPE_CHECKING:
    from torch import nn

    from unrolled.data.store import Store
    from unrolled.tasks import Batches, Task
    from unrolled.text.base import Text

SEEN = 5000
"""Validation rows over which the share of unknown symbols is taken."""


class Corpus:
    """Tables turned into text, stores and batches in ``folder``; ``settings`` is a run's complete tree."""

    def __init__(self, folder: Path, tables: Tables, task: Task[Any], settings: dict[str, Any]) -> None:
        self.folder, self.tables, self.task, self.settings = folder, tables, task, settings
        self._stores: dict[str, Store] = {}

    def learn_text(self, text: Text | None = None) -> None:
        """Write the vocabulary: ``text``, or one learnt on the training rows, with vectors where the settings name a
        file or a saved model."""
        if text is None:
            from unrolled.tasks.vectors import take_vectors

            text = self.task.learn(self.settings["text"], self.tables.train)
            for column, table in take_vectors(self.task, text).items():
                (self.folder / "vectors").mkdir(parents=True, exist_ok=True)
                np.save(self.folder / "vectors" / f"{column}.npy", table)
            take_readers(self.task, text, self.folder / "vectors")
        text.save(self.folder / "text")

    def open_text(self) -> Text:
        """The vocabulary that ``learn_text`` wrote."""
        self.text = self.task.text.load(self.folder / "text")
        return self.text

    def put_vectors(self, network: nn.Module) -> None:
        """Let the network's words start from what ``learn_text`` took out of files of vectors and of saved models."""
        from unrolled.tasks.vectors import put_vectors

        tables = {path.stem: np.load(path) for path in sorted((self.folder / "vectors").glob("*.npy"))}
        put_vectors(self.task, self.text, network, tables)
        put_readers(self.task, self.text, network, self.folder / "vectors")

    def remarks(self) -> list[str]:
        """What to say of the vocabulary before training."""
        from unrolled.tasks.vectors import remarks

        return remarks(self.task, self.text)

    def encode(self) -> None:
        """Write the encoded rows, unless the same ones are there; DataError where too much of them is unknown."""
        from unrolled.data.store import fingerprint

        for name in ("train", "valid"):
            part = self.part(name)
            task = repr(self.settings["task"])
            mark = fingerprint([], [part.table.fingerprint(), self.text.fingerprint(), part.choice(), task])
            if not len(self.task.store(self.folder / "data" / name, part, self.text, mark)):
                raise DataError(f"{part.table.path}: no rows for {name}. Give more data, or another file.")
        self._refuse_unknown()

    def _refuse_unknown(self) -> None:
        from unrolled.text.tokenizer import unknown_share

        valid, most = self.store("valid"), self.settings["data"]["max_unknown"]
        for column, setting in self.task.read_by.items():
            rows = valid.take(column, range(min(len(valid), SEEN)))
            share = unknown_share(self.text.read_ids(column, row.tolist()) for row in rows)
            if share > most:
                raise DataError(
                    f"{self.tables.valid.table.path}: {share:.0%} of the {column} symbols are unknown to the "
                    f"vocabulary (at most {most:.0%} are allowed). Try --set {setting}=bpe or character, a larger "
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
        """The batches of the training rows, anew each epoch, or of the validation rows."""
        from unrolled.data.batching import Batches as Bucketed

        table = self.part(name).table
        found = self.task.batches(self.store(name), self.settings, train=name == "train", name=str(table.path))
        if isinstance(found, Bucketed):
            found.sign = table.sign
        return found
