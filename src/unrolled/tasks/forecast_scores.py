"""How good forecasts are, beside the naive rules that cost nothing: MASE, sMAPE, pinball loss, coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.tasks.scores import Score
from unrolled.text.seasons import Naive

Numbers = NDArray[np.float64]

BANDS, EACH = 8, 12
"""Rows of the table by steps ahead; up to ``EACH`` steps each has its own."""


class Origin(NamedTuple):
    """Where a forecast was made, and what came: of one series, [time, targets] before and [horizon, targets] after."""

    before: Numbers
    after: Numbers  # NaN: not known
    last: Sequence[Naive]  # of each target: how far it was from the step before in training
    season: Sequence[Naive]  # and from that a season before


class Tried(NamedTuple):
    """Forecasts of some origins."""

    point: Numbers  # [origins, horizon, targets]
    quantiles: Numbers  # [origins, horizon, targets, quantiles]


class Measured(NamedTuple):
    """Scores of some forecasts: means over all steps, targets and origins whose truth is known."""

    mase: float  # Σ|y - ŷ| / n over the mean |y_t - y_{t-m}| of the training part (Hyndman & Koehler 2006)
    smape: float  # 200 |y - ŷ| / (|y| + |ŷ|), in per cent (Makridakis et al. 2020, M4)
    mae: float
    rmse: float
    pinball: float  # mean over the quantiles of max(q (y - ŷ), (q - 1) (y - ŷ))
    coverage: float  # share of truths between the outermost quantiles


def naive_forecasts(origins: Sequence[Origin], horizon: int, lag: int, levels: Sequence[float]) -> Tried:
    """ŷ_{t+h} = y_{t+h-km}, k the least that reaches the past, m = ``lag``: the naive forecast with 1, the seasonal one
    with a season. A missing value is that of the season before, and where there is none the last known.

    Quantiles are normal ones around it, σ the root mean square of y_t - y_{t-m} in training times √k (Hyndman &
    Athanasopoulos 2021, Forecasting, §5.5).
    """
    steps = np.arange(horizon)
    reach = steps // lag + 1
    normal = np.array([NormalDist().inv_cdf(level) for level in levels])
    point = np.stack([_repeated(one.before, lag, steps) for one in origins])
    roots = np.array([[rule.root for rule in (one.last if lag == 1 else one.season)] for one in origins])
    spread = np.nan_to_num(roots)[:, None, :] * np.sqrt(reach)[None, :, None]
    return Tried(point, point[..., None] + spread[..., None] * normal)


def _repeated(before: Numbers, lag: int, steps: NDArray[np.int64]) -> Numbers:
    """[steps, targets]: what stood a season before each step ahead."""
    real = np.isfinite(before)
    places = np.maximum.accumulate(np.where(real, np.arange(len(before))[:, None], -1), axis=0)[-1]
    last = np.where(places >= 0, before[np.maximum(places, 0), np.arange(before.shape[1])], np.nan)
    found = np.full((len(steps), before.shape[1]), np.nan)
    back = len(before) - lag + steps % lag
    while (missing := ~np.isfinite(found)).any() and back.max() >= 0:
        value = np.where(back[:, None] >= 0, before[np.maximum(back, 0)], np.nan)
        found = np.where(missing, value, found)
        back = back - lag
        if lag == 1:
            break
    return np.where(np.isfinite(found), found, last)


def measured(tried: Tried, origins: Sequence[Origin], levels: Sequence[float]) -> Measured:
    """Scores of forecasts for ``origins``; NaN where no truth is known, and a MASE where no series ever changes."""
    truth = np.stack([one.after for one in origins])
    scale = np.array([[rule.error for rule in one.season] for one in origins])[:, None, :]
    error = truth - tried.point
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(scale > 0, np.abs(error) / scale, np.nan)
        size = np.abs(truth) + np.abs(tried.point)
        shares = np.where(size > 0, 200 * np.abs(error) / size, np.where(np.isfinite(error), 0.0, np.nan))
    lean = truth[..., None] - tried.quantiles
    level = np.array(levels)
    pinball = np.maximum(level * lean, (level - 1) * lean)
    inside = np.where(
        np.isfinite(truth), (truth >= tried.quantiles[..., 0]) & (truth <= tried.quantiles[..., -1]), np.nan
    )
    return Measured(
        _mean(scaled),
        _mean(shares),
        _mean(np.abs(error)),
        float(np.sqrt(_mean(error**2))),
        _mean(pinball),
        _mean(inside),
    )


def _mean(values: Numbers) -> float:
    real = np.isfinite(values)
    return float(values[real].mean()) if real.any() else float("nan")


def taken(tried: Tried, origins: Sequence[Origin], steps: slice, targets: slice) -> tuple[Tried, list[Origin]]:
    """Some of the steps ahead and of the targets."""
    few = [
        one._replace(after=one.after[steps, targets], last=one.last[targets], season=one.season[targets])
        for one in origins
    ]
    return Tried(tried.point[:, steps, targets], tried.quantiles[:, steps, targets]), few


Beside = Mapping[str, Tried]
"""The model's forecasts and the rules', by name."""


def beside(tried: Tried, origins: Sequence[Origin], season: int, levels: Sequence[float]) -> dict[str, Tried]:
    """The forecasts with those of the naive rules."""
    horizon = tried.point.shape[1]
    found = {"model": tried, "naive": naive_forecasts(origins, horizon, 1, levels)}
    if season > 1:
        found[f"seasonal naive ({season})"] = naive_forecasts(origins, horizon, season, levels)
    return found


def by_rule(forecasts: Beside, origins: Sequence[Origin], levels: Sequence[float]) -> list[dict[str, Any]]:
    """A row for the model and for each rule."""
    return [{"forecast": name, **measured(one, origins, levels)._asdict()} for name, one in forecasts.items()]


def by_horizon(forecasts: Beside, origins: Sequence[Origin], levels: Sequence[float]) -> list[dict[str, Any]]:
    """A row for each stretch of steps ahead: the MASE of all, and the model's coverage."""
    horizon = next(iter(forecasts.values())).point.shape[1]
    borders = np.unique(
        np.linspace(0, horizon, (horizon if horizon <= EACH else BANDS) + 1).round().astype(int)
    ).tolist()
    rows = []
    for low, high in pairwise(borders):
        row: dict[str, Any] = {"steps ahead": f"{low + 1}" if high == low + 1 else f"{low + 1}-{high}"}
        rows.append(row | _mases(forecasts, origins, levels, slice(low, high), slice(None)))
    return rows


def by_target(
    forecasts: Beside, origins: Sequence[Origin], levels: Sequence[float], names: Sequence[str]
) -> list[dict[str, Any]]:
    """A row for each target."""
    return [
        {"target": name, **_mases(forecasts, origins, levels, slice(None), slice(place, place + 1))}
        for place, name in enumerate(names)
    ]


def _mases(
    forecasts: Beside, origins: Sequence[Origin], levels: Sequence[float], steps: slice, targets: slice
) -> dict[str, float]:
    row = {}
    for name, one in forecasts.items():
        found = measured(*taken(one, origins, steps, targets), levels)
        row[f"MASE {name}"] = found.mase
        if name == "model":
            row["coverage"] = found.coverage
    return row


def forecast_scores(forecasts: Beside, origins: Sequence[Origin], levels: Sequence[float], season: int) -> list[Score]:
    """The model's scores with their protocols, and the MASE of the rules."""
    horizon = forecasts["model"].point.shape[1]
    how = f"rolling origin, {len(origins):,} origins, {horizon} steps ahead, weights as trained"
    found = measured(forecasts["model"], origins, levels)
    share = levels[-1] - levels[0]
    protocols = {
        "mase": f"over mean |y_t - y_t-{season}| of training; {how}",
        "smape": f"per cent, 0 to 200; {how}",
        "mae": how,
        "rmse": how,
        "pinball": f"mean over the quantiles {', '.join(f'{level:g}' for level in levels)}; {how}",
        "coverage": f"share within the {share:.0%} interval; {how}",
    }
    scores = [Score(name, getattr(found, name), said, name == "coverage") for name, said in protocols.items()]
    for name, one in forecasts.items():
        if name != "model":
            label = "mase_" + name.partition(" (")[0].replace(" ", "_")
            scores.append(Score(label, measured(one, origins, levels).mase, f"the {name} forecast; {how}", False))
    return scores
