"""Times of series: read, found to be a clock, counted and written again."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, SettingsError
from unrolled.text.clock import Clock, read_times


def clock_of(cells, form=None):
    times = read_times(cells, form)
    return Clock.found([times.values], times.form, times.offset), times


@pytest.mark.parametrize(
    ("cells", "named", "after"),
    [
        (["1949-01", "1949-02", "1949-03"], "month", "1949-04"),
        (["2020Q4", "2021Q1", "2021Q2"], "quarter", "2021Q3"),
        (["2020-01-31", "2020-02-29", "2020-03-31"], "month", "2020-04-30"),
        (["2019-12-15", "2020-01-15", "2020-02-15"], "month", "2020-03-15"),
        (["2020-02-27", "2020-02-28", "2020-02-29"], "day", "2020-03-01"),
        (["20200227", "20200228", "20200229"], "day", "20200301"),
        (["2020-01-01 22:00:00", "2020-01-01 23:00:00", "2020-01-02 00:00:00"], "hour", "2020-01-02 01:00:00"),
        (["2021-05-01 00:00:00+00:00", "2021-05-01 00:30:00+00:00"], "30 minutes", "2021-05-01 01:00:00+00:00"),
        (["2021-05-01T00:30:00+02:00", "2021-05-01T01:30:00+02:00"], "hour", "2021-05-01T02:30:00+02:00"),
        (["1821", "1822", "1823"], "1", "1824"),
        (["0.5", "0.75", "1"], "0.25", "1.25"),
        (["2020-01-02", "2020-01-03", "2020-01-06", "2020-01-07"], "working day", "2020-01-08"),
        (["2020-01-01", "2021-01-01", "2022-01-01"], "year", "2023-01-01"),
    ],
)
def test_a_clock_is_found_and_goes_on_as_the_user_writes(cells, named, after):
    clock, times = clock_of(cells)
    positions = clock.positions(times.values)
    np.testing.assert_allclose(np.diff(positions), 1)
    assert clock.named() == named
    assert [clock.written(place) for place in positions] == cells
    assert clock.written(positions[-1] + 1) == after


def test_a_friday_is_followed_by_a_monday():
    clock, times = clock_of(["2020-01-02", "2020-01-03", "2020-01-06", "2020-01-07"])
    assert clock.written(clock.positions(times.values)[1] + 6) == "2020-01-13"


def test_a_format_is_told():
    clock, times = clock_of(["01.02.2020", "02.02.2020", "03.02.2020"], "%d.%m.%Y")
    assert clock.written(clock.positions(times.values)[-1] + 30) == "04.03.2020"
    with pytest.raises(DataError, match=r"'01.02.2020' is no time .*task\.time_format=%d\.%m\.%Y"):
        read_times(["01.02.2020"])


def test_the_row_of_a_wrong_time_is_told():
    with pytest.raises(DataError, match="2:'2020-02-30' is no time written as '2020-02-27' is"):
        read_times(["2020-02-27", "2020-02-28", "2020-02-30"])
    with pytest.raises(DataError, match="1:'x' is no number"):
        read_times(["3", "x"])


@pytest.mark.parametrize("width", ["", "h1", "-1h", "0d", "1 fortnight"])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(SettingsError, match=r"\[task.every\] .* write a width such as 15min"):
        Clock.every(width, "iso", 0.0)
    with pytest.raises(SettingsError, match="the times are numbers: give one above 0"):
        Clock.every("1h", "number", 0.0)


@given(
    st.sampled_from([60, 900, 3600, 86400, 604800]),
    st.integers(0, 2_000_000_000),
    st.integers(-(10**4), 10**5),
)
def test_positions_and_times_are_inverse(step, start, shift):
    first = datetime(1970, 1, 1) + timedelta(seconds=start)
    cells = [(first + timedelta(seconds=step * n)).strftime("%Y-%m-%d %H:%M:%S") for n in range(3)]
    clock, times = clock_of(cells)
    place = clock.positions(times.values)[0]
    expected = (first + timedelta(seconds=step * shift)).isoformat(sep=" ")
    if clock.unit == "second":
        assert datetime.fromisoformat(clock.written(place + shift)).isoformat(sep=" ") == expected


def test_the_calendar_comes_round():
    clock, _ = clock_of(["2020-01-01 00:00:00", "2020-01-01 01:00:00"])
    assert clock.cycles()[:2] == (24.0, 168.0)
    waves = clock.calendar(np.arange(49.0), [24.0])
    np.testing.assert_allclose(waves[:25], waves[24:], atol=1e-12)
    np.testing.assert_allclose((waves**2).sum(axis=1), 1)
