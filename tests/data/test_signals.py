"""Files of frames: .ts of the UEA archive, NumPy archives, tables with a frame a row."""

import gzip

import numpy as np
import pytest

from unrolled.base.errors import DataError, UsageError
from unrolled.data.readers import open_table
from unrolled.data.signals import arranged, gathered
from unrolled.data.table import heads_numbers
from unrolled.text.frames import read_frames

TS = """#A comment: with a colon
@problemName Made
@timeStamps false
@univariate false
@classLabel true up down
@data
1,2,3:4,5,6:up

3,2:6,5:down
"""


def test_a_ts_file_gives_frames_and_labels(tmp_path):
    path = tmp_path / "made.ts.gz"
    path.write_bytes(gzip.compress(TS.encode()))
    table = open_table(path)
    rows = list(table.rows())
    assert table.columns == ("frames", "label")
    assert [(row.place, row.fields) for row in rows] == [(7, ("1,2,3:4,5,6", "up")), (9, ("3,2:6,5", "down"))]
    np.testing.assert_array_equal(read_frames(rows[1].fields[0]), [[3, 6], [2, 5]])


def test_a_ts_file_without_labels_has_one_column(tmp_path):
    path = tmp_path / "made.ts"
    path.write_text("@classLabel false\n@data\n1,2:3,4\n")
    assert [row.fields for row in open_table(path).rows()] == [("1,2:3,4",)]


@pytest.mark.parametrize(
    "text, message",
    [
        ("@classLabel true a\n1,2:a\n", r"made.ts:2: a line before @data that begins with neither @ nor #"),
        ("@classLabel true a\n", r"made.ts: there is no line @data"),
        ("@timeStamps true\n@data\n(0,1):a\n", r"made.ts:1: @timeStamps true: each number would come with a time"),
        ("@classLabel true a\n@data\n1,2\n", r"made.ts:3: no ':' and so no label"),
    ],
)
def test_a_broken_ts_file_is_refused(tmp_path, text, message):
    path = tmp_path / "made.ts"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        list(open_table(path).rows())


def test_a_numpy_archive_gives_padded_rows_at_their_lengths(tmp_path):
    path = tmp_path / "made.npz"
    frames = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    np.savez(path, x=frames, lengths=[3, 1], y=["a", "b"])
    rows = list(open_table(path).rows())
    assert [row.fields[1] for row in rows] == ["a", "b"]
    np.testing.assert_array_equal(read_frames(rows[0].fields[0]), frames[0])
    np.testing.assert_array_equal(read_frames(rows[1].fields[0]), frames[1, :1])


def test_a_numpy_archive_with_a_label_for_each_frame(tmp_path):
    path = tmp_path / "made.npz"
    np.savez(path, frames=np.zeros((2, 3)), lengths=[3, 2], labels=[[1, 1, 2], [2, 2, 0]])
    assert [row.fields[1] for row in open_table(path).rows()] == ["1 1 2", "2 2"]


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"z": np.zeros(2)}, r"no array is called frames or x, only z"),
        ({"x": np.zeros(2)}, r"frames are float64 \[2\]; they must be numbers \[rows, time, channels\]"),
        ({"x": np.zeros((2, 3)), "lengths": [3]}, r"lengths are \[1\]; they must be whole numbers \[2\]"),
        ({"x": np.zeros((2, 3)), "lengths": [3, 4]}, r"made.npz:2: a length of 4; it must be 1 to 3"),
        ({"x": np.zeros((2, 3)), "y": [1]}, r"labels are \[1\]; they must be \[2\], or \[2, 3\] for frames"),
        ({"x": np.array([["a", "b"]])}, r"frames are <U1"),
        ({"x": np.zeros((2, 3)), "y": [1.5, np.nan]}, r"labels hold a number that is not finite"),
        ({"x": np.array([[1, None]], dtype=object)}, r"it holds objects, not numbers"),
    ],
)
def test_a_wrong_archive_is_refused(tmp_path, arrays, message):
    path = tmp_path / "made.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        list(open_table(path).rows())


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "made.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros((2, 3)))
    with pytest.raises(DataError, match=r"made.npz: one array \(.npy\), no archive"):
        open_table(path)
    path.write_bytes(b"PK\x03\x04 nothing more")
    with pytest.raises(DataError, match=r"made.npz: no NumPy archive of numbers"):
        open_table(path)


CSV = """sequence,time,x,y,label
1,0,1.5,2,up
1,1,2.5,3,up
2,0,9,8,down
"""


def table_of(tmp_path, text):
    path = tmp_path / "made.csv"
    path.write_text(text)
    return open_table(path)


def test_a_frame_a_row_is_gathered_by_sequence(tmp_path):
    table = gathered(table_of(tmp_path, CSV), None, "label", by_frame=False)
    assert [(row.place, row.fields) for row in table.rows()] == [(2, ("1.5,2.5:2,3", "up")), (4, ("9:8", "down"))]
    assert "the channels are x, y" in table.guessed[-1]


def test_labels_of_frames_stand_side_by_side(tmp_path):
    table = gathered(table_of(tmp_path, CSV.replace("3,up", "3,down")), "sequence", "label", by_frame=True)
    assert [row.fields[1] for row in table.rows()] == ["up down", "down"]


@pytest.mark.parametrize(
    "text, message",
    [
        (CSV.replace("3,up", "3,down"), r"made.csv:2: the label is 'up' first and 'down' in line 3. .*labels=frame"),
        (CSV + "1,2,1,1,up\n", r"made.csv:5: the sequence '1' ended above and goes on here"),
    ],
)
def test_sequences_that_do_not_hold_together_are_refused(tmp_path, text, message):
    table = gathered(table_of(tmp_path, text), None, "label", by_frame=False)
    with pytest.raises(DataError, match=message):
        list(table.rows())


def test_a_table_that_names_no_sequence_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no column says to which sequence a frame belongs.*task.sequence=NAME"):
        gathered(table_of(tmp_path, CSV.replace("sequence", "who")), None, "label", by_frame=False)


@pytest.mark.parametrize(
    "records, header",
    [
        (["a,x", "b,1", "c,2"], True),  # a column of numbers below a word
        (["a,x", "b,1"], False),  # one row below tells nothing
        (["a,7", "b,1", "c,2"], False),
        (["a,x", "b,1", "c,two"], False),
        (["x,x", "b,1", "c,2"], False),
        (["x", "1", "2"], False),  # a text may begin with anything
    ],
)
def test_a_row_of_words_above_numbers_is_a_header(records, header):
    assert heads_numbers([record.split(",") for record in records]) is header


def test_channels_are_told_apart_by_their_names(tmp_path):
    table = gathered(table_of(tmp_path, CSV), None, "label", by_frame=False)
    turned = arranged(table, ("y", "x"))
    assert [row.fields for row in turned.rows()] == [("2,3:1.5,2.5", "up"), ("8:9", "down")]
    assert arranged(table, ()) is table
    with pytest.raises(DataError, match=r"reads the channels y, z; the table lacks z and has x beside them"):
        arranged(table, ("y", "z"))
