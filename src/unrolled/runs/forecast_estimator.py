"""A forecaster as a scikit-learn style estimator: a series in, its next steps out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from unrolled.base.errors import UsageError
from unrolled.runs.fitting import Estimator
from unrolled.workshop import arguments

if TYPE_CHECKING:
    from unrolled.pipeline import SeriesModel
    from unrolled.text.series import Series

TIME = "time"


class Forecaster(Estimator):
    """Learns to continue a series; clones, and gives and takes parameters, as scikit-learn's estimators do.

    ``horizon``: the most steps that it will forecast; ``context``, ``season``: steps that it looks back on, and of a
    season (None: told by the data). ``preset`` is one of the task ``forecast``; ``settings`` a tree over it, e.g.
    ``{"model": {"quantiles": (0.05, 0.5, 0.95)}}``; ``minutes`` and ``seed`` are laid over both where they are given.
    ``out`` is where the model is saved; None: nowhere. ``quiet``: no progress on stderr.

    After ``fit``: ``model_``, the trained `SeriesModel`; ``quantiles_``, the levels that it says.
    """

    def __init__(
        self,
        horizon: int = 12,
        *,
        context: int | None = None,
        season: int | None = None,
        preset: str | None = None,
        settings: Mapping[str, Any] | None = None,
        minutes: float | None = None,
        seed: int | None = None,
        out: str | Path | None = None,
        quiet: bool = True,
    ) -> None:
        self.horizon = horizon
        self.context = context
        self.season = season
        self.preset = preset
        self.settings = settings
        self.minutes = minutes
        self.seed = seed
        self.out = out
        self.quiet = quiet

    def fit(self, y: Any, X: Any = None) -> Self:
        """Train on a series ``y`` [time], or several targets of it [time, targets]; NaN: missing (with ``settings``
        that say what to do: ``{"task": {"missing": "mask"}}``).

        ``X`` [time, columns]: what else is read, known ahead when forecasts are made. The last steps are held out to
        choose the best weights (``data.valid_share``). UsageError for other shapes.
        """
        targets, beside = _table("fit", "y", y), _table("fit", "X", X)
        if beside is not None and len(beside) != len(targets):
            raise UsageError(f"fit: y has {len(targets)} steps and X has {len(beside)}; give as many of both.")
        given: dict[str, Any] = {"time": TIME, "target": _names("y", targets), "known": _names("x", beside)}
        given |= {"horizon": arguments.count("fit", "horizon", self.horizon)}
        given |= {name: value for name in ("context", "season") if (value := getattr(self, name)) is not None}
        model: Any = self.trained(_rows(targets, beside), "forecast", {}, given, argument="y")
        self.model_: SeriesModel = model
        self.quantiles_ = model.levels
        self._flat = np.ndim(y) == 1
        self._series = _series(model, targets, beside)
        return self

    def predict(self, fh: int | Sequence[int] | None = None, X: Any = None) -> np.ndarray:
        """The steps after the end of the series: ``fh`` of them, those of a list (1 is the first), or all (None).

        Float64 [steps], or [steps, targets] as ``y`` was given. ``X`` [steps at least, columns]: the future of what
        ``fit`` was given. UsageError for steps behind the horizon.
        """
        found, steps = self._ahead("predict", fh, X)
        return self._shaped(found.point[steps])

    def predict_quantiles(self, fh: int | Sequence[int] | None = None, X: Any = None) -> np.ndarray:
        """As ``predict``, the quantiles of each: float64 [steps, quantiles], or [steps, targets, quantiles]."""
        found, steps = self._ahead("predict_quantiles", fh, X)
        return self._shaped(found.quantiles[steps])

    def _ahead(self, verb: str, fh: Any, X: Any) -> tuple[Any, list[int]]:
        if not hasattr(self, "model_"):
            raise NotFittedError("this Forecaster is not fitted yet: call fit(y) first.")
        horizon = self.model_.text.window.horizon
        given = np.asarray(horizon if fh is None else fh)
        whole = given.dtype.kind in "iu" and given.ndim < 2 and given.size > 0
        wanted = [] if not whole else list(range(1, int(given) + 1)) if given.ndim == 0 else given.tolist()
        if not wanted or not all(1 <= step <= horizon for step in wanted):
            raise UsageError(f"{verb}: fh is {fh!r}; give steps from 1 to the horizon, {horizon}, whole ones.")
        future = _table(verb, "X", X)
        one = self._series
        columns = len(one.roles.known)
        if (0 if future is None else future.shape[1]) != columns:
            raise UsageError(f"{verb}: X has {0 if future is None else future.shape[1]} columns; fit had {columns}.")
        if future is not None:
            empty = np.full((len(future), len(one.roles.target)), np.nan)
            values = np.concatenate([one.values, np.concatenate([empty, future], axis=1)])
            one = one._replace(values=values, lines=np.arange(1, len(values) + 1))
        found = self.model_.ahead([one], max(map(int, wanted)), where=verb)[0]
        return found, [int(step) - 1 for step in wanted]

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._flat else values


def _table(verb: str, name: str, given: Any) -> Any:
    """``given`` as float64 [time, columns]; UsageError where it is none."""
    if given is None and name == "X":
        return None
    try:
        found = np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError):
        raise UsageError(f"{verb}: {name} is no array of numbers [time] or [time, columns].") from None
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or 0 in found.shape:
        raise UsageError(f"{verb}: {name} has shape {list(found.shape)}; give [time] or [time, columns], not empty.")
    if np.isinf(found).any():
        raise UsageError(f"{verb}: {name} holds an infinite number in step {int(np.isinf(found).any(1).argmax())}.")
    return found


def _names(letter: str, table: Any) -> tuple[str, ...]:
    return () if table is None else tuple(f"{letter}{place}" for place in range(table.shape[1]))


def _rows(targets: np.ndarray, beside: np.ndarray | None) -> Iterator[dict[str, str]]:
    """A row a step, its number as the time."""
    names = (*_names("y", targets), *_names("x", beside))
    whole = targets if beside is None else np.concatenate([targets, beside], axis=1)
    for step, row in enumerate(whole.tolist()):
        yield {TIME: str(step)} | {name: repr(value) for name, value in zip(names, row, strict=True)}


def _series(model: SeriesModel, targets: np.ndarray, beside: np.ndarray | None) -> Series:
    from unrolled.text.series import Series

    values = targets if beside is None else np.concatenate([targets, beside], axis=1)
    return Series("", model.text.clock, model.text.roles, 0.0, 0, values, (), np.arange(1, len(values) + 1))
