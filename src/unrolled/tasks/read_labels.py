"""What tasks share that label numbers: a signal, an image, a recording."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from annotated_types import Ge

from unrolled.base.settings import Tree
from unrolled.data.parts import Part
from unrolled.data.table import Table
from unrolled.tasks.base import Batches, Sized
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.labelling import Labelled, LabelTask
from unrolled.tasks.named_files import concluded, labelled, recognised, refuse_label
from unrolled.tasks.numbers import files_mark, held_out, learnt, number_rows
from unrolled.text.readers import ReadLabels

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from unrolled.data.batching import Columns
    from unrolled.data.store import Encoder, Store
    from unrolled.models.classifier import Labelling

SKETCHED = 10
"""Labels of a preset that is shown without data."""


class ReadLabelTask(LabelTask[ReadLabels]):
    """A source that a `Reader` reads, and its label. ``text.source`` says which reader, ``model.front`` what it
    feeds."""

    text = ReadLabels
    read_by: Mapping[str, str] = {}
    models = ("numbers_to_label",)
    each = False
    """Whether each frame has a label of its own."""
    sketched = 40
    """Channels of a preset that is shown without data."""

    # --- settings and data ----------------------------------------------------------------------------------------

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return held_out(part, data, self.noun)

    def size(self, part: Part) -> Sized:
        """Of few rows so few are held out that the loss chooses."""
        tree: Tree = {"train": {"stop_on": "loss"}} if self.few(part) else {}
        return Sized("size of the data", tree, lambda _: [])

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadLabels:
        text = learnt(part, lambda rows: ReadLabels.learn(settings, rows, each=self.each))
        self.admit(text, part)
        return text

    def encoders(self, text: ReadLabels) -> dict[str, Encoder]:
        return {self.columns[0]: text.source, self.columns[1]: text.labels}

    def store(self, folder: Path, part: Part, text: ReadLabels, mark: str) -> Store:
        """As usual; a store is also made anew where a file that the rows name has been changed since."""
        return super().store(folder, part, text, files_mark(part, mark))

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.batching import Tokens
        from unrolled.data.frames import pad_labels

        rows, reader = number_rows(store, self.columns[0], settings)

        def collate(columns: Columns, rows: np.ndarray) -> Labelled:  # noqa: ARG001
            import torch

            given, mask = reader.padded(columns[0])
            return Labelled(Tokens(torch.from_numpy(given), torch.from_numpy(mask)), pad_labels(columns))

        specials = (0, 0) if self.each else (0,)
        return bucketed(rows, settings, train=train, name=name, specials=specials, collate=collate)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: ReadLabels) -> nn.Module:
        from unrolled.models import MODELS

        sizes = text.source.channels, len(text.labels), text.several, self.each
        network = MODELS.build(settings, *sizes, where="model")
        cast("Labelling", network).weigh(text.labels.counts, text.labels.rows)
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        sizes = self.sketched, SKETCHED, settings["text"]["separator"] is not None, self.each
        network = MODELS.build(settings["model"], *sizes, where="model")
        return network, f"{self.sketched} channels and {SKETCHED} labels"


class FileLabelTask(ReadLabelTask):
    """A `ReadLabelTask` of files: in a folder for each label, or named by a table with labels in another column."""

    files: ClassVar[str]
    """The kind of the files (`unrolled.data.endings.KINDS`)."""

    bare = False
    """Whether a row may have no label, as where it may have several."""

    def __init__(self, *, label: str | Annotated[int, Ge(1)] | None = None) -> None:
        self.label = label

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        return recognised(table, cls.files)

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        return concluded(table, cls.files)

    def adapt(self, table: Table) -> Table:
        return labelled(table, self.files, self.label, bare=self.bare)

    def heed(self, settings: Mapping[str, Any]) -> None:
        self.bare = settings["text"]["separator"] is not None

    def refuse(self, table: Table) -> None:
        refuse_label(table, self.files, self.label)
