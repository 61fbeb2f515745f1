"""Signals: frames of sensor channels in, a label out, of the whole sequence or of each frame."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from annotated_types import Ge

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.settings import Tree
from unrolled.data.parts import Part
from unrolled.data.signals import COLUMNS, arranged, gathered, sequence_column
from unrolled.data.table import Table, is_number
from unrolled.tasks.base import TASKS, Manual
from unrolled.tasks.label_columns import LABELS, label_column
from unrolled.tasks.labelling import Labelled
from unrolled.tasks.numbers import check_read
from unrolled.tasks.read_labels import ReadLabelTask

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.data.store import Store
    from unrolled.models.classifier import Labelling
    from unrolled.text.readers import Framed, ReadLabels

FORMATS = ("ts", "npz", "frames")
"""Formats whose rows are sequences of frames."""

NAMES = (*LABELS, "activity")
"""What columns of labels are called."""

HEAD = 200
"""Rows that are looked at to tell a table with one frame a row."""

NUMBERS = 0.9
"""The share of numbers among its other cells from which a table is taken for one: single gaps are named later."""


@TASKS.register("signals")
class Signals(ReadLabelTask):
    """A label of a sequence of frames, or of each of its frames (``labels``).

    ``sequence`` is the column of a table with one frame a row that tells sequences apart, by name or 1-based number;
    null: the one that is called sequence, series, recording, session, segment or trial. ``label`` is its column of
    labels; null: the one that is called label, class, category, … All other columns are channels, but one that is
    called time, timestamp, step or frame.
    """

    columns = COLUMNS
    noun = "sequence"
    preset = "signals"
    sketched = 6
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
        key, label = sequence_column(table.columns), label_column(table.columns, NAMES)
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
        key, label = sequence_column(table.columns), label_column(table.columns, NAMES)
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
            place = label_column(table.columns, NAMES)
            label = None if place is None else table.columns[place]
        return gathered(table, self.sequence, label, by_frame=self.each)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_read(settings, "signals", "frames", "frames")
        if self.each and settings["text"]["separator"] is not None:
            raise SettingsError(
                "[text.separator] it was given, and each frame has one label (task.labels=frame). Leave it out."
            )

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadLabels:
        text = super().learn(settings, part)
        cast("Framed", text.source).names = part.table.channels
        return text

    def store(self, folder: Path, part: Part, text: ReadLabels, mark: str) -> Store:
        from unrolled.data.frames import frame_rows

        part = part._replace(table=arranged(part.table, cast("Framed", text.source).names))
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

    def answers(self, model: Labelling, batch: Labelled) -> tuple[Tensor, Tensor]:
        if not self.each:
            return super().answers(model, batch)
        logits = model(batch.given.ids, batch.given.mask).logits
        return logits[batch.given.mask], batch.labels[batch.given.mask]


def frames_first(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables, a sequence a row where they look like frames of labelled sequences; else as they are."""
    first = tables.get("train") or next(iter(tables.values()))
    if Signals.recognises(first) is None:
        return dict(tables)
    settings = Signals.conclude(first)[0].get("task", {})
    task = Signals(**settings)
    return {name: task.adapt(table) for name, table in tables.items()}
