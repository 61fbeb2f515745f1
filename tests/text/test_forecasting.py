"""What is learnt of training series: seasons, scales, windows; numbers in and out again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.text.clock import Clock
from unrolled.text.forecasting import SeriesText
from unrolled.text.seasons import by_shares, naive, season_of
from unrolled.text.series import Roles, Series, read_series, write_series

MONTHS = Clock("month", 1.0, "month")
STEPS = Clock("number", 1.0, "number")


def series_of(values, clock=STEPS, name="a", roles=None, first=0.0, start=0, static=()):
    values = np.asarray(values, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    roles = roles or Roles(tuple(f"y{place}" for place in range(values.shape[1])))
    return Series(name, clock, roles, first, start, values, static, np.arange(2, 2 + len(values)))


def learn(*all_, scale="standard", transform="none", **more):
    rows = [write_series(one) for one in all_]
    return SeriesText.learn({"scale": scale, "transform": transform}, lambda: rows, **more)


def wave(length, season=12, seed=0, growth=0.0):
    draw = np.random.default_rng(seed)
    steps = np.arange(length)
    return 10 + growth * steps + 3 * np.sin(2 * np.pi * steps / season) + 0.1 * draw.normal(size=length)


def test_a_series_as_cells_is_the_same_series():
    one = series_of([[1.5, np.nan], [-2e-9, 1 / 3]], MONTHS, roles=Roles(("y",), (), ("x",), ("s",)), static=("b",))
    again = read_series(write_series(one._replace(start=1)))
    np.testing.assert_array_equal(again.values, one.values)
    assert again._replace(values=0, lines=0) == one._replace(values=0, lines=0, start=1)
    with pytest.raises(DataError, match="this is no series as cells"):
        read_series(("a", "{}", "1", "2"))


def test_the_season_is_the_calendars_or_the_highest_peak():
    assert season_of([wave(60)], MONTHS.cycles()) == 12
    assert season_of([wave(60, season=9)], ()) == 9
    assert season_of([wave(60, season=7, growth=0.3)], ()) == 7
    assert season_of([np.random.default_rng(0).normal(size=80).cumsum()], ()) in (1, *range(10, 27))
    assert season_of([np.arange(40.0)], ()) == 1
    assert season_of([wave(15)], MONTHS.cycles()) == 1  # not twice in it


def test_logarithms_where_higher_is_wider():
    growing = wave(96) * np.exp(0.03 * np.arange(96))
    assert by_shares([growing], 12)
    assert not by_shares([wave(96)], 12)
    assert not by_shares([growing - growing.min()], 12)


def test_naive_errors_leave_out_what_is_missing():
    found = naive(np.array([1.0, np.nan, 4.0, 6.0, 5.0]), 1)
    assert found.error == 1.5 and found.root == pytest.approx(np.sqrt(2.5))
    assert np.isnan(naive(np.array([1.0]), 1).error)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.sampled_from(["standard", "none"]))
def test_numbers_come_back(shift, size, scale):
    values = shift + size * wave(30)
    one = series_of(values)
    text = learn(one, scale=scale)
    if scale == "standard":
        encoded = text.encoded(one)
        np.testing.assert_allclose(text.restored(encoded, text.scale(one)), one.values, rtol=1e-5, atol=1e-5 * size)
        assert abs(encoded.mean()) < 1e-4 and abs(encoded.std() - 1) < 1e-3


def test_each_series_and_target_has_its_own_scale_and_logarithm():
    growing = wave(96) * np.exp(0.03 * np.arange(96))
    one = series_of(np.stack([growing, wave(96) - 100], axis=1), MONTHS)
    other = series_of(1000 * np.stack([growing, wave(96) - 100], axis=1), MONTHS, "b")
    text = learn(one, other, transform="auto")
    assert text.logs == (True, False)
    for series in (one, other):
        encoded = text.encoded(series)[:, :2]
        np.testing.assert_allclose(encoded.std(axis=0), 1, rtol=1e-4)
        np.testing.assert_allclose(text.restored(encoded, text.scale(series)), series.values, rtol=1e-4)


def test_a_value_without_a_logarithm_is_refused():
    text = learn(series_of(wave(40)), transform="log")
    with pytest.raises(DataError, match=r"'y0' of the series 'a' has a value of 0.*text\.transform=none"):
        text.encoded(series_of([1.0, 0.0, 2.0]))


def test_the_window_follows_the_season_and_the_length():
    assert learn(series_of(wave(120), MONTHS)).window == (36, 12, 12, 12)
    assert learn(series_of(wave(40), MONTHS), horizon=6).window == (34, 6, 12, 12)
    assert learn(series_of(wave(120), MONTHS), horizon=6, context=10, season=1).window == (10, 6, 1, 2)


def test_what_is_learnt_is_saved(tmp_path):
    roles = Roles(("y",), (), ("x",), ("s",))
    rows = [
        series_of(np.stack([wave(60), np.arange(60.0)], 1), MONTHS, name, roles, static=(kind,))
        for name, kind in (("a", "k"), ("b", "l"))
    ]
    text = learn(*rows, missing="mask")
    text.save(tmp_path)
    again = SeriesText.load(tmp_path)
    assert again.fingerprint() == text.fingerprint()
    np.testing.assert_array_equal(again.encoded(rows[1]), text.encoded(rows[1]))
    assert again.encoded(rows[1]).shape == (60, 1 + 1 + 2 + 2)
    assert again.encoded(rows[1])[0, -2:].tolist() == [0, 1]


def test_an_unseen_series_is_scaled_by_its_own_past():
    text = learn(series_of(wave(60)), season=5)
    one = series_of(100 + 7 * wave(40), name="new", start=20)
    changed = one._replace(values=np.where(np.arange(40)[:, None] < 20, one.values, 1e6))
    np.testing.assert_array_equal(text.encoded(one)[:20], text.encoded(changed)[:20])
    assert abs(text.encoded(one)[:20].mean()) < 1e-4
