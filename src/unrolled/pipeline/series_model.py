"""A trained forecaster: what comes after the end of a file, how well that went before, and on what it rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError, known
from unrolled.data.opening import from_file
from unrolled.data.parts import Part
from unrolled.data.readers import open_table
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.pipeline.series_windows import Trial, extended, prepared, seasonal, tried
from unrolled.tasks.forecast import Forecast
from unrolled.tasks.forecast_scores import beside, by_horizon, by_rule, by_target, forecast_scores
from unrolled.text.series import Series, read_series
from unrolled.workshop import arguments
from unrolled.workshop.forecast_promises import check_promises
from unrolled.workshop.forecasting import Place, foresee, restored, rests
from unrolled.workshop.promises import Promise

if TYPE_CHECKING:
    from unrolled.explain.outlook import Outlook
    from unrolled.tasks.scores import Score
    from unrolled.text.forecasting import SeriesText

PIECES = 24
"""Stretches of the past that are taken out one at a time to see what a forecast rests on."""

TRUSTED = 50
"""Forecasts over which the faithfulness of attention is measured after training."""


class Ahead(NamedTuple):
    """What is forecast of one series."""

    series: str
    times: list[str]  # [horizon], as the user writes them
    targets: tuple[str, ...]
    levels: tuple[float, ...]
    point: np.ndarray  # float64 [horizon, targets]
    quantiles: np.ndarray  # float64 [horizon, targets, levels]


@TRAINED.register("forecast")
class SeriesModel(Model):
    """A trained forecaster: ``predict``, ``evaluate``, ``explain``.

    Files are read as the training data were: the same columns by the same names, steps of the same width.
    """

    task: Forecast
    text: SeriesText
    lacks = {
        "score": "it says quantiles of each step, not the probability of a whole series: evaluate has their loss",
        "generate": "its quantiles are of each step for itself, so no path can be drawn: predict gives them",
        "embed": "series have no words that vectors could be of",
    }

    def __init__(self, plan: Any, text: SeriesText, network: Any, *, device: str = "auto") -> None:
        super().__init__(plan, text, network, device=device)
        self.task = self.task.settled(text)

    @property
    def levels(self) -> tuple[float, ...]:
        """Of the quantiles that it says."""
        return tuple(self.network.quantiles)

    # --- what comes -----------------------------------------------------------------------------------------------

    def predict(self, data: str | Path, *, steps: int | None = None, batch: int | None = None) -> list[Ahead]:
        """What comes after the last step of each series in a file, ``steps`` ahead (None: the horizon).

        Where the model reads columns that are known ahead, the file holds as many further rows with these and with
        empty targets. DataError with the place for what is missing.
        """
        count = self._steps(steps)
        most = None if batch is None else arguments.count("predict", "batch", batch)
        return self.ahead(self.series_of(data), count, most, where=str(data))

    def ahead(self, all_: Sequence[Series], count: int, most: int | None = None, where: str = "predict") -> list[Ahead]:
        """What comes after each of some series, which hold what is known ahead."""
        given = [extended(one, self.text, count, where) for one in all_]
        if not given:
            return []
        places = [Place(row, one.start) for row, one in enumerate(given)]
        encoded = [prepared(one, self.text, where) for one in given]
        seen = foresee(self.network, self.text, encoded, places, device=self.device, most=most)
        found = restored(seen, [self.text.scale(one) for one in given], self.text)
        return [
            Ahead(
                one.name,
                [self.written(one, one.start + step) for step in range(count)],
                self.text.roles.target,
                self.levels,
                found.point[row, :count],
                found.quantiles[row, :count],
            )
            for row, one in enumerate(given)
        ]

    def _steps(self, steps: int | None) -> int:
        horizon = self.text.window.horizon
        count = horizon if steps is None else arguments.count("predict", "steps", steps)
        if count > horizon:
            raise UsageError(
                f"predict: {count} steps were asked for, and the model forecasts {horizon} ahead. Train one with --set "
                f"task.horizon={count}"
            )
        return count

    @staticmethod
    def written(one: Series, step: int) -> str:
        """The time of a step of a series."""
        return one.clock.written(one.first + step)

    def series_of(self, data: str | Path) -> list[Series]:
        """The series of a file; DataError where there is none."""
        file = from_file(arguments.place("series", "data", data), "series")
        found = [read_series(row.fields) for row in self.task.adapt(open_table(file)).rows()]
        if not found:
            raise DataError(f"{data}: there is no series in it.")
        return found

    # --- scores ---------------------------------------------------------------------------------------------------

    def evaluate(self, data: str | Path, *, stride: int = 1) -> list[Score]:
        """MASE, sMAPE, MAE, RMSE, pinball loss and coverage of forecasts from every ``stride``-th step of a file that
        came after training, and the MASE of the naive rules."""
        trial = self._trial(self.series_of(data), stride, str(data))
        found = beside(trial.forecasts, trial.origins, self.text.window.season, self.levels)
        return forecast_scores(found, trial.origins, self.levels, self.text.window.season)

    def _trial(self, all_: Sequence[Series], stride: int, where: str) -> Trial:
        return tried(
            self.network, self.text, all_, stride=arguments.count("evaluate", "stride", stride), device=self.device,
            where=where,
        )  # fmt: skip

    def test(self, part: Part) -> Tested:
        trial = self._trial([read_series(row.fields) for row in part.rows()], 1, str(part.table.path))
        found = beside(trial.forecasts, trial.origins, self.text.window.season, self.levels)
        return Tested(forecast_scores(found, trial.origins, self.levels, self.text.window.season), len(trial.origins))

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far its attention says what forecasts rest on, over some validation windows."""
        from unrolled.explain.outlook import trust

        pairs = []
        for row in valid.rows():
            one = read_series(row.fields)
            first = max(one.start, self.text.window.least)
            origins = np.unique(np.linspace(first, one.ends - 1, 5).astype(int)).tolist() if one.ends > first else []
            for origin in origins:
                pairs.append(self._reading(one, origin))
            if len(pairs) >= TRUSTED:
                break
        if not pairs or pairs[0][0] is None:
            return {"faithfulness": None}
        found = trust([read for read, _ in pairs], [moves for _, moves in pairs])
        return {"faithfulness": {name: one._asdict() for name, one in found.items()}}

    def _reading(self, one: Series, origin: int) -> tuple[Any, np.ndarray]:
        """(attention, movement) of a forecast over stretches of its past, each [horizon, stretches]."""
        series = prepared(one._replace(start=origin), self.text, one.name)
        borders, moves = rests(self.network, self.text, series, origin, pieces=PIECES, device=self.device)
        seen = foresee(self.network, self.text, [series], [Place(0, origin)], device=self.device)
        if seen.weights is None:
            return None, moves.mean(axis=2)
        return np.add.reduceat(seen.weights[0][:, : borders[-1]], borders[:-1], axis=1), moves.mean(axis=2)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, data: str | Path, series: str | None = None, target: str | None = None) -> Outlook:
        """The forecast of one series of a file (the first, unless one is named) and one target, with what each step
        ahead read of the past and how far it moves without each stretch of that."""
        all_ = self.series_of(data)
        names = [one.name for one in all_]
        if series is not None and series not in names:
            raise UsageError(f"explain: no series of {data} is called '{series}'. {known(series, names[:50])}")
        targets = self.text.roles.target
        if target is not None and target not in targets:
            raise UsageError(f"explain: '{target}' is none of the targets. {known(target, targets)}")
        return self._outlook(
            all_[names.index(series) if series is not None else 0], targets.index(target or targets[0])
        )

    def _outlook(self, one: Series, target: int) -> Outlook:
        from unrolled.explain.outlook import Outlook, trust

        horizon = self.text.window.horizon
        given = extended(one, self.text, horizon, "explain")
        encoded = prepared(given, self.text, "explain")
        seen = foresee(self.network, self.text, [encoded], [Place(0, given.start)], device=self.device)
        found = restored(seen, [self.text.scale(given)], self.text)
        borders, moves = rests(self.network, self.text, encoded, given.start, pieces=PIECES, device=self.device)
        count = int(borders[-1])
        begin = given.start - count
        read = None if seen.weights is None else seen.weights[0][:, :count]
        pieces = None if read is None else np.add.reduceat(read, borders[:-1], axis=1)
        past = given.values[begin : given.start, target]
        spread = float(np.nanstd(encoded[begin : given.start, target])) or 1.0
        name = self.text.roles.target[target]
        return Outlook(
            name=f"{one.name} {name}".strip(),
            past=past,
            times=[self.written(given, step) for step in range(begin, given.start + horizon)],
            point=found.point[0, :, target],
            quantiles=found.quantiles[0, :, target],
            levels=self.levels,
            naive=seasonal(given, self.text)[:, target],
            attention=read,
            moves=np.repeat(moves[:, :, target] / spread, np.diff(borders), axis=1),
            faithfulness=None if pieces is None else trust([pieces], [moves[:, :, target]]),
        )

    # --- after training -------------------------------------------------------------------------------------------

    def promises(self, file: str | None, count: int) -> list[Promise]:
        return check_promises(self, None if file is None else self.series_of(file)[:count], count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, steps: int | None = None, batch: int | None = None) -> Iterator[Shown]:
        """A table, comma-separated: series, time, target, forecast and a column for each quantile; a row a step."""
        names = [f"q{level:g}" for level in self.levels]
        header = True
        for one in self.predict(file, steps=steps, batch=batch):
            for step, time in enumerate(one.times):
                for place, target in enumerate(one.targets):
                    point = float(one.point[step, place])
                    quantiles = one.quantiles[step, place].tolist()
                    cells = [_cell(one.series), time, _cell(target), *(f"{value:.8g}" for value in (point, *quantiles))]
                    line = ",".join(cells)
                    if header:
                        line = f"{','.join(['series', 'time', 'target', 'forecast', *names])}\n{line}"
                    header = False
                    tree = {"series": one.series, "time": time, "target": target, "forecast": point}
                    yield Shown(line, tree | {"quantiles": dict(zip(names, quantiles, strict=True))})

    def show_evaluate(self, part: Part, *, stride: int = 1, compare: Model | None = None) -> Evaluated:
        """Scores; tables beside the naive rules (and another model): of all, by steps ahead, by target."""
        all_ = [read_series(row.fields) for row in part.rows()]
        trial = self._trial(all_, stride, str(part.table.path))
        season, levels = self.text.window.season, self.levels
        found = beside(trial.forecasts, trial.origins, season, levels)
        scores = forecast_scores(found, trial.origins, levels, season)
        if compare is not None:
            found["other model"] = self._other(compare, all_, trial, stride, str(part.table.path))
        tables = {
            "beside": ("Beside the rules that cost nothing", by_rule(found, trial.origins, levels)),
            "horizon": ("By steps ahead", by_horizon(found, trial.origins, levels)),
        }
        if len(self.text.roles.target) > 1:
            tables["targets"] = ("By target", by_target(found, trial.origins, levels, self.text.roles.target))
        return Evaluated(scores, len(trial.origins), tables=tables)

    def _other(self, other: Model, all_: Sequence[Series], mine: Trial, stride: int, where: str) -> Any:
        if not isinstance(other, SeriesModel) or (other.text.roles, other.levels) != (self.text.roles, self.levels):
            raise UsageError("evaluate: --compare is a model of other targets, columns or quantiles.")
        trial = other._trial(all_, stride, where)
        if trial.at != mine.at or other.text.window.horizon != self.text.window.horizon:
            raise UsageError("evaluate: --compare is a model that forecasts other steps. Give one of the same horizon.")
        return trial.forecasts

    def show_explain(self, line: str, *, target: str | None = None) -> Outlook:
        """``line`` is a file, and after a # the name of a series in it: ``sales.csv#north``; ``target``: a column."""
        file, _, series = line.rpartition("#") if "#" in line else (line, "", "")
        return self.explain(file, series or None, target)


def _cell(text: str) -> str:
    """A cell of a comma-separated table."""
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n') else text
