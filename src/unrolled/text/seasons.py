"""What a series' numbers say before any network: its season, whether it grows by shares, how well naive rules do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""[time]; NaN: missing."""

LOOKED_AT = 50
"""Series that are looked at to find a season and whether to take logarithms."""

LONGEST = 400
"""Steps of the longest season that is looked for where the calendar names none."""


class Naive(NamedTuple):
    """How far a target is, in training, from what it was so many steps before.

    error  mean |y_t - y_{t-m}|, the denominator of the MASE (Hyndman & Koehler 2006, Int. J. Forecasting 22, eq. 6, for
           m = 1; with a season the form that the M4 competition takes). NaN: there is no pair of values
    root   √ mean (y_t - y_{t-m})²: σ of the naive forecasts' intervals (Hyndman & Athanasopoulos 2021, §5.5)
    """

    error: float
    root: float


def naive(values: Values, lag: int) -> Naive:
    """Of one target and a lag."""
    change = values[lag:] - values[:-lag] if lag < len(values) else np.empty(0)
    change = change[np.isfinite(change)]
    if not len(change):
        return Naive(float("nan"), float("nan"))
    return Naive(float(np.abs(change).mean()), float(np.sqrt((change**2).mean())))


def season_of(series: Sequence[Values], cycles: Sequence[float]) -> int:
    """Steps of the season of some targets: of the calendar's ``cycles`` the one whose step before is nearest, else the
    highest peak of the autocorrelation after the straight trend is taken out; 1 where there is none."""
    shown = [values for values in series[:LOOKED_AT] if np.isfinite(values).sum() > 3]
    whole = [round(cycle) for cycle in cycles if abs(cycle - round(cycle)) < 1e-6]
    usable = [lag for lag in whole if any(len(values) >= 2 * lag for values in shown)]
    if usable:
        return min(usable, key=lambda lag: _mean([naive(values, lag).error / _spread(values) for values in shown]))
    return _peak(shown)


def _mean(values: Iterable[float]) -> float:
    found = [value for value in values if np.isfinite(value)]
    return float(np.mean(found)) if found else float("inf")


def _spread(values: Values) -> float:
    return float(np.nanstd(values)) or 1.0


def _peak(series: Sequence[Values]) -> int:
    longest = min(LONGEST, max((len(values) for values in series), default=0) // 3)
    if longest < 3:
        return 1
    found = np.zeros(longest + 1)
    counted = 0
    for values in series:
        one = _autocorrelation(values, longest)
        if one is not None:
            found, counted = found + one, counted + 1
    if not counted:
        return 1
    found /= counted
    bar = max(0.3, 2 / np.sqrt(max(len(values) for values in series)))
    peaks = [lag for lag in range(2, longest) if found[lag] > bar and found[lag - 1] < found[lag] >= found[lag + 1]]
    return max(peaks, key=lambda lag: found[lag]) if peaks else 1


def _autocorrelation(values: Values, longest: int) -> Values | None:
    """Of the lags 0 to ``longest``; 0 where a series is too short for one."""
    real = np.isfinite(values)
    time = np.arange(len(values), dtype=np.float64)
    if real.sum() < 6:
        return None
    slope, level = np.polyfit(time[real], values[real], 1)
    rest = np.where(real, values - slope * time - level, 0.0)
    power = float((rest**2).sum())
    if power <= 1e-20 * max(1.0, level**2):
        return None
    lags = [
        float((rest[lag:] * rest[: len(rest) - lag]).sum()) / power for lag in range(min(longest + 1, len(rest) // 2))
    ]
    return np.pad(np.array(lags), (0, longest + 1 - len(lags)))


def by_shares(series: Sequence[Values], season: int) -> bool:
    """Whether logarithms suit: all values are above 0, and where they are higher they also spread more, or they are
    much less lopsided afterwards."""
    shown = [values[np.isfinite(values)] for values in series[:LOOKED_AT]]
    shown = [values for values in shown if len(values) >= 8]
    if not shown or any(values.min() <= 0 for values in shown):
        return False
    votes = [_grows(values, season) or _lopsided(values) for values in shown]
    return sum(votes) * 2 > len(votes)


def _grows(values: Values, season: int) -> bool:
    """Whether blocks of a season spread as their level does, over levels that differ."""
    block = season if season > 1 else max(4, len(values) // 8)
    count = len(values) // block
    if count < 4:
        return False
    blocks = values[-count * block :].reshape(count, block)
    level, spread = blocks.mean(axis=1), blocks.std(axis=1)
    if spread.min() <= 0 or level.max() / level.min() < 1.5:
        return False
    return bool(np.polyfit(np.log(level), np.log(spread), 1)[0] > 0.5)


def _lopsided(values: Values) -> bool:
    before, after = _skewness(values), _skewness(np.log(values))
    return before > 1 and abs(after) < 0.5 * before


def _skewness(values: Values) -> float:
    rest = values - values.mean()
    spread = float(np.sqrt((rest**2).mean()))
    return float((rest**3).mean()) / spread**3 if spread > 0 else 0.0
