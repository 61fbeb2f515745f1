"""A folder for each label: what is one, what its rows are, and what is refused."""

from pathlib import Path

import pytest

from unrolled.base.errors import DataError, UsageError
from unrolled.data.label_folders import holds_labels
from unrolled.data.parts import Part
from unrolled.data.readers import open_table, splits


def make(folder: Path, *files: str) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def rows(folder: Path, split: str = "train") -> list[tuple[str, str]]:
    return [(row.fields[0].removeprefix(f"{folder}/"), row.fields[1]) for row in splits(folder)[split].rows()]


def test_the_first_folder_below_is_the_label_at_any_depth(tmp_path):
    make(tmp_path, "dog/2.png", "cat/old/1.jpg", "cat/3.png", "cat/.hidden.png", "cat/notes.txt", ".git/a.png")
    assert rows(tmp_path) == [("cat/3.png", "cat"), ("cat/old/1.jpg", "cat"), ("dog/2.png", "dog")]
    table = open_table(tmp_path)
    assert table.columns == ("image", "label") and table.place(1) == str(tmp_path / "cat/3.png")
    assert "cat (2), dog (1)" in table.guessed[0]


def test_splits_hold_folders_of_labels_and_a_label_may_be_called_as_one(tmp_path):
    make(tmp_path / "a", "train/cat/1.wav", "train/dog/2.wav", "test/cat/3.wav", "val/dog/4.wav")
    assert {name: table.columns for name, table in splits(tmp_path / "a").items()} == dict.fromkeys(
        ("train", "valid", "test"), ("sound", "label")
    )
    assert rows(tmp_path / "a", "test") == [("test/cat/3.wav", "cat")]
    make(tmp_path / "b", "test/1.wav", "flight/2.wav")  # nothing lies in a folder in test: it is a label
    assert rows(tmp_path / "b") == [("flight/2.wav", "flight"), ("test/1.wav", "test")]


def test_rows_are_held_out_wherever_the_folder_lies(tmp_path):
    names = [f"{label}/{number}.png" for label in ("cat", "dog") for number in range(30)]
    held = []
    for place in ("here", "over/there"):
        folder = make(tmp_path / place, *names)
        part = Part(open_table(folder), (0, 1), high=0.5)
        held.append([row.fields[0].removeprefix(f"{folder}/") for row in part.rows()])
    assert held[0] == held[1] and 10 < len(held[0]) < 50


def test_what_is_none_is_not_taken_for_one(tmp_path):
    assert not holds_labels(make(tmp_path / "loose", "cat/1.png", "2.png"))
    assert not holds_labels(make(tmp_path / "table", "images/1.png", "train.tsv"))
    assert not holds_labels(make(tmp_path / "other", "cat/1.doc"))
    assert not holds_labels(tmp_path / "missing")


def test_what_cannot_be_told_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"several kinds of files in it \(image, sound\). Give a folder of one"):
        open_table(make(tmp_path / "kinds", "cat/1.png", "dog/2.wav"))
    with pytest.raises(DataError, match=r"both test and test-2 could be test. Name the folders"):
        open_table(make(tmp_path / "twice", "test/cat/1.png", "test-2/cat/2.png", "train/cat/3.png"))
    make(tmp_path / "empty", "cat/1.png", "dog/notes.txt")
    with pytest.raises(DataError, match=r"nothing is in the folder of the label 'dog'. Remove it, or put files in it"):
        open_table(tmp_path / "empty")


def test_files_outside_folders_of_labels_are_told_how_they_should_lie(tmp_path):
    with pytest.raises(DataError, match=r"loose: 2.png lies beside the folders of labels \(cat\), and so has none"):
        open_table(make(tmp_path / "loose", "cat/1.png", "2.png"))
    with pytest.raises(DataError, match=r"flat: 2 recordings lie here, in no .* \(bell/1.wav, horn/2.wav\): give the"):
        open_table(make(tmp_path / "flat", "1.wav", "2.wav"))
    make(tmp_path / "bare", "cat/notes.doc", "dog/notes.doc")
    with pytest.raises(DataError, match=r"bare: there is no file .* neither images nor recordings .*\(cat, dog\)"):
        open_table(tmp_path / "bare")
    make(tmp_path / "wrapped", "x/cat/1.png", "x/dog/2.png")
    (said,) = open_table(tmp_path / "wrapped").guessed
    assert said.startswith("All files lie in x, which is their label. If the labels are cat, dog: give")
    assert said.endswith("wrapped/x.")
