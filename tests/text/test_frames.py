"""Frames in cells: written and read back, scaled as scikit-learn does it, refused where they are no numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from unrolled.base.errors import DataError
from unrolled.text.frames import read_frames, written
from unrolled.text.readers import Framed, ReadLabels

SETTINGS = {"source": {"kind": "frames"}, "separator": None}
numbers = st.floats(-1e6, 1e6, width=32)


@given(arrays(np.float32, st.tuples(st.integers(1, 7), st.integers(1, 3)), elements=numbers))
def test_what_is_written_is_read_back(frames):
    np.testing.assert_array_equal(read_frames(written(frames)), frames)


@given(st.lists(arrays(np.float32, st.tuples(st.integers(1, 7), st.just(3)), elements=numbers), min_size=1, max_size=5))
def test_the_scale_is_that_of_scikit_learn(sequences):
    text = ReadLabels.learn(SETTINGS, lambda: [(written(one), "a") for one in sequences])
    oracle = StandardScaler().fit(np.concatenate(sequences).astype(np.float64))
    for one in sequences:
        wanted = oracle.transform(one.astype(np.float64))
        steady = oracle.var_ > 1e-3 * (1 + oracle.mean_**2)  # where a channel hardly changes, rounding decides
        np.testing.assert_allclose(text.source.scaled(one)[:, steady], wanted[:, steady], rtol=1e-3, atol=1e-3)


def test_a_channel_that_never_changes_stays_at_zero():
    text = ReadLabels.learn(SETTINGS, lambda: [("5,5,5:1,2,3", "a")])
    np.testing.assert_array_equal(text.source.scaled(read_frames("5,5:2,2")), np.zeros((2, 2)))


def test_deltas_are_changes_since_the_frame_before():
    reader = Framed(deltas=True)
    reader.restore({"mean": [0.0], "deviation": [2.0]})
    np.testing.assert_array_equal(reader.scaled(read_frames("2,6,4")), [[1, 0], [3, 2], [2, -1]])


@pytest.mark.parametrize(
    "cell, message",
    [
        ("1,2:3", r"channel 2 has 1 numbers and channel 1 has 2. Each frame needs a number of every channel"),
        ("1,2:3,?", r"channel 2, frame 2: '\?' is a missing value. Fill the gap before"),
        ("1,x", r"channel 1, frame 2: 'x' is no number"),
        ("1,nan", r"channel 1, frame 2: 'nan' is no finite number"),
        ("1,1e99", r"channel 1, frame 2: '1e99' is no finite number"),
        ("1:", r"channel 2 is empty"),
        ("", r"channel 1 is empty"),
    ],
)
def test_a_cell_that_is_no_frames_is_refused(cell, message):
    with pytest.raises(DataError, match=message):
        read_frames(cell)


def test_other_channels_than_those_learnt_are_refused():
    text = ReadLabels.learn(SETTINGS, lambda: [("1,2:3,4", "a")])
    with pytest.raises(DataError, match=r"1 channels where training rows have 2"):
        text.source.encode_ids(["1,2"])
    with pytest.raises(DataError, match=r"frames of shape \[2, 3\]; this model reads \[time, 2\]"):
        text.source.scaled(np.zeros((2, 3), np.float32))
    with pytest.raises(DataError, match=r"3 channels where the rows before have 2"):
        ReadLabels.learn(SETTINGS, lambda: [("1,2:3,4", "a"), ("1:2:3", "a")])


def test_saved_is_loaded(tmp_path):
    text = ReadLabels.learn(
        {"source": {"kind": "frames", "deltas": True}, "separator": None},
        lambda: [("1,2:3,9", "b a"), ("7:1", "a")],
        each=True,
    )
    text.source.names = ("x", "y")
    text.save(tmp_path)
    loaded = ReadLabels.load(tmp_path)
    assert loaded.fingerprint() == text.fingerprint()
    assert loaded.source.names == ("x", "y")
    assert loaded.labels.counts == text.labels.counts == (2, 1)
    assert loaded.labels.encode_ids(["b a b"]) == [[1, 0, 1]]
    (tmp_path / "source.json").write_text("{")
    with pytest.raises(DataError, match=r"source.json: damaged"):
        ReadLabels.load(tmp_path)
