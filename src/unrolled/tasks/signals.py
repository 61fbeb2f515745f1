"""Signals: frames of sensor channels in, a label out, of the whole sequence or of each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from annotated_types import Ge

from unrolled.base.errors import DataError
from unrolled.base.settings import Tree
from unrolled.data.parts import Part, hold_out
from unrolled.data.signals import COLUMNS, arranged, gathered, sequence_column
from unrolled.data.table import Table, is_number
from unrolled.tasks.base import TASKS, Batches, Manual, Sized
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.classify import LABELS
from unrolled.tasks.labelling import Labelled, LabelTask
from unrolled.text.frames import FramedText, FrameReader, read_frames

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.data.batching import Columns
    from unrolled.data.store import Encoder, Store
    from unrolled.models.classifier import Labelling

FORMATS = ("ts", "npz", "frames")
"""Formats whose rows are sequences of frames."""

HEAD = 200
"""Rows that are looked at to tell a table with one frame a row."""

NUMBERS = 0.9
"""The share of numbers among its other cells from which a table is taken for one: single gaps are named later."""

SKETCHED = 6
"""Channels and labels of a preset that is shown without data."""


@TASKS.register("signals")
class Signals(LabelTask[FramedText]):
    """A label of a sequence of frames, or of each of its frames (``labels``).

    ``sequence`` is the column of a table with one frame a row that tells sequences apart, by name or 1-based number;
    null: the one that is called sequence, series, recording, session, segment or trial. ``label`` is its column of
    labels; null: the one that is called label, class, category, … All other columns are channels, but one that is
    called time, timestamp, step or frame.
    """

    columns = COLUMNS
    noun = "sequence"
    text = FramedText
    read_by: Mapping[str, str] = {}
    models = ("signal_classifier",)
    preset = "signals"
    instead = ", or give a .ts or .npz file"
    manual = Manual(
        commands=("unrolled predict {} signals.ts", "unrolled evaluate {} signals.ts"),
        python="predict([frames])  # each an array [time, channels]",
        tags=("time-series-classification", "rnn"),
    )

    def __init__(
        self,
        *,
        labels: Literal["sequence", "frame"] = "sequence",
        sequence: str | Annotated[int, Ge(1)] | None = None,
        label: str | None = None,
    ) -> None:
        self.each = labels == "frame"
        self.unit = "frames" if self.each else "sequences"
        self.sequence, self.label = sequence, label

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        if table.format in FORMATS and table.columns == COLUMNS:
            return f"{table.path}: sequences of frames with labels."
        key, label = sequence_column(table.columns), _label_column(table.columns)
        if key is None or label is None or len(table.columns) < 3:
            return None
        found: list[bool] = []
        for row in islice(table.rows(lambda _: None), HEAD):
            others = [cell for place, cell in enumerate(row.fields) if place not in (key, label)]
            found += [is_number(cell) for cell in others]
        if sum(found) < NUMBERS * len(found):
            return None
        return (
            f"{table.path}: a frame a row, with a column '{table.columns[key]}' and a column '{table.columns[label]}'."
        )

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        key, label = sequence_column(table.columns), _label_column(table.columns)
        if table.format in FORMATS:
            row = next(table.rows(lambda _: None), None)
            several = row is not None and table.format == "npz" and len(row.fields) > 1 and " " in row.fields[1].strip()
        elif key is None or label is None:
            return {}, []
        else:
            first = list(islice(table.rows(lambda _: None), HEAD))
            several = any(
                one.fields[key] == two.fields[key] and one.fields[label] != two.fields[label]
                for one, two in pairwise(first)
            )
        if not several:
            return {}, []
        return {"task": {"labels": "frame"}}, [
            "The label changes within a sequence: each frame has its own (task.labels)."
        ]

    def adapt(self, table: Table) -> Table:
        if table.format in FORMATS:
            return table
        label = self.label
        if label is None:
            place = _label_column(table.columns)
            label = None if place is None else table.columns[place]
        return gathered(table, self.sequence, label, by_frame=self.each)

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return hold_out(part, data, self.noun)

    def size(self, part: Part) -> Sized:
        """Of few rows so few are held out that the loss chooses."""
        tree: Tree = {"train": {"stop_on": "loss"}} if self.few(part) else {}
        return Sized("size of the data", tree, lambda _: [])

    def learn(self, settings: Mapping[str, Any], part: Part) -> FramedText:
        try:
            text = FramedText.learn(settings, lambda: (row.fields for row in part.rows()), each=self.each)
        except DataError as error:
            raise _placed(part, error) from None
        text.frames.names = part.table.channels
        self.admit(text, part)
        return text

    def encoders(self, text: FramedText) -> dict[str, Encoder]:
        return {"frames": text.frames, "label": text.labels}

    def store(self, folder: Path, part: Part, text: FramedText, mark: str) -> Store:
        from unrolled.data.frames import frame_rows

        part = part._replace(table=arranged(part.table, text.frames.names))
        found = super().store(folder, part, text, mark)
        if self.each:
            frames = frame_rows(found).lengths("frames")
            wrong = np.flatnonzero(frames != found.lengths("label"))
            if len(wrong):
                row = int(wrong[0])
                place = int(found.places([row])[0])
                raise DataError(
                    f"{part.table.place(place)}: {int(found.lengths('label')[row])} labels for "
                    f"{int(frames[row])} frames. Give each frame its own."
                )
        return found

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.frames import frame_rows

        specials = (0, 0) if self.each else (0,)
        return bucketed(frame_rows(store), settings, train=train, name=name, specials=specials, collate=_collate)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: FramedText) -> nn.Module:
        return self._built(settings, text.frames.channels, text.labels.names, text.labels.counts, text.labels.rows)

    def _built(
        self, settings: Mapping[str, Any], channels: int, names: Sequence[str], counts: Sequence[int], rows: int
    ) -> nn.Module:
        from unrolled.models import MODELS

        network = MODELS.build(settings, channels, len(names), self.each, where="model")
        cast("Labelling", network).weigh(counts, rows)
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        each = settings["task"]["labels"] == "frame"
        network = MODELS.build(settings["model"], SKETCHED, SKETCHED, each, where="model")
        return network, f"{SKETCHED} channels and {SKETCHED} labels"

    def answers(self, model: Labelling, batch: Labelled) -> tuple[Tensor, Tensor]:
        if not self.each:
            return super().answers(model, batch)
        logits = model(batch.given.ids, batch.given.mask).logits
        return logits[batch.given.mask], batch.labels[batch.given.mask]


def _collate(columns: Columns, rows: np.ndarray) -> Labelled:  # noqa: ARG001
    from unrolled.data.frames import pad_frames, pad_labels

    return Labelled(pad_frames(columns[0]), pad_labels(columns))


def _placed(part: Part, error: DataError) -> DataError:
    """The error with the line of the first row that is so."""
    channels = None
    for row in part.rows():
        where = part.table.place(row.place, part.pick[0])
        try:
            frames = read_frames(row.fields[0])
            if channels is not None:
                FrameReader([0.0] * channels, [1.0] * channels, deltas=False).checked(frames)
        except DataError as found:
            return DataError(f"{where}: {found}")
        channels = frames.shape[1] if channels is None else channels
    return error


def _label_column(columns: Sequence[str]) -> int | None:
    lower = [name.strip().casefold() for name in columns]
    return next((lower.index(name) for name in (*LABELS, "activity") if name in lower), None)


def frames_first(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables, a sequence a row where they look like frames of labelled sequences; else as they are."""
    first = tables.get("train") or next(iter(tables.values()))
    if Signals.recognises(first) is None:
        return dict(tables)
    settings = Signals.conclude(first)[0].get("task", {})
    task = Signals(**settings)
    return {name: task.adapt(table) for name, table in tables.items()}
