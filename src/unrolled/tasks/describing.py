"""What tasks share that write a text of numbers: of speech, of an image, of a signal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError, SettingsError
from unrolled.data.parts import Part
from unrolled.tasks.base import Batches, Sized
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.sizing import size_columns
from unrolled.tasks.writing import WriteTask
from unrolled.text.readers import ReadText
from unrolled.text.reading import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadText:
        last: list[str] = []

        def rows() -> Iterator[tuple[str, ...]]:
            for row in part.rows():
                last[:] = [part.table.place(row.place, part.pick[0])]
                yield row.fields

        try:
            return ReadText.learn(settings, rows)
        except DataError as error:
            where = last[0] if last else str(part.table.path)
            raise DataError(f"{where}: {error}") from None

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.batching import Pairs, Tokens, padded_ids
        from unrolled.data.frames import NumberRows

        reader = READERS.build(settings["text"]["source"], where="text.source")

        def collate(columns: Columns, rows: np.ndarray) -> Pairs:
            import torch

            given, mask = reader.padded(columns[0])
            source = Tokens(torch.from_numpy(given), torch.from_numpy(mask))
            target = padded_ids(columns[1], begin=True) if len(columns) > 1 else None
            return Pairs(source, target, torch.as_tensor(rows.copy()))

        found = NumberRows(store, "source", reader.stored, reader.axes, reader.counted)
        return bucketed(found, settings, train=train, name=name, specials=(0, 2), collate=collate)

    def network(self, settings: Mapping[str, Any], text: ReadText) -> nn.Module:
        from unrolled.models import MODELS

        return MODELS.build(settings, text.source.channels, text.target.vocabulary_size, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        model = MODELS.build(settings["model"], SKETCHED, target, where="model")
        return model, f"{SKETCHED} channels and {target:,} target symbols"
