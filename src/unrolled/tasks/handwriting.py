"""Handwriting and drawings: what a pen did, point by point; the density of every next point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import Loss
from unrolled.data.drawings import FORMATS, Coordinates, drawn, has_points
from unrolled.data.parts import Part, hold_out
from unrolled.data.strokes import COLUMNS
from unrolled.data.table import Table
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Task, Validation, moved
from unrolled.tasks.bucketing import bucketed
from unrolled.text.drawings import DrawnText

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from unrolled.data.batching import Columns
    from unrolled.data.frames import Drawings
    from unrolled.data.store import Encoder, Store
    from unrolled.models.handwriting import Handwriting

SKETCHED = 10
"""Labels of a preset that is shown without data."""


@TASKS.register("handwriting")
class HandwritingTask(Task[DrawnText]):
    """Pen strokes, point by point: p(x_1 … x_n) = Π_t p(x_t | x_<t), and the pen at each.

    ``coordinates`` says whether x and y are places (``absolute``) or steps from the point before (``offset``); null: as
    the format has it (JSON lines: places; archives: steps; tables: x, y or dx, dy). ``labels``: a drawing is drawn
    given its label, where there are some.
    """

    columns = COLUMNS
    noun = "drawing"
    unit = "points"
    text = DrawnText
    read_by: Mapping[str, str] = {}
    models = ("handwriting",)
    preset = "handwriting"
    stop_on = "loss"
    measures = ("loss", "pen_accuracy")
    manual = Manual(
        commands=(
            "unrolled generate {} --samples 12 --to drawings.svg",
            "unrolled score {} drawings.jsonl",
            "unrolled evaluate {} drawings.jsonl",
        ),
        python="generate(12)  # each with .strokes and .svg()",
        tags=("handwriting", "sketch", "mixture-density", "rnn"),
    )

    def __init__(self, *, coordinates: Coordinates | None = None, labels: bool = True) -> None:
        self.coordinates, self.labels = coordinates, labels

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        if table.format in FORMATS:
            return f"{table.path}: drawings in strokes."
        return f"{table.path}: a point a row, with drawing, x, y and pen." if has_points(table.columns) else None

    def adapt(self, table: Table) -> Table:
        return drawn(table, self.coordinates)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        for name in ("sampling", "label_smoothing"):
            if settings["train"][name]:
                raise SettingsError(
                    f"[train.{name}] {settings['train'][name]} was given, and drawings have no symbols. Set it to 0."
                )

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return hold_out(part, data, self.noun)

    def learn(self, settings: Mapping[str, Any], part: Part) -> DrawnText:
        """Labels of held-out rows of the same table are known too."""
        text = super().learn(settings, part)
        whole = part._replace(low=0.0, high=1.0)
        text.labels = text.labels.admitting(label for row in whole.rows() if (label := row.fields[1]) and self.labels)
        return text

    def encoders(self, text: DrawnText) -> dict[str, Encoder]:
        return {"drawing": text.drawings, "label": text.label_reader}

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.frames import frame_rows

        rows = frame_rows(store, "drawing")
        return bucketed(rows, settings, train=train, name=name, specials=(0,), collate=_collate)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: DrawnText) -> nn.Module:
        from unrolled.models import MODELS

        reader = text.drawings
        return MODELS.build(settings, len(text.labels), reader.scale, reader.floor, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        return MODELS.build(settings["model"], SKETCHED, 1.0, 0.0, where="model"), f"{SKETCHED} labels"

    def loss(
        self,
        network: nn.Module,
        batch: Drawings,
        smoothing: float = 0.0,  # noqa: ARG002
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        """Nats, per square of the user's unit and with the pen; counted are points."""
        said: Tensor = network(batch.points.ids, batch.points.mask, batch.labels)
        return Loss(-said.sum(), int(batch.points.mask.sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        from unrolled.models.handwriting import before

        model = cast("Handwriting", given.network)
        total, right, count = 0.0, 0, 0
        with given.forward():
            for rows in given.batches.plan(0):
                batch: Drawings = moved(given.batches.load(rows), given.device)
                points, mask = batch.points
                ahead, _ = model.ahead(before(points), mask, batch.labels, model.initial(len(points)))
                total -= float(model.log_density(ahead, points)[mask].double().sum())
                right += int((ahead.pen.argmax(2) == points[..., 2])[mask].sum())
                count += int(mask.sum())
        return {"loss": total / max(count, 1), "pen_accuracy": right / max(count, 1)}


def _collate(columns: Columns, rows: np.ndarray) -> Drawings:  # noqa: ARG001
    from unrolled.data.frames import Drawings, pad_frames, pad_labels

    return Drawings(pad_frames(columns[0]), pad_labels(columns)[:, 0])


def drawings_first(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables, a drawing a row where they look like drawings; else as they are."""
    first = tables.get("train") or next(iter(tables.values()))
    if HandwritingTask.recognises(first) is None:
        return dict(tables)
    return {name: drawn(table) for name, table in tables.items()}
