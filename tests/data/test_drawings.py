"""Drawings in files: every form gives the same points, and what is wrong is named by its place."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unrolled.data.doctor as doctor
from unrolled.base.errors import DataError, UsageError
from unrolled.data.drawings import drawn
from unrolled.data.readers import open_table, splits
from unrolled.tasks.base import recognise
from unrolled.text.drawings import (
    DrawnText,
    as_drawing,
    from_strokes,
    measured,
    read_drawing,
    to_strokes,
)
from unrolled.text.frames import written

STROKES = [[[1, 2], [4, 6], [4, 7]], [[0, 0], [10, 0]]]
"""Two strokes; as steps from the origin:"""
STEPS = [[1, 2, 0], [3, 4, 0], [0, 1, 1], [-4, -7, 0], [10, 0, 1]]


def rows(path, **more):
    return [(read_drawing(row.fields[0]).tolist(), row.fields[1]) for row in drawn(open_table(path), **more).rows()]


def wanted(label="cat"):
    return [([*STEPS[:-1], [10, 0, 2]], label)]


def write(tmp_path, kind):
    """A file of the kind, with the drawing twice where a format needs two rows to be told."""
    path = tmp_path / f"drawings{kind[kind.rindex('.') :]}"
    columns = [[list(axis) for axis in zip(*stroke, strict=True)] for stroke in STROKES]
    timed = [[*stroke, list(range(len(stroke[0])))] for stroke in columns]
    points, flat = np.array(STEPS), [(x, y, s) for s, stroke in enumerate(STROKES) for x, y in stroke]
    if kind == "points.npz":
        np.savez(path, points=np.stack([points, points]), lengths=[5, 5], labels=["cat", "cat"])
    elif kind == "flat.npz":
        np.savez(path, points=np.concatenate([points, points]), lengths=[5, 5], labels=["cat", "cat"])
    elif kind == "points.jsonl":
        path.write_text(json.dumps({"strokes": STROKES, "label": "cat"}) + "\n")
    elif kind == "quickdraw.ndjson":
        path.write_text(json.dumps({"word": "cat", "recognized": True, "drawing": columns}) + "\n")
    elif kind == "raw.ndjson":
        path.write_text(json.dumps({"word": "cat", "drawing": timed}) + "\n")
    elif kind == "strokes.csv":
        body = "".join(f"{d},{x},{y},{s},cat\n" for d in (1, 2) for x, y, s in flat)
        path.write_text("drawing,x,y,stroke,label\n" + body)
    elif kind == "pens.tsv":
        body = "".join(f"{d}\t{x}\t{y}\t{p}\tcat\n" for d in (1, 2) for x, y, p in STEPS)
        path.write_text("sketch\tdx\tdy\tpen\tword\n" + body)
    return path


KINDS = ("points.npz", "flat.npz", "points.jsonl", "quickdraw.ndjson", "raw.ndjson", "strokes.csv", "pens.tsv")


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_gives_the_same_drawing_and_is_told(tmp_path, kind):
    path = write(tmp_path, kind)
    assert rows(path)[:1] == wanted()
    assert recognise({"train": open_table(path)}, "translate")[0] == "handwriting"


def test_a_file_may_hold_its_splits(tmp_path):
    path = tmp_path / "short.npz"
    np.savez(path, **{f"{part}_points": np.array(STEPS) for part in ("train", "test")},
             **{f"{part}_lengths": np.array([5]) for part in ("train", "test")})  # fmt: skip
    found = splits(path)
    assert list(found) == ["train", "test"]
    assert len({table.fingerprint() for table in found.values()}) == 2
    assert rows(path) == wanted("")


def test_coordinates_are_as_told(tmp_path):
    path = write(tmp_path, "points.npz")
    found = rows(path, coordinates="absolute")[0][0]
    assert found[1] == [2, 2, 0]  # (3, 4) from (1, 2)
    table = drawn(open_table(path))
    assert any("steps from point to point (task.coordinates=absolute" in said for said in table.guessed)


@given(st.lists(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=1, max_size=4), min_size=1))
@settings(max_examples=30, deadline=None)
def test_strokes_come_back(strokes):
    parts = [np.array(stroke, float) for stroke in strokes]
    found = to_strokes(read_drawing(written(from_strokes(parts))))
    assert [one.tolist() for one in found] == [one.tolist() for one in parts]


def lines(*objects):
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in objects)


GOOD = {"strokes": [[[0, 0], [1, 1], [2, 2]]]}


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"strokes": []}, r":2: the drawing is empty\. Leave it out"),
        ({"strokes": [[[0, 0]], []]}, r":2: stroke 2 is empty or no list"),
        ({"strokes": [[[0, 0], [1]]]}, r":2: stroke 1 is not written as those before, \[\[x, y\], …\]"),
        ('{"strokes": [[[0, 0], [NaN, 1]]]}', r":2: stroke 1, point 2: a number is not finite"),
        ('{"strokes": [[[0, 0], [Infinity, 1]]]}', r":2: stroke 1, point 2: a number is not finite"),
        ({"strokes": [[[0, "a"]]]}, r":2: stroke 1 holds something that is no number"),
        ({"other": 1}, r":2: the key 'strokes' is missing, or is no list of strokes"),
        ("{", r":2: not JSON"),
    ],
)
def test_a_wrong_line_of_strokes_is_named_and_nothing_else_is_lost(tmp_path, bad, message):
    path = tmp_path / "drawings.jsonl"
    path.write_text(lines(GOOD, bad, GOOD))
    with pytest.raises(DataError, match=message):
        rows(path)
    wrong = []
    assert len(list(drawn(open_table(path)).rows(wrong.append))) == 2
    assert [one.place for one in wrong] == [2]


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"points": [[[1, 2, 0], [3, 4, 0]]]}, r":1: no point lifts the pen: a stroke without an end\. Set the pen"),
        ({"points": [[[1, 2, 1], [3, 4, 0]]]}, r":1: the last point leaves the pen on the paper: a stroke without"),
        ({"points": [[[1, 2, 5], [3, 4, 1]]]}, r":1: point 1: the pen is 5; it must be 0 .* or 1"),
        ({"points": [[[np.nan, 2, 0], [3, 4, 1]]]}, r":1: point 1, x: 'nan' is no finite number"),
        ({"points": [[[1, 2, 1]]], "lengths": [0]}, r":1: the drawing is empty"),
        ({"points": [[[1, 2, 1]]], "lengths": [3]}, r":1: a length of 3; it must be 1 to 1"),
        ({"points": [[[1, 2]]]}, r"points are int64 \[1, 1, 2\]; they must be numbers \[rows, time, 3\]"),
        ({"points": [[1, 2, 1]]}, r"lengths are missing, or no whole numbers"),
        ({"points": [[1, 2, 1]], "lengths": [2]}, r"the lengths sum to 2 points; there are 1"),
        ({"points": [[[1, 2, 1]]], "labels": ["a", "b"]}, r"labels are \[2\]; they must be \[1\]"),
    ],
)
def test_wrong_archives_are_named(tmp_path, arrays, message):
    path = tmp_path / "drawings.npz"
    np.savez(path, **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(DataError, match=message):
        rows(path)


def test_pickled_archives_say_how_to_re_pack_them(tmp_path):
    path = tmp_path / "sketchrnn.npz"
    drawings = np.empty(2, dtype=object)
    drawings[:] = [np.array(STEPS, np.int16)] * 2
    np.savez(path, train=drawings)
    with pytest.raises(
        DataError, match=r"pickled objects, as in sketch-rnn's own files.*Re-pack it once: python -c"
    ) as error:
        open_table(path)
    code = str(error.value).split('python -c "')[1].rstrip('"')
    here = {"open": open}
    exec(code.replace("'sketchrnn", f"'{tmp_path}/sketchrnn"), here)
    assert len(rows(tmp_path / "sketchrnn.points.npz")) == 2


def test_a_table_without_its_columns_says_which(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("drawing,x,label\n1,2,a\n1,3,a\n")
    with pytest.raises(DataError, match=r"a table of points lacks the column y, pen, it has drawing, x, label"):
        drawn(open_table(path))


def test_a_step_that_is_far_too_long_is_named(tmp_path):
    path = tmp_path / "drawings.jsonl"
    path.write_text(lines(*[GOOD] * 9, {"strokes": [[[0, 0], [1e9, 0]]]}))
    table = drawn(open_table(path))
    text = DrawnText.learn({"scale": "standard"}, lambda: (row.fields for row in table.rows()))
    assert text.drawings.scale < 10  # the mistake does not spoil the scale
    with pytest.raises(DataError, match=r"point 2: the pen moves by 1e\+09, and a usual step is 1\. Is this a mistake"):
        text.drawings.encode_ids([row.fields[0] for row in table.rows()])


def test_the_doctor_reads_drawings(tmp_path):
    path = tmp_path / "drawings.jsonl"
    path.write_text(lines(*[GOOD] * 9, {"strokes": [[[0, 0], [1e9, 0]]]}, {"strokes": []}))
    found = {(one.severity, one.kind, one.count) for one in doctor.examine({"train": drawn(open_table(path))}).findings}
    assert ("error", "drawings", 1) in found
    assert ("note", "drawings", 10) in found
    assert ("error", "drawing", 1) in found
    assert not {kind for _, kind, _ in found} & {"empty", "mixed line ends"}  # a drawing needs no label


def test_the_doctor_does_not_count_the_lines_of_an_archive(tmp_path):
    path = tmp_path / "drawings.npz"
    points = np.tile([[13, 10, 0], [10, 3, 0], [7, 13, 1]], (200, 1))
    np.savez(path, points=points, lengths=[3] * 200)
    kinds = {one.kind for one in doctor.examine({"train": drawn(open_table(path))}).findings}
    assert not kinds & {"empty", "mixed line ends"}


def test_a_drawing_of_two_labels_is_named(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("drawing,x,y,pen,label\n1,2,3,0,a\n1,3,4,1,b\n1,5,6,1,a\n")
    with pytest.raises(DataError, match=r":2: the label is 'a' first and 'b' in line 3.*; write it beside every point"):
        rows(path)


@pytest.mark.parametrize("grid", [1.0, 0.1, 0.01])
def test_rounded_coordinates_are_noticed(grid):
    offsets = np.round(np.random.default_rng(0).normal(0, 30, (200, 2)) / grid) * grid
    reader = measured(offsets)
    assert reader.grid == grid
    assert reader.floor * reader.scale == pytest.approx(grid / np.sqrt(12))
    assert measured(np.random.default_rng(0).normal(0, 30, (200, 2))).grid == 0


def test_saved_and_loaded(tmp_path):
    table = drawn(open_table(write(tmp_path, "points.npz")))
    text = DrawnText.learn({"scale": "standard"}, lambda: (row.fields for row in table.rows()))
    text.save(tmp_path / "text")
    again = DrawnText.load(tmp_path / "text")
    assert again.fingerprint() == text.fingerprint()
    assert again.about() == {"drawing": "pen strokes, a usual step 4 units, rounded to 1", "label": "1 labels"}
    with pytest.raises(DataError, match=r"the label 'dog' is none of the 1 that training rows have"):
        again.label_reader.encode_ids(["dog"])
    assert again.label_reader.encode_ids(["cat", ""]) == [[1], [0]]


@pytest.mark.parametrize(
    "given", ["abc", 3, [], np.zeros((3, 2)), [np.zeros((0, 2))], [[[1, 2, 3, 4]]], np.zeros((0, 3))]
)
def test_what_is_no_drawing_is_refused(given):
    with pytest.raises(UsageError, match=r"neither an array \[points, 3\] of \(dx, dy, pen\) nor a list of strokes"):
        as_drawing(given)


def test_a_single_point_is_a_drawing():
    assert as_drawing([[[3, 4]]]).tolist() == [[3, 4, 2]]
    assert as_drawing(np.array([[3.0, 4.0, 2.0]])).tolist() == [[3, 4, 2]]
    with pytest.raises(DataError, match=r"^stroke 1, point 1: a number is not finite"):
        as_drawing([[[np.inf, 4]]])
