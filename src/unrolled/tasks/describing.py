"""What tasks share that write a text of numbers: of speech, of an image, of a signal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import SettingsError
from unrolled.data.parts import Part
from unrolled.tasks.base import Batches, Sized
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.numbers import files_mark, held_out, learnt, number_rows
from unrolled.tasks.sizing import size_columns
from unrolled.tasks.writing import WriteTask
from unrolled.text.readers import ReadText

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from unrolled.data.batching import Columns, Pairs
    from unrolled.data.store import Store

SKETCHED = 40
"""Channels of a preset that is shown without data."""


class DescribeTask(WriteTask[ReadText]):
    """A source that a `Reader` reads, and a text. ``text.source`` says which one, ``model.front`` what it feeds."""

    text = ReadText
    read_by = {"target": "text.target"}
    embedded = {"target": "target_embedding"}
    models = ("numbers_to_text",)
    unsized = {"text": {"target": {"kind": "bpe"}}}

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        if settings["search"].get("replace_unknown"):
            raise SettingsError(
                "[search.replace_unknown] the source has no words that could stand in for an unknown one. Leave it out."
            )

    def size(self, part: Part) -> Sized:
        return size_columns(part, {"text.target": 1})

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return held_out(part, data, self.noun)

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadText:
        return learnt(part, lambda rows: ReadText.learn(settings, rows))

    def store(self, folder: Path, part: Part, text: ReadText, mark: str) -> Store:
        """As usual; a store is also made anew where a file that the rows name has been changed since."""
        return super().store(folder, part, text, files_mark(part, mark))

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.batching import Pairs, Tokens, padded_ids

        found, reader = number_rows(store, "source", settings)

        def collate(columns: Columns, rows: np.ndarray) -> Pairs:
            import torch

            given, mask = reader.padded(columns[0])
            source = Tokens(torch.from_numpy(given), torch.from_numpy(mask))
            target = padded_ids(columns[1], begin=True) if len(columns) > 1 else None
            return Pairs(source, target, torch.as_tensor(rows.copy()))

        return bucketed(found, settings, train=train, name=name, specials=(0, 2), collate=collate)

    def network(self, settings: Mapping[str, Any], text: ReadText) -> nn.Module:
        from unrolled.models import MODELS

        return MODELS.build(settings, text.source.channels, text.target.vocabulary_size, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        model = MODELS.build(settings["model"], SKETCHED, target, where="model")
        return model, f"{SKETCHED} channels and {target:,} target symbols"
