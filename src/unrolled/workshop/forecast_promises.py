"""What every forecaster promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.text.series import Series
from unrolled.workshop.label_promises import CLOSE
from unrolled.workshop.promises import Promise, reloaded


def check_promises(model: Any, series: Sequence[Series] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on some series (none: random walks of many lengths)."""
    rows = _random(model, count) if series is None else list(series)
    together = _said(model, rows)
    order = np.random.default_rng(2).permutation(len(rows))
    turned = _said(model, [rows[row] for row in order], batch=7)
    gaps = min(float(np.diff(one, axis=2).min(initial=0.0)) for one in together)
    return [
        _compare("batch of 1 = batch of N", _said(model, rows, batch=1), together, rows),
        _compare("any order of series", [turned[place] for place in np.argsort(order)], together, rows),
        _compare("any padding", [_said(model, [row, max(rows, key=_length)])[0] for row in rows[:16]], together, rows),
        Promise("quantiles do not cross", gaps >= 0, "each is at least the one below it"),
        _compare("the future changes nothing", _said(model, [_changed(model, row) for row in rows]), together, rows),
        _compare("saved = loaded", _said(reloaded(model), rows), together, rows),
    ]


def _length(one: Series) -> int:
    return len(one.values)


def _said(model: Any, rows: Sequence[Series], batch: int | None = None) -> list[np.ndarray]:
    """Quantiles [horizon, targets, levels] of each series."""
    found = model.ahead(rows, model.text.window.horizon, batch, where="selfcheck")
    return [one.quantiles for one in found]


def _random(model: Any, count: int) -> list[Series]:
    """Random walks about the training mean, as long as a forecast needs at least and up to a context more; seed 1."""
    draw = np.random.default_rng(1)
    text = model.text
    window, roles = text.window, text.roles
    name, scale = next(iter(text.scales.items()))
    rows = []
    for _ in range(count):
        past = window.least + int(draw.integers(0, window.context + 1))
        steps = past + window.horizon
        walk = 0.3 * draw.normal(size=(steps, len(roles.target))).cumsum(axis=0)
        targets = text.restored(walk, scale)
        targets[past:] = np.nan
        others = np.array(text.others[0]) + np.array(text.others[1]) * draw.normal(size=(steps, len(text.others[0])))
        others[past:, : len(roles.past)] = np.nan
        static = tuple(levels[0] for levels in text.levels)
        values = np.concatenate([targets, others], axis=1)
        rows.append(Series(name, text.clock, roles, text.ends, 0, values, static, np.arange(1, steps + 1)))
    return rows


def _changed(model: Any, one: Series) -> Series:
    """The series with other numbers behind its end in all that is not known ahead."""
    hidden = len(model.text.roles.target) + len(model.text.roles.past)
    values = np.concatenate([one.values, np.full((1, one.values.shape[1]), np.nan)])
    values[one.ends :, len(model.text.roles.target) : hidden] = 1e6
    values[-1, hidden:] = one.values[-1, hidden:]
    return one._replace(values=values, lines=np.append(one.lines, 0))


def _compare(name: str, first: Sequence[np.ndarray], second: Sequence[np.ndarray], rows: Sequence[Series]) -> Promise:
    """Forecasts that are the same but for rounding, beside the deviation of each series."""
    gap = max(
        float((np.abs(one - two) / _spread(row)).max()) for one, two, row in zip(first, second, rows, strict=False)
    )
    return Promise(name, gap < 10 * CLOSE, f"forecasts differ by {gap:.1e} deviations at most")


def _spread(one: Series) -> float:
    values = one.values[: one.ends, : len(one.roles.target)]
    return max(float(np.nanstd(values)), 1e-9 * max(1.0, float(np.nanmax(np.abs(values)))))
