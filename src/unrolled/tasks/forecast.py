"""Forecasts: series of numbers in, quantiles of their next steps out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from annotated_types import Ge, Gt

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.base.protocol import Loss
from unrolled.data.parts import Part
from unrolled.data.series import gathered
from unrolled.data.series_columns import HEAD, Wanted, time_column
from unrolled.data.series_parts import cut, joined, spans
from unrolled.data.table import Row, Table, is_number
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Validation
from unrolled.tasks.classify import LABELS
from unrolled.tasks.forecast_sizes import cutting_of, encoded, extent_of, sized
from unrolled.text.clock import Clock
from unrolled.text.forecasting import SeriesText, usual_horizon
from unrolled.text.series import COLUMNS, read_series

if TYPE_CHECKING:
    from torch import nn

    from unrolled.data.store import Encoder, Store
    from unrolled.data.windows import Windowed

USUAL_BATCH = 32
"""Windows of a batch where neither the data nor the user say how many."""

Names = str | tuple[str, ...]


@TASKS.register("forecast")
class Forecast(Task[SeriesText]):
    """The next ``horizon`` steps of each series from the last ``context`` ones, every quantile of every step at once.

    A row of the table is a step of one series. ``time``, ``series``: the columns that hold its time and tell series
    apart; ``target``: those that are forecast; ``past``, ``known``, ``static``: others that are read, of which the
    future is unknown, known ahead (a price, a holiday), or that never change. Null: told by names and content.
    ``time_format``: how times are written, as strftime has it.

    ``missing``: a number that is missing is refused, is what was last there (``forward``), or nothing (``mask``); in
    both the network sees which are missing, and none is scored. ``every``: the width of a step (``15min``, ``1h``,
    ``1month``, a number): each is the mean of what falls into it; null: steps must be even, none missing or twice.

    ``horizon``, ``context``, ``season`` in steps; null: from the calendar and the training data. ``calendar``: the hour
    of the day, the day of the week and the time of the year are read, as far as steps are shorter.

    Parts follow each other in time. Validation is the last ``valid`` steps (null: ``data.valid_share`` of the longest
    series, a horizon at least), before the last ``test`` ones (null: none); files given instead continue the training
    series. ``windows``: so many drawn an epoch; null: all.
    """

    columns = COLUMNS
    noun = "forecast"
    text = SeriesText
    read_by: Mapping[str, str] = {}
    models = ("forecaster",)
    preset = "forecast"
    stop_on = "loss"
    measures = ("loss",)
    unit = "numbers"
    unused = dict.fromkeys(
        ("data.max_length", "data.too_long"), "series of any length are read in windows of task.context steps."
    )
    manual = Manual(
        commands=(
            "unrolled predict {} series.csv",
            "unrolled evaluate {} series.csv",
            "unrolled explain {} series.csv --to picture.svg",
        ),
        python="predict('series.csv')",
        tags=("time-series-forecasting", "rnn"),
        pipeline="time-series-forecasting",
    )

    def __init__(
        self,
        *,
        time: str | None = None,
        series: str | None = None,
        target: Names | None = None,
        past: Names = (),
        known: Names = (),
        static: Names = (),
        time_format: str | None = None,
        every: Annotated[float, Gt(0)] | str | None = None,
        missing: Literal["refuse", "forward", "mask"] = "refuse",
        horizon: Annotated[int, Ge(1)] | None = None,
        context: Annotated[int, Ge(2)] | None = None,
        season: Annotated[int, Ge(1)] | None = None,
        calendar: bool = True,
        valid: Annotated[int, Ge(1)] | None = None,
        test: Annotated[int, Ge(1)] | None = None,
        windows: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        self.wanted = Wanted(
            time=time,
            series=series,
            target=None if target is None else _names(target),
            past=_names(past),
            known=_names(known),
            static=_names(static),
            time_format=time_format,
            every=every,
            missing=missing,
        )
        self.horizon, self.context, self.season, self.calendar = horizon, context, season, calendar
        self.valid, self.test, self.windows = valid, test, windows
        self.clock: Clock | None = None

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        head = list(islice(table.rows(lambda _: None), HEAD))
        lower = [name.strip().casefold() for name in table.columns]
        if len(head) < 3 or len(lower) < 2 or any(name in lower for name in (*LABELS, "activity")):
            return None
        time = time_column(table, head, Wanted())
        if time is None:
            return None
        others = [place for place in range(len(lower)) if place != time]
        cells = [[row.fields[place] for row in head] for place in others]
        numeric = [all(map(is_number, column[:20])) for column in cells]
        names = all(
            number or 2 * len(set(column)) <= len(column) for number, column in zip(numeric, cells, strict=True)
        )
        if not any(numeric) or not names:  # text that is never the same tells no series apart
            return None
        return f"{table.path}: times in the column '{table.columns[time]}' beside numbers."

    def settled(self, text: SeriesText) -> Forecast:
        """The task of a trained model: its columns and its clock, whatever a file looks like."""
        found = copy(self)
        roles = text.roles
        found.wanted = replace(
            self.wanted, target=roles.target, past=roles.past, known=roles.known, static=roles.static
        )
        found.clock = text.clock
        return found

    def adapt(self, table: Table) -> Table:
        return table if table.format == "series" else gathered(table, self.wanted, self.clock)

    def follow(self, tables: Mapping[str, Table]) -> dict[str, Table]:
        """The tables of validation and test, the steps before them in front of theirs, only read."""
        found = dict(tables)
        if self.valid is not None and "valid" in found:
            raise UsageError(
                f"task.valid={self.valid} takes the last steps of the training file, and --valid was given. Give one "
                "of them."
            )
        if self.test is not None and "train" in found:
            given = next((name for name in ("valid", "test") if name in found), None)
            if given is not None:
                raise UsageError(
                    f"task.test={self.test} takes the last steps of the training file, and --{given} was given. Give "
                    "one of them."
                )
            low, high, longest = spans(lambda: found["train"].rows())
            if self.test >= longest:
                raise DataError(
                    f"{found['train'].path}: the longest series has {longest} steps, and task.test takes {self.test}."
                )
            whole = found["train"]
            border = high - self.test
            found["train"] = cut(whole, low, border)
            found["test"] = replace(cut(whole, border, np.inf), guessed=[])
            return found
        before = found.get("train")
        for name in ("valid", "test"):
            if name in found and before is not None:
                found[name] = before = joined(before, found[name])
        return found

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        clock = self._clock(part.rows)
        low, high, longest = spans(part.rows)
        horizon = self.horizon or usual_horizon(clock)
        steps = self.valid or max(horizon, min(round(data["valid_share"] * longest), data["valid_rows"]))
        if longest < steps + horizon + 2:
            raise DataError(
                f"{part.table.path}: the longest series has {longest} steps; {steps} are held out for validation and "
                f"forecasts reach {horizon} ahead, so {steps + horizon + 2} are the least. Give more, or a smaller "
                "horizon: --set task.horizon=N"
            )
        border = high - steps
        train, valid = cut(part.table, low, border), cut(part.table, border, np.inf)
        said = f"Held out for validation: the last {steps} steps, from {clock.written(border)} on."
        return part._replace(table=train), part._replace(table=valid), said

    @staticmethod
    def _clock(rows: Callable[[], Iterator[Row]]) -> Clock:
        first = next(rows(), None)
        if first is None:
            raise DataError("there is no series in it.")
        return read_series(first.fields).clock

    def size(self, part: Part) -> Sized:
        """So many epochs that there are enough updates, of batches that suit the number of windows."""
        steps = sum(read_series(row.fields).ends for row in part.rows())
        tree = sized(min(steps, self.windows or steps))
        return Sized(f"sized to {steps} steps", tree, lambda _: [f"{steps:,} steps to learn from."])

    def learn(self, settings: Mapping[str, Any], part: Part) -> SeriesText:
        return SeriesText.learn(
            settings,
            lambda: (row.fields for row in part.rows()),
            horizon=self.horizon,
            context=self.context,
            season=self.season,
            calendar=self.calendar,
            missing=self.wanted.missing,
        )

    def encoders(self, text: SeriesText) -> dict[str, Encoder]:  # noqa: ARG002
        return {}  # a series is encoded as a whole: `store`

    def store(self, folder: Path, part: Part, text: SeriesText, mark: str) -> Store:
        from unrolled.data.store import Store
        from unrolled.data.windows import flat

        how = cutting_of(text)

        def rows() -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
            for place, fields in part.rows():
                one = read_series(fields)
                steps = encoded(one, text, str(part.table.path))[: one.ends]
                yield place, flat(steps, one.start, how), one.lines[: one.ends]

        places, steps, lines = tee(rows(), 3)
        return Store.build(
            folder,
            {"steps": (row[1] for row in steps), "lines": (row[2] for row in lines)},
            places=(row[0] for row in places),
            vocabulary_sizes={"steps": 0, "lines": 1 << 31},
            fingerprint=mark,
        )

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.windows import Windows

        training = settings["train"]
        size = training["batch_sentences"] or USUAL_BATCH
        found = Windows(store, size=size, seed=training["seed"], shuffle=train, name=name, draw=self.windows)
        if not len(found):
            raise DataError(
                f"{name}: no series has {found.how.least} steps to look back on and one to forecast for "
                f"{'training' if train else 'validation'}. Give longer ones, or set task.context, task.horizon or "
                "task.valid."
            )
        return found

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: SeriesText) -> nn.Module:
        from unrolled.models import MODELS

        return MODELS.build(settings, extent_of(text), where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS
        from unrolled.models.forecaster import Extent

        context, horizon = settings["task"]["context"] or 36, settings["task"]["horizon"] or 12
        extent = Extent(1, 3, 1, 2, context, horizon, 12, settings["task"]["missing"])
        network = MODELS.build(settings["model"], extent, where="model")
        return network, f"one target, {context} steps back and {horizon} ahead"

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        for name, value in (("label_smoothing", 0.0), ("sampling", 0.0)):
            if settings["train"][name] != value:
                raise SettingsError(
                    f"[train.{name}] {settings['train'][name]} was given, and a forecast is of numbers, all steps at "
                    "once. Set it to 0."
                )
        if settings["model"].get("point") == "mean" and settings["text"]["transform"] != "none":
            raise SettingsError(
                f"[model.point] the mean was asked for, and that of logarithms is none of the numbers "
                f"(text.transform={settings['text']['transform']}). Add --set text.transform=none"
            )

    def loss(
        self,
        network: nn.Module,
        batch: Windowed,
        smoothing: float = 0.0,  # noqa: ARG002
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        from unrolled.models.forecaster import Forecaster, pinball

        found = network(batch.past, batch.mask, batch.seen, batch.future)
        levels = cast("Forecaster", network).quantiles
        return Loss(pinball(found, levels, batch.target, batch.wanted), int(batch.wanted.sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        return {"loss": self.mean_loss(given)}


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def series_first(tables: Mapping[str, Table]) -> dict[str, Table] | None:
    """The tables with a row a series where they look like steps of series; else None."""
    first = tables.get("train") or next(iter(tables.values()))
    if first.format in ("ts", "npz", "frames") or Forecast.recognises(first) is None:
        return None
    task = Forecast(missing="mask")  # what is missing is told, not refused
    return task.follow({name: task.adapt(table) for name, table in tables.items()})
