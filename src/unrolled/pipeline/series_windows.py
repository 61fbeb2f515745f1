"""Series made ready for a forecaster: encoded, as long as it forecasts, and tried from one origin after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError
from unrolled.tasks.forecast_scores import Origin, Tried, naive_forecasts
from unrolled.tasks.forecast_sizes import encoded
from unrolled.text.series import Series
from unrolled.workshop.forecasting import Place, foresee, restored

if TYPE_CHECKING:
    from unrolled.models import Forecaster
    from unrolled.text.forecasting import SeriesText


class Trial(NamedTuple):
    """Forecasts of a backtest, and what came."""

    forecasts: Tried
    origins: list[Origin]
    at: list[tuple[str, float]]  # series and position of each


def prepared(one: Series, text: SeriesText, where: str) -> np.ndarray:
    """Float32 [time, channels]; DataError names the file, or the call."""
    return encoded(one, text, where)


def extended(one: Series, text: SeriesText, steps: int, where: str) -> Series:
    """The series up to a horizon after its end, which is its ``start``; what is not known there is missing.

    DataError where the past is too short, or what should be known of the next ``steps`` is not.
    """
    name = f"the series '{one.name}'" if one.name else "the series"
    least, horizon, roles = text.window.least, text.window.horizon, text.roles
    end = one.ends
    if end < least:
        raise DataError(f"{where}: {name} has {end} steps, and a forecast looks back on {least} at least. Give more.")
    first = len(roles.target) + len(roles.past)
    if roles.known:
        real = np.isfinite(one.values[end : end + steps, first:])
        if len(real) < steps or (text.missing == "refuse" and not real.all()):
            have, last = int(real.all(axis=1).sum()), one.clock.written(one.first + end - 1)
            raise DataError(
                f"{where}: the model reads {', '.join(roles.known)} ahead, and after {last} {name} has {have} of the "
                f"{steps} steps of it. Add these rows, with the targets left empty."
            )
    missing = max(end + horizon - len(one.values), 0)
    values = np.concatenate([one.values, np.full((missing, one.values.shape[1]), np.nan)])
    lines = np.concatenate([one.lines, np.zeros(missing, np.int64)])
    return one._replace(values=values, lines=lines, start=end)


def seasonal(one: Series, text: SeriesText) -> np.ndarray:
    """The seasonal naive forecast [horizon, targets] from the ``start`` of a series on."""
    before = one.values[: one.start, : len(text.roles.target)]
    scale = text.scale(one)
    origin = Origin(before, np.empty((0, before.shape[1])), scale.last, scale.season)
    return naive_forecasts([origin], text.window.horizon, text.window.season, [0.5]).point[0]


def tried(
    network: Forecaster, text: SeriesText, all_: Sequence[Series], *, stride: int, device: Any, where: str
) -> Trial:
    """Forecasts from every ``stride``-th step that comes after training, each beside the whole horizon that came.

    A forecast sees what came before its origin and nothing else, and the network stays as it was trained. DataError
    where no such step is.
    """
    window, count = text.window, len(text.roles.target)
    ready: list[np.ndarray] = []
    places, origins, at, scales = [], [], [], []
    for one in all_:
        learnt = int(np.ceil(text.ends - one.first - 1e-6)) if one.name in text.scales else 0
        first = max(one.start, learnt, window.least)
        one = one._replace(start=first)
        steps = range(first, one.ends - window.horizon + 1, stride)
        if not len(steps):
            continue
        scale = text.scale(one)
        targets = one.values[:, :count]
        for origin in steps:
            places.append(Place(len(ready), origin))
            after = targets[origin : origin + window.horizon]
            origins.append(Origin(targets[:origin], after, scale.last, scale.season))
            at.append((one.name, one.first + origin))
            scales.append(scale)
        ready.append(prepared(one, text, where))
    if not ready:
        raise DataError(
            f"{where}: no series has {window.least} steps to look back on and {window.horizon} after the last training "
            f"step ({text.clock.written(text.ends - 1)}) to be scored on. Give later steps, or train with a smaller "
            "task.horizon."
        )
    return Trial(restored(foresee(network, text, ready, places, device=device), scales, text), origins, at)
