"""Windows over stored series: every one once, cut where it should be, the future never in the past."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.data.store import Store
from unrolled.data.windows import Cutting, Windows, cut_window, filled, flat, padded

HOW = Cutting(context=5, horizon=3, least=2, targets=1, numbers=2, ahead=1, forward=0)


def numbered(length, begin=0):
    """A series whose step n has the numbers n, 100 + n, 200 + n (the last known ahead)."""
    steps = np.arange(begin, begin + length, dtype=np.float32)
    return np.stack([steps, 100 + steps, 200 + steps], axis=1)


def windows_of(tmp_path, lengths, how=HOW, starts=None, **more):
    starts = starts or [0] * len(lengths)
    columns = {
        "steps": [flat(numbered(length), start, how) for length, start in zip(lengths, starts, strict=True)],
        "lines": [np.arange(2, 2 + length) for length in lengths],
    }
    store = Store.build(tmp_path / "store", columns, vocabulary_sizes={"steps": 0, "lines": 1 << 31})
    return Windows(store, **({"size": 4, "seed": 1, "shuffle": True, "name": "data.csv"} | more))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 7), st.integers(0, 3))
def test_every_window_once_an_epoch(tmp_path_factory, lengths, size, epoch):
    windows = windows_of(tmp_path_factory.mktemp("w"), lengths, size=size)
    seen = np.concatenate([np.empty(0, np.int64), *windows.plan(epoch)])
    assert sorted(seen.tolist()) == list(range(len(windows)))
    assert sorted(windows.at(window) for window in seen) == [
        (row, origin) for row, length in enumerate(lengths) for origin in range(2, length)
    ]
    assert windows.short == sum(length <= 2 for length in lengths)


def test_a_window_is_the_past_and_then_the_future(tmp_path):
    windows = windows_of(tmp_path, [12], shuffle=False)
    batch = windows.load(np.array([0, 5, 9]))
    assert batch.mask.sum(dim=1).tolist() == [2, 5, 5]
    np.testing.assert_array_equal(batch.past[0, :2, 0], [0, 1])
    np.testing.assert_array_equal(batch.past[1, :, 1], [102, 103, 104, 105, 106])
    np.testing.assert_array_equal(batch.target[1, :, 0], [7, 8, 9])
    np.testing.assert_array_equal(batch.future[1, :, 0], [207, 208, 209])
    np.testing.assert_array_equal(batch.wanted[2, :, 0], [True, False, False])
    assert windows.places(np.array([5])) == ["data.csv:9"]


def test_nothing_before_the_start_is_forecast(tmp_path):
    windows = windows_of(tmp_path, [12, 6], starts=[8, 0])
    assert [windows.at(window) for window in range(len(windows))] == [(0, step) for step in range(8, 12)] + [
        (1, step) for step in range(2, 6)
    ]


@given(st.integers(2, 11), st.integers(0, 2))
def test_the_future_is_not_in_the_past(origin, column):
    one, other = numbered(12), numbered(12)
    other[origin:] += 1000
    for first, second in zip(cut_window(one, origin, HOW)[:2], cut_window(other, origin, HOW)[:2], strict=True):
        np.testing.assert_array_equal(first, second)


def test_an_epoch_may_be_some_drawn_windows(tmp_path):
    windows = windows_of(tmp_path, [40], draw=6)
    first, second = (np.concatenate(windows.plan(epoch)) for epoch in (0, 1))
    assert len(first) == len(second) == 6 and set(first) != set(second)
    np.testing.assert_array_equal(first, np.concatenate(windows.plan(0)))


def test_what_is_missing_is_marked_and_filled():
    series = numbered(8)
    series[[0, 3], 0] = np.nan
    past, seen, *_ = cut_window(series, 5, HOW)
    np.testing.assert_array_equal(past[:, 0], [0, 1, 2, 0, 4])
    np.testing.assert_array_equal(seen[:, 0], [False, True, True, False, True])
    past, seen, *_ = cut_window(series, 5, HOW._replace(forward=1))
    np.testing.assert_array_equal(past[:, 0], [1, 1, 2, 2, 4])
    assert not seen[3, 0]
    assert np.isnan(filled(np.full((2, 1), np.nan))).all()


def test_short_series_are_told(tmp_path):
    remark = windows_of(tmp_path, [1, 9]).remarks()
    assert remark == ["data.csv: 1 series has not the 2 steps back and 1 ahead that a window needs, and is not used."]


@pytest.mark.parametrize("count", [1, 3])
def test_padding_is_behind(count):
    batch = padded([cut_window(numbered(9), origin, HOW) for origin in range(2, 2 + count)], HOW.context)
    lengths = batch.mask.sum(dim=1).tolist()
    assert lengths == list(range(2, 2 + count))
    for row, length in enumerate(lengths):
        assert not batch.past[row, length:].any() and not batch.seen[row, length:].any()
