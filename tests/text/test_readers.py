"""Readers of sources that are no text: what a store keeps is what a network reads, and a saved one reads alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

from unrolled.base.errors import DataError
from unrolled.text.readers import Framed, ReadSettings, ReadText
from unrolled.text.reading import READERS, flat

ROWS = [("1,2,3:4,5,7", "ab"), ("2,0:1,-1", "b")]


def learnt(**settings: object) -> ReadText:
    chosen = {"source": {"kind": "frames", **settings}, "target": {"kind": "character"}}
    return ReadText.learn(chosen, lambda: iter(ROWS))


@given(arrays(np.float32, some.tuples(some.integers(1, 5), some.integers(1, 4)), elements=some.floats(-9, 9, width=16)))
def test_what_is_stored_comes_back(frames):
    np.testing.assert_array_equal(Framed().stored(flat(frames)), frames)


def test_frames_are_scaled_by_what_training_showed():
    text = learnt()
    every = np.concatenate([text.source.scaled(row[0]) for row in ROWS])
    np.testing.assert_allclose(every.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(every.std(axis=0), 1, atol=1e-6)
    np.testing.assert_array_equal(learnt(scale="none").source.scaled(ROWS[0][0]), [[1, 4], [2, 5], [3, 7]])
    assert learnt(deltas=True).source.channels == 4


def test_a_saved_one_reads_alike(tmp_path):
    text = learnt(deltas=True)
    text.save(tmp_path)
    again = ReadText.load(tmp_path)
    assert again.fingerprint() == text.fingerprint() != learnt().fingerprint()
    for row, other in zip(text.read([ROWS[0][0]]), again.read([np.array([[1, 4], [2, 5], [3, 7]])]), strict=True):
        np.testing.assert_allclose(row, other, rtol=1e-6)
    (tmp_path / "source.json").write_text('{"settings": {"kind": "frames"}, "mean": 3}')
    with pytest.raises(DataError, match=r"source\.json"):
        ReadText.load(tmp_path)


def test_rows_side_by_side():
    text = learnt(scale="none")
    rows = text.read([row[0] for row in ROWS])
    given_, mask = text.padded(rows)
    assert given_.shape == (2, 3, 2) and mask.tolist() == [[True] * 3, [True, True, False]]
    np.testing.assert_array_equal(given_[1, 2], [0, 0])
    assert [text.positions(row) for row in rows] == [3, 2]


def test_a_source_that_cannot_be_read_is_named():
    text = learnt()
    with pytest.raises(DataError, match=r"1,x:2,3: channel 1, frame 2: 'x' is no number"):
        text.read(["1,x:2,3"])
    with pytest.raises(DataError, match=r"source 1: frames of shape \[2, 5\]; this model reads \[time, 2\]"):
        text.read([ROWS[0][0], np.zeros((2, 5))])


def test_settings_name_readers():
    assert ReadSettings().source == "frames" and "frames" in READERS
