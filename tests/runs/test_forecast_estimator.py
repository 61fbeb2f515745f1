"""The forecaster as an estimator: arrays in, arrays out, cloned and told its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from unrolled import Forecaster
from unrolled.base.errors import DataError, UsageError

SMALL = {
    "model": {
        "size": 6,
        "encoder": {"cell": {"kind": "gru", "hidden_size": 6}},
        "decoder": {"cell": {"kind": "gru", "hidden_size": 6}},
    },
    "train": {"steps": 20, "validate_every": 10, "learning_rate": 0.01},
}


def wave(steps=72):
    return 20 + 5 * np.sin(np.arange(steps) * np.pi / 6) + 0.2 * np.arange(steps)


def test_it_forecasts_as_many_steps_as_are_asked_for():
    one = Forecaster(6, season=12, settings=SMALL, seed=1).fit(wave())
    assert one.predict().shape == (6,)
    np.testing.assert_array_equal(one.predict(3), one.predict()[:3])
    np.testing.assert_array_equal(one.predict([2, 5]), one.predict()[[1, 4]])
    assert one.predict_quantiles(2).shape == (2, len(one.quantiles_))
    np.testing.assert_allclose(one.predict(), wave(78)[72:], atol=3)
    for wrong in (1.5, "a", [], [0], [1.5]):
        with pytest.raises(UsageError, match=r"predict: fh is .*; give steps from 1 to the horizon, 6, whole ones"):
            one.predict(wrong)
    with pytest.raises(UsageError, match=r"predict: fh is 7; give steps from 1 to the horizon, 6"):
        one.predict(7)
    with pytest.raises(UsageError, match="X has 1 columns; fit had 0"):
        one.predict(X=np.ones(6))


def test_several_targets_and_what_is_known_ahead():
    known = np.random.default_rng(0).integers(0, 2, size=78)
    one = Forecaster(4, context=8, season=1, settings=SMALL).fit(np.stack([wave(), -wave()], 1), X=known[:72])
    assert one.predict(X=known[72:]).shape == (4, 2)
    assert one.predict_quantiles([4], X=known[72:]).shape == (1, 2, 5)
    with pytest.raises(DataError, match="predict: the model reads x0 ahead, and after 71 the series has 2 of the 4"):
        one.predict(X=known[72:74])


def test_clones_and_parameters():
    one = Forecaster(6, seed=2, settings=SMALL)
    again = clone(one)
    assert again.get_params() == one.get_params() and not hasattr(again, "model_")
    assert again.set_params(horizon=3).horizon == 3
    with pytest.raises(NotFittedError, match="call fit"):
        one.predict()


@pytest.mark.parametrize(
    ("y", "X", "error", "message"),
    [
        ([[["a"]]], None, UsageError, "y is no array of numbers"),
        (np.ones((2, 3, 4)), None, UsageError, r"y has shape \[2, 3, 4\]"),
        ([], None, UsageError, r"y has shape \[0, 1\]"),
        ([1.0, np.inf], None, UsageError, "y holds an infinite number in step 1"),
        (np.ones(40), np.ones(3), UsageError, "y has 40 steps and X has 3"),
        ([1.0, 2.0, 3.0], None, DataError, "the longest series has 3 steps"),
        ([*wave(40), np.nan, 1.0], None, DataError, "the value of 'y0' is missing"),
    ],
)
def test_what_is_no_series_is_refused(y, X, error, message):
    with pytest.raises(error, match=message):
        Forecaster(6, settings=SMALL).fit(y, X)


def test_errors_name_the_argument_and_no_file_that_nobody_gave():
    gap = wave()
    gap[7] = np.nan
    with pytest.raises(DataError, match=r"^fit: y\[7\]: the value of 'y0' is missing\."):
        Forecaster(6, settings=SMALL).fit(gap)
    with pytest.raises(DataError, match=r"^fit: y: the longest series has 72 steps; .*horizon") as caught:
        Forecaster(60, settings=SMALL).fit(wave())
    assert ".jsonl" not in str(caught.value)
