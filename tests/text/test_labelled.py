"""Labels: learnt, saved, read again, and refused where there are none such."""

import pytest

from unrolled.base.errors import DataError
from unrolled.text.labelled import LabelledText, Labels, UnseenLabel

SETTINGS = {"tokenizer": {"kind": "word", "min_count": 1}, "separator": None}
ROWS = [("a b", "x"), ("b c", " y "), ("c", "x")]


def test_labels_are_sorted_counted_and_free_of_space():
    text = LabelledText.learn(SETTINGS, lambda: ROWS)
    labels = text.labels
    assert (labels.names, labels.counts, labels.rows) == (("x", "y"), (2, 1), 3)
    assert labels.encode_ids(["y", "x ", " x"]) == [[1], [0], [0]]
    assert text.targets(["y", "z", "x"]).tolist() == [1, -1, 0]
    with pytest.raises(UnseenLabel, match="the label 'z' is none of the 2 that training rows have"):
        labels.encode_ids(["x", "z"])
    more = labels.admitting(["w", "x"])
    assert (more.names, more.counts, more.rows) == (("w", "x", "y"), (0, 2, 1), 3)


def test_several_labels_of_a_cell():
    labels = Labels.learn(["b, a", "", "a,a"], separator=",")
    assert (labels.names, labels.counts, labels.rows) == (("a", "b"), (2, 1), 3)
    assert labels.encode_ids(["b , a", "", ","]) == [[0, 1], [], []] and labels.join(["a", "b"]) == "a,b"
    text = LabelledText.learn(SETTINGS | {"separator": ","}, lambda: [("t", "a"), ("u", "b")])
    assert text.targets(["b", "a,q", ""]).tolist() == [[False, True, False], [True, False, True], [False] * 3]


@pytest.mark.parametrize("separator", [None, "|"])
def test_what_was_saved_is_loaded(tmp_path, separator):
    text = LabelledText.learn(SETTINGS | {"separator": separator}, lambda: ROWS)
    text.save(tmp_path / "text")
    again = LabelledText.load(tmp_path / "text")
    assert again.fingerprint() == text.fingerprint() and again.about() == text.about()
    assert (again.labels.counts, again.labels.rows) == (text.labels.counts, text.labels.rows)
    assert again.tokenizer.encode_ids(["a c"]) == text.tokenizer.encode_ids(["a c"])


@pytest.mark.parametrize("damage", ["", "[1]", '{"labels": ["a"], "counts": [], "rows": 1, "separator": null}'])
def test_a_damaged_list_of_labels_is_a_data_error(tmp_path, damage):
    LabelledText.learn(SETTINGS, lambda: ROWS).save(tmp_path)
    (tmp_path / "labels.json").write_text(damage)
    with pytest.raises(DataError, match=r"labels.json: damaged, it does not hold the labels"):
        LabelledText.load(tmp_path)
    (tmp_path / "labels.json").unlink()
    with pytest.raises(DataError, match=r"labels.json: the labels cannot be read"):
        LabelledText.load(tmp_path)
