"""Every format gives the same rows, says what it guessed, and streams."""

import gzip
import json
import re
import tracemalloc

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.data.opening import read_lines
from unrolled.data.readers import Row, open_parallel, open_table, splits
from unrolled.data.table import is_header

PAIRS = [("Go.", "Va !"), ('He said, "no".', "Il a dit « non »."), ("a; b", "a ; b"), ("\u2028\x0b\x85", "été")]


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def as_csv(pairs, delimiter=","):
    return "".join(delimiter.join('"' + cell.replace('"', '""') + '"' for cell in pair) + "\n" for pair in pairs)


CONTENTS = {
    "pairs.tsv": "".join(f"{a}\t{b}\n" for a, b in PAIRS),
    "pairs.csv": as_csv(PAIRS),
    "pairs.jsonl": "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in PAIRS),
    "pairs": "".join(f"{a}\t{b}\n" for a, b in PAIRS),
    "pairs.ndjson": "".join(json.dumps({"id": 7, "tgt": b, "src": a}, ensure_ascii=False) + "\r\n" for a, b in PAIRS),
}


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_gives_the_same_rows(tmp_path, name, packed):
    table = open_table(write(tmp_path / (name + packed), CONTENTS[name]))
    assert list(table.rows()) == [Row(number, pair) for number, pair in enumerate(PAIRS, start=1)]
    assert list(table.rows()) == list(table.rows()), "rows can be read again"


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_parallel_files_and_parquet_too(tmp_path, packed):
    source = write(tmp_path / f"a.en{packed}", "".join(a + "\n" for a, _ in PAIRS))
    target = write(tmp_path / f"a.fr{packed}", "".join(b + "\n" for _, b in PAIRS))
    assert [row.fields for row in open_parallel(source, target).rows()] == PAIRS
    parquet = tmp_path / "p.parquet"
    table = pyarrow.table({"source": [a for a, _ in PAIRS], "target": [b for _, b in PAIRS]})
    pyarrow.parquet.write_table(table, parquet, row_group_size=3)
    if packed:
        write(tmp_path / "p.parquet.gz", parquet.read_bytes())
    rows = list(open_table(tmp_path / f"p.parquet{packed}").rows())
    assert rows == [Row(number, pair) for number, pair in enumerate(PAIRS, start=1)]


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = write(tmp_path / "a.txt", "a\u2028b\x0bc\x0cd\x85e\x1cf\r\n\r\ng\rh\r\r\ni\r".encode())
    assert list(read_lines(path)) == [(1, "a\u2028b\x0bc\x0cd\x85e\x1cf"), (2, ""), (3, "g\rh"), (4, "i")]


@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
)
def test_lines_come_back_as_written(tmp_path_factory, lines, end):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "".join(line + end for line in lines).encode())
    assert [text for _, text in read_lines(path)] == lines


def test_lines_are_counted_right_across_blocks(tmp_path, monkeypatch):
    lines = [f"{number} äöü" * (number % 7) for number in range(300)]
    path = write(tmp_path / "a.txt", "\n".join(lines))
    for block in (1, 2, 3, 5, 17, 64, 1000):
        monkeypatch.setattr("unrolled.data.opening.BLOCK", block)
        assert list(read_lines(path)) == list(enumerate(lines, start=1))


def test_tsv_has_no_quoting(tmp_path):
    path = write(tmp_path / "a.tsv", 'the 5" pipe\tle tuyau\n"a\tb"\n')
    assert [row.fields for row in open_table(path).rows()] == [('the 5" pipe', "le tuyau"), ('"a', 'b"')]


def test_csv_keeps_quoted_line_ends_and_the_line_where_a_record_begins(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\r\n"two\r\nlines",x\r\n\r\nplain,y\r\n"a ""b""",z\r\n')
    table = open_table(path)
    assert table.columns == ("text", "label")
    assert list(table.rows()) == [Row(2, ("two\nlines", "x")), Row(5, ("plain", "y")), Row(6, ('a "b"', "z"))]
    assert table.guessed == ["The delimiter is the comma.", "The first row is a header: text, label."]


@pytest.mark.parametrize(("delimiter", "name"), [(",", "comma"), (";", "semicolon"), ("\t", "tab")])
def test_the_delimiter_is_guessed_and_said(tmp_path, delimiter, name):
    path = write(tmp_path / "a.csv", as_csv(PAIRS, delimiter))
    table = open_table(path)
    assert [row.fields for row in table.rows()] == PAIRS
    assert f"The delimiter is the {name}." in table.guessed


def test_commas_in_a_tsv_are_hinted_at(tmp_path):
    table = open_table(write(tmp_path / "a.tsv", "a,b\nc,d\n"))
    assert table.columns == ("text",)
    assert "if they are columns, name the file .csv" in table.guessed[-1]


def test_a_semicolon_file_with_decimal_commas(tmp_path):
    path = write(tmp_path / "a.csv", "1,5;2,5\n2,0;3,0\n4;5\n")
    assert [row.fields for row in open_table(path).rows()] == [("1,5", "2,5"), ("2,0", "3,0"), ("4", "5")]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("source\ttarget", True),
        ("Text\tLabel", True),
        ("de\ten", True),
        ("id\ttext\tauthor", True),
        ("de\tvon", False),
        ("text\tTexte", False),
        ("Go.\tVa !", False),
        ("source\tsource", False),
        ("aalborg\tAO1\tL", False),
    ],
)
def test_a_header_is_guessed_only_from_known_names(tmp_path, first, expected):
    assert is_header(first.split("\t")) is expected
    table = open_table(write(tmp_path / "a.tsv", first + "\n" + "\t".join("xyzw"[: first.count("\t") + 1]) + "\n"))
    assert len(list(table.rows())) == 2 - expected
    assert any("header:" in said for said in table.guessed) is expected


def test_columns_by_name_number_and_order(tmp_path):
    path = write(tmp_path / "a.tsv", "hebrew\tname\tcount\nא\talef\t2\nב\tbet\t3\n")
    wanted = [("alef", "א"), ("bet", "ב")]
    for columns in ("name,hebrew", ["name", "hebrew"], "2,1", [2, 1], "name,1"):
        table = open_table(path, columns=columns)
        assert [row.fields for row in table.rows()] == wanted
        assert table.columns == ("name", "hebrew")
    assert [row.fields for row in open_table(path, columns=["count"]).rows()] == [("2",), ("3",)]


def test_a_name_that_is_asked_for_makes_the_first_row_a_header(tmp_path):
    path = write(tmp_path / "a.tsv", "Quelle\tZiel\na\tb\n")
    assert len(list(open_table(path).rows())) == 2
    assert list(open_table(path, columns="Ziel,Quelle").rows()) == [Row(2, ("b", "a"))]


def test_columns_by_number_allow_more_behind_them(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\nc\td\tremark\n")
    message = (
        "3 columns where 2 are expected (source, target). Remove the extra tab or name the columns with --columns."
    )
    with pytest.raises(DataError, match=re.escape(f"a.tsv:2: {message}")):
        list(open_table(path).rows())
    assert [row.fields for row in open_table(path, columns="1,2").rows()] == [("a", "b"), ("c", "d")]


def test_unknown_columns_name_the_nearest(tmp_path):
    path = write(tmp_path / "a.tsv", "source\ttarget\na\tb\n")
    with pytest.raises(
        UsageError, match=r"no column is called 'sorce'\. Did you mean 'source'\? Known: source, target\."
    ):
        open_table(path, columns="sorce")
    with pytest.raises(UsageError, match=r"there is no column 3, only 2 columns \(source, target\)"):
        open_table(path, columns=[1, 3])
    with pytest.raises(UsageError, match="a column is a name or a number from 1"):
        open_table(path, columns="0,1")
    with pytest.raises(UsageError, match=r"no format is called 'tssv'. Did you mean 'tsv'\?"):
        open_table(path, format="tssv")
    with pytest.raises(UsageError, match="no column is called 'nix'"):
        open_table(write(tmp_path / "b.txt", "hello\n"), columns="nix")


@pytest.mark.parametrize(
    ("line", "columns", "expected"),
    [
        ({"source": "a", "target": "b", "id": "x"}, None, ("a", "b")),
        ({"src": "a", "tgt": "b"}, None, ("a", "b")),
        ({"de": "b", "en": "a"}, None, ("a", "b")),
        ({"translation": {"de": "a", "en": "b"}}, None, ("a", "b")),
        ({"translation": {"de": "a", "en": "b"}}, "translation.en,translation.de", ("b", "a")),
        ({"id": 3, "text": "a", "label": True}, None, ("a", "true")),
        ({"q": "a", "a": "b"}, None, ("a", "b")),
        ({"a.b": "x", "c": 1.50}, "c,a.b", ("1.5", "x")),
        ({"text": "a", "label": 12}, "label", ("12",)),
    ],
)
def test_json_keys(tmp_path, line, columns, expected):
    table = open_table(write(tmp_path / "a.jsonl", json.dumps(line) + "\n\n"), columns=columns)
    assert [row.fields for row in table.rows()] == [expected]


def test_json_numbers_keep_their_spelling(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "a", "label": 1.50e3}\n{"text": "b", "label": %s}\n' % ("9" * 6000))
    assert [row.fields[1] for row in open_table(path, columns="text,label").rows()] == ["1.50e3", "9" * 6000]


def test_parquet_types_and_inner_fields(tmp_path):
    path = tmp_path / "a.parquet"
    note = json.dumps({"info": {"features": {"label": {"names": ["ham", "spam"], "_type": "ClassLabel"}}}})
    table = pyarrow.table(
        {
            "translation": [{"de": "a", "en": "b"}, {"de": "c", "en": "d"}],
            "label": [1, 0],
            "score": [0.5, 2.0],
            "kind": pyarrow.array(["x", "y"]).dictionary_encode(),
            "list": [["p"], []],
        }
    ).replace_schema_metadata({"huggingface": note})
    pyarrow.parquet.write_table(table, path)
    assert [row.fields for row in open_table(path).rows()] == [("a", "b"), ("c", "d")]
    chosen = open_table(path, columns="translation.en,label,score,kind")
    assert [row.fields for row in chosen.rows()] == [("b", "spam", "0.5", "x"), ("d", "ham", "2.0", "y")]
    with pytest.raises(UsageError, match="the column 'list' is list"):
        open_table(path, columns="list")


def test_a_folder_of_tables_and_of_parallel_files(tmp_path):
    for name in ("train.tsv", "pairs-dev.tsv.gz", "test_2016.tsv"):
        write(tmp_path / name, CONTENTS["pairs.tsv"])
    write(tmp_path / "README.md", "train and test\n")
    found = splits(tmp_path)
    assert {split: table.path.name for split, table in found.items()} == {
        "train": "train.tsv",
        "valid": "pairs-dev.tsv.gz",
        "test": "test_2016.tsv",
    }
    assert open_table(tmp_path).guessed[-1] == "Taken is train, of train, valid, test."
    write(tmp_path / "test_2017.tsv", "a\tb\n")
    with pytest.raises(DataError, match=r"2 files could be the test split: test_2016\.tsv, test_2017\.tsv"):
        splits(tmp_path)


def test_a_folder_of_parallel_files(tmp_path):
    for split in ("train", "val"):
        for language, text in (("de", "eins\nzwei\n"), ("en", "one\ntwo\n")):
            write(tmp_path / f"{split}.{language}.gz", text)
    found = splits(tmp_path)
    assert found["train"].columns == ("de", "en")
    assert [row.fields for row in found["valid"].rows()] == [("eins", "one"), ("zwei", "two")]
    assert "source is de, target is en (the other way round: --columns en,de)" in found["train"].guessed[0]
    turned = splits(tmp_path, columns="en,de")
    assert [row.fields for row in turned["train"].rows()] == [("one", "eins"), ("two", "zwei")]
    with pytest.raises(UsageError, match=r"train has no side called 'fr'\. Known: de, en\."):
        splits(tmp_path, columns="fr,en")
    write(tmp_path / "train.fr.gz", "un\ndeux\n")
    with pytest.raises(DataError, match=r"train is there as de, en, fr\. Choose two: --columns de,en"):
        splits(tmp_path)


def test_a_folder_without_splits(tmp_path):
    with pytest.raises(DataError, match=r"no file in this folder is called train, valid or test\. Found: nothing\."):
        splits(tmp_path)
    write(tmp_path / "pairs.tsv", "a\tb\n")
    assert list(splits(tmp_path)) == ["train"]


def test_a_fingerprint_follows_content_and_columns(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\n")
    one, turned = open_table(path), open_table(path, columns="2,1")
    assert one.fingerprint() == open_table(path).fingerprint() != turned.fingerprint()
    before = one.fingerprint()
    write(path, "a\tc\n")
    assert open_table(path).fingerprint() != before


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr("unrolled.data.opening.BLOCK", 1 << 16)
    line = {"a.tsv": "some words here\tand some there\n", "a.csv": "some words here,and some there\n"}
    text = line.get(name, '{"source": "some words here", "target": "and some there"}\n')
    peaks = []
    for count in (10_000, 60_000):
        path = write(tmp_path / name, text * count)
        table = open_table(path)
        tracemalloc.start()
        assert sum(1 for _ in zip(range(count + 1), table.rows(), strict=False)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.2
