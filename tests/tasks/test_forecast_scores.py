"""Scores of forecasts against formulas and scikit-learn; the naive rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, root_mean_squared_error

from unrolled.tasks.forecast_scores import (
    Origin,
    Tried,
    beside,
    by_horizon,
    by_rule,
    by_target,
    forecast_scores,
    measured,
    naive_forecasts,
)
from unrolled.text.seasons import Naive, naive

LEVELS = (0.1, 0.5, 0.9)


def case(origins=4, horizon=3, targets=2, seed=0):
    draw = np.random.default_rng(seed)
    series = draw.normal(size=(30, targets)).cumsum(axis=0)
    rules = [[naive(series[:20, place], lag) for place in range(targets)] for lag in (1, 5)]
    found = [Origin(series[:at], series[at : at + horizon], *rules) for at in range(20, 20 + origins)]
    quantiles = np.sort(draw.normal(size=(origins, horizon, targets, 3)), axis=-1)
    return Tried(quantiles[..., 1], quantiles), found, series


def test_scores_are_those_of_scikit_learn_and_of_the_papers():
    tried, origins, series = case()
    found = measured(tried, origins, LEVELS)
    truth = np.stack([one.after for one in origins])
    assert found.mae == pytest.approx(mean_absolute_error(truth.ravel(), tried.point.ravel()))
    assert found.rmse == pytest.approx(root_mean_squared_error(truth.ravel(), tried.point.ravel()))
    losses = [
        mean_pinball_loss(truth.ravel(), tried.quantiles[..., place].ravel(), alpha=level)
        for place, level in enumerate(LEVELS)
    ]
    assert found.pinball == pytest.approx(np.mean(losses))
    # Hyndman & Koehler 2006, scaled error: e_t / (1/(n-m) Σ |y_i - y_{i-m}|), here with the season m = 5.
    scale = [np.mean([abs(series[i, k] - series[i - 5, k]) for i in range(5, 20)]) for k in range(2)]
    scaled = [abs(truth[w, h, k] - tried.point[w, h, k]) / scale[k] for w in range(4) for h in range(3) for k in (0, 1)]
    assert found.mase == pytest.approx(np.mean(scaled))
    shares = 200 * np.abs(truth - tried.point) / (np.abs(truth) + np.abs(tried.point))
    assert found.smape == pytest.approx(shares.mean())
    inside = (truth >= tried.quantiles[..., 0]) & (truth <= tried.quantiles[..., 2])
    assert found.coverage == pytest.approx(inside.mean())


def test_what_is_not_known_is_not_scored():
    tried, origins, _ = case()
    holes = [one._replace(after=np.where(np.arange(3)[:, None] == 1, np.nan, one.after)) for one in origins]
    few = [one._replace(after=one.after[[0, 2]]) for one in origins]
    left = Tried(tried.point[:, [0, 2]], tried.quantiles[:, [0, 2]])
    assert measured(tried, holes, LEVELS) == pytest.approx(measured(left, few, LEVELS))


@given(st.integers(1, 6), st.integers(1, 9), st.integers(6, 12))
def test_the_seasonal_naive_forecast_repeats_the_last_season(lag, horizon, length):
    before = np.arange(length, dtype=float)[:, None]
    rules = [Naive(1.0, 2.0)]
    found = naive_forecasts([Origin(before, np.zeros((horizon, 1)), rules, rules)], horizon, lag, LEVELS)
    expected = [before[length - lag + step % lag, 0] for step in range(horizon)]
    assert found.point[0, :, 0].tolist() == expected
    width = found.quantiles[0, :, 0, 2] - found.quantiles[0, :, 0, 0]
    reach = np.array([step // lag + 1 for step in range(horizon)])
    np.testing.assert_allclose(width, 2 * 1.2815515655 * 2.0 * np.sqrt(reach))


def test_a_naive_forecast_passes_over_what_is_missing():
    before = np.array([1.0, 2.0, 3.0, 4.0, np.nan, np.nan])[:, None]
    rules = [Naive(1.0, 1.0)]
    origin = Origin(before, np.zeros((4, 1)), rules, rules)
    assert naive_forecasts([origin], 4, 1, LEVELS).point[0, :, 0].tolist() == [4, 4, 4, 4]
    assert naive_forecasts([origin], 4, 3, LEVELS).point[0, :, 0].tolist() == [4, 2, 3, 4]


def test_every_report_stands_beside_the_rules():
    tried, origins, _ = case()
    found = beside(tried, origins, 5, LEVELS)
    assert list(found) == ["model", "naive", "seasonal naive (5)"]
    assert [row["forecast"] for row in by_rule(found, origins, LEVELS)] == list(found)
    rows = by_horizon(found, origins, LEVELS)
    assert [row["steps ahead"] for row in rows] == ["1", "2", "3"]
    assert np.mean([row["MASE naive"] for row in rows]) == pytest.approx(measured(found["naive"], origins, LEVELS).mase)
    assert [row["target"] for row in by_target(found, origins, LEVELS, ["a", "b"])] == ["a", "b"]
    scores = {score.name: score for score in forecast_scores(found, origins, LEVELS, 5)}
    assert set(scores) >= {"mase", "smape", "pinball", "coverage", "mase_naive", "mase_seasonal_naive"}
    assert "4 origins, 3 steps ahead" in scores["mase"].protocol
    assert list(beside(tried, origins, 1, LEVELS)) == ["model", "naive"]


def test_a_series_that_never_changes_has_no_mase():
    tried, origins, _ = case()
    flat = [one._replace(season=[Naive(0.0, 0.0)] * 2) for one in origins]
    assert np.isnan(measured(tried, flat, LEVELS).mase)
