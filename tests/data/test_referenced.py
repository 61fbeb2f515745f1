"""Tables of paths, and folders of files with a text beside each."""

import pytest

from unrolled.base.errors import DataError, UsageError
from unrolled.data.endings import kind_of
from unrolled.data.parts import Part, hold_out
from unrolled.data.readers import open_table, splits
from unrolled.data.referenced import column_of, files_in, resolved

DATA = {"valid_share": 0.4, "valid_rows": 10}


def test_the_kind_of_a_file_is_told_by_its_ending():
    assert [kind_of(name) for name in ("a.PNG", "b/c.jpeg", "d.wav", "e.txt", "f")] == [
        "image", "image", "sound", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name, text",
    [
        ("t.tsv", "caption\timage\na dog\timg/1.png\na cat\timg/2.png\n"),
        ("t.csv", "caption,image\na dog,img/1.png\na cat, img/2.png \n"),
        ("t.jsonl", '{"caption": "a dog", "image": "img/1.png"}\n{"caption": "a cat", "image": "img/2.png"}\n'),
    ],
)
def test_paths_start_in_the_folder_of_their_table(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    table = open_table(tmp_path / name)
    assert table.columns == ("caption", "image")
    assert column_of(table, "image") == 1 and column_of(table, "sound") is None
    rows = [row.fields for row in resolved(table, 1).rows()]
    assert rows == [("a dog", str(tmp_path / "img/1.png")), ("a cat", str(tmp_path / "img/2.png"))]


def test_an_absolute_path_stays_and_an_empty_one_is_wrong(tmp_path):
    (tmp_path / "t.tsv").write_text("image\tcaption\n/far/1.png\ta dog\n \ta cat\n")
    table = resolved(open_table(tmp_path / "t.tsv"), 0)
    wrong = []
    assert [row.fields[0] for row in table.rows(wrong.append)] == ["/far/1.png"]
    assert str(wrong[0]) == f"{tmp_path}/t.tsv:3: the path is empty. Name a file, or leave the row out."
    with pytest.raises(DataError, match=r"t.tsv:3: the path is empty"):
        list(table.rows())


def test_the_rows_held_out_do_not_depend_on_where_the_folder_lies(tmp_path):
    held = []
    for place in ("here", "there/deep"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        rows = "".join(f"img/{number}.png\tcaption {line}\n" for number in range(10) for line in range(2))
        (folder / "t.tsv").write_text("image\tcaption\n" + rows)
        train, valid, _ = hold_out(Part(resolved(open_table(folder / "t.tsv"), 0), (0, 1)), DATA, "image")
        held.append([(row.fields[0].removeprefix(str(folder)), row.fields[1]) for row in valid.rows()])
        assert not {row.fields[0] for row in train.rows()} & {row.fields[0] for row in valid.rows()}
    assert held[0] == held[1] and len(held[0]) == 8  # both captions of four images


def write(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.png").write_bytes(b"")
        if text is not None:
            (folder / f"{name}.txt").write_text(text)


def test_a_folder_of_images_with_texts_beside_them_is_a_table(tmp_path):
    write(tmp_path, b="a cat\n", a="a dog\n\na big dog\n")
    (tmp_path / "notes.md").write_text("no caption")
    found = splits(tmp_path)
    assert list(found) == ["train"]
    table = found["train"]
    assert table.columns == ("image", "text")
    assert [(row.place, row.fields[1]) for row in table.rows()] == [(1, "a dog"), (1, "a big dog"), (2, "a cat")]
    assert [row.fields[0] for row in table.rows()] == [str(tmp_path / f"{name}.png") for name in "aab"]
    assert table.place(2) == str(tmp_path / "b.txt")
    assert [file.name for file in files_in(tmp_path, "image")] == ["a.png", "b.png"]
    before = table.fingerprint()
    write(tmp_path, b="a lion\n")
    assert splits(tmp_path)["train"].fingerprint() != before


def test_folders_inside_are_the_splits(tmp_path):
    write(tmp_path / "dev", a="one\n")
    write(tmp_path / "train", a="two\n", b="three\n")
    found = splits(tmp_path)
    assert {name: [row.fields[1] for row in table.rows()] for name, table in found.items()} == {
        "train": ["two", "three"],
        "valid": ["one"],
    }
    write(tmp_path, c="four\n")
    with pytest.raises(DataError, match=r"files lie both here and in train, dev"):
        splits(tmp_path)


def test_a_file_without_a_text_and_a_text_without_a_line_are_wrong(tmp_path):
    write(tmp_path, a="one\n", b=None, c=" \n")
    wrong = []
    assert len(list(splits(tmp_path)["train"].rows(wrong.append))) == 1
    assert [str(one) for one in wrong] == [
        f"{tmp_path}/b.png:1: there is no b.txt beside it. Write one, or move the file away.",
        f"{tmp_path}/c.txt:1: there is no text in it for c.png. Write a line, or remove both.",
    ]


def test_a_table_in_the_folder_comes_first_and_kinds_do_not_mix(tmp_path):
    write(tmp_path, a="one\n")
    (tmp_path / "a.wav").write_bytes(b"")
    with pytest.raises(UsageError, match=r"there are several kinds of files in it"):
        splits(tmp_path)
    (tmp_path / "metadata.csv").write_text("file_name,text\na.png,one\n")
    assert splits(tmp_path)["train"].format == "csv"
