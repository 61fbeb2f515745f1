# ruff: noqa: E501 (messages are given word for word)
"""Whatever is wrong with a file ends in one sentence with its name and line: DataError, never another exception."""

import gzip
import io
import json
import os
import random

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.data import encodings
from unrolled.data.opening import MAX_LINE, Survey, read_lines, survey
from unrolled.data.readers import FORMATS, open_parallel, open_table, splits


def sentence_of(path, **choices):
    """The message that reading ``path`` to its end gives."""
    with pytest.raises(DataError) as caught:
        for _ in open_table(path, **choices).rows():
            pass
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message.removeprefix(str(path.parent) + "/")


GOOD = "a\tb\nc\td\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.tsv", b"", "a.tsv: the file is empty."),
        ("a.tsv", b"\n\r\n  \n", "a.tsv: all 3 lines are blank."),
        ("a.tsv", b"a\tb\nc\n", "a.tsv:2: 1 column where 2 are expected (source, target). Columns are separated by one tab."),
        ("a.tsv", b"a\tb\nc\0\td\n", "a.tsv:2: a NUL character (at character 2). Is this a text file?"),
        ("a.tsv", "a\tb\nc\td\n".encode("utf-16"), "a.tsv: the file is UTF-16, not UTF-8. Convert it with: iconv -f UTF-16 -t UTF-8 a.tsv > a.utf8.tsv"),
        ("a.tsv", "a\tb\nc\td\n".encode("utf-16-le"), "a.tsv: the file looks like UTF-16LE, not UTF-8. Convert it with: iconv -f UTF-16LE -t UTF-8 a.tsv > a.utf8.tsv"),
        ("a.tsv", "a\tb\nc\td\n".encode("utf-32"), "a.tsv: the file is UTF-32, not UTF-8. Convert it with: iconv -f UTF-32 -t UTF-8 a.tsv > a.utf8.tsv"),
        ("a.tsv", b"PK\x03\x04rest", "a.tsv: this is not text but a zip archive or a spreadsheet. Unpack it, or export the sheet as TSV or CSV."),
        ("a.tsv", b"a\tb\rc\td\r", "a.tsv: the lines end in a carriage return alone, as on old Macintoshes. Convert them with: tr '\\r' '\\n' < a.tsv > a.lines.tsv"),
        ("a.tsv", "a\tb\ndéjà\tvu\n".encode("latin-1"), "a.tsv:2: not UTF-8 (byte 0xE9 at byte 2 of the line). As WINDOWS-1252 it reads 'déjà vu'; if that is right, convert the file with: iconv -f WINDOWS-1252 -t UTF-8 a.tsv > a.utf8.tsv"),
        ("a.csv", b'x,y\n"a,b\nc,d\n', 'a.csv:2: a quotation mark (") opens here and is never closed. Close it, or write "" for a mark inside quotes.'),
        ("a.csv", b'x,y\n"a"b,c\n', 'a.csv:2: after a closing quotation mark (") a comma must follow. Write "" for a mark inside quotes.'),
        ("a.csv", b"x,y\na\rb,c\n", "a.csv:2: a carriage return in the middle of the line. Remove it, or quote the field."),
        ("a.csv", b"x,y\nx,y\na,b,c\n", "a.csv:3: 3 columns where 2 are expected (source, target). Remove the extra comma or name the columns with --columns."),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "a.jsonl:2: not JSON (expecting value, character 10)."),
        ("a.jsonl", b'{"text": "a"}\n{"text": NaN}\n', "a.jsonl:2: not JSON (NaN is no value there). Write a number, a text or null."),
        ("a.tsv", b"a\tb\nc\td\re\tf\n", "a.tsv:2: 3 columns where 2 are expected (source, target). A carriage return stands in the middle of the line: two lines run together? Put a line feed there."),
        ("a.jsonl", b'{"text": "a"}\n[1, 2]\n', 'a.jsonl:2: an array where an object is expected, e.g. {"source": "…", "target": "…"}.'),
        ("a.jsonl", b'{"text": "a"}\n7\n', 'a.jsonl:2: a single value where an object is expected, e.g. {"source": "…", "target": "…"}.'),
        ("a.jsonl", b'{"text": "a"}\n{"txet": "b"}\n', "a.jsonl:2: the key 'text' is missing. Did you mean 'txet'? Known: txet."),
        ("a.jsonl", b'{"text": "a"}\n{"text": null}\n', "a.jsonl:2: 'text' is null where text is expected."),
        ("a.jsonl", b'{"text": "a"}\n{"text": ["b"]}\n', "a.jsonl:2: 'text' is an array where text is expected."),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\\ud83d"}\n', "a.jsonl:2: 'text' holds half a character (\\ud83d, a lone surrogate). Write both halves or none."),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\\u0000"}\n', "a.jsonl:2: 'text' holds a NUL character (\\u0000). Remove it."),
        ("a.jsonl", b'{"text": "a"}\n' + b'{"a":' * 100_000 + b"\n", "a.jsonl:2: brackets nested too deep. Write one flat object a line."),
        ("a.json", b'[{"text": "a"},\n {"text": "b"}]\n', "a.json: a JSON array where one object a line is expected. Convert it with: jq -c '.[]' a.json > a.lines.jsonl"),
        ("a.jsonl", b"{}\n", 'a.jsonl: the objects have no keys with text. Write e.g. {"source": "…", "target": "…"}.'),
        ("a.tsv.gz", GOOD.encode(), "a.tsv.gz: the name ends in .gz but the content is not gzip. Rename it to 'a.tsv'."),
        ("a.tsv.gz", b"", "a.tsv.gz: the file is empty."),
        ("a.tsv.gz", gzip.compress(GOOD.encode() * 100, mtime=0)[:-12], "a.tsv.gz: the gzip file ends too early. Was the download or copy cut off? Fetch it again."),
        ("a.tsv.gz", gzip.compress(GOOD.encode(), mtime=0) + b"junk", "a.tsv.gz: the gzip file is damaged (Not a gzipped file (b'ju')). Fetch or pack it again."),
        ("a.tsv.gz", gzip.compress(gzip.compress(GOOD.encode(), mtime=0), mtime=0), "a.tsv.gz: this is not text but packed by gzip twice. Unpack it once with: gunzip."),
        ("a.parquet", GOOD.encode(), "a.parquet: the file is not whole (Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file). Write or fetch it again."),
    ],
)  # fmt: skip
def test_the_sentence(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    assert sentence_of(path) == expected


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.txt"])
@pytest.mark.parametrize("length", [MAX_LINE + 1, 1_000_000, 3_500_000])
def test_a_line_that_is_too_long_is_named_and_the_next_ones_keep_their_numbers(tmp_path, name, length):
    line = '{"text": "a"}' if name == "a.jsonl" else "a"
    path = tmp_path / name
    path.write_text(f"{line}\n{'x' * length}\n{line}\n")
    expected = f"{name}:2: a line of more than 500,000 characters. Is a line end missing, or is this not a text file?"
    assert sentence_of(path) == expected
    wrong = []
    assert [row.place for row in open_table(path).rows(wrong.append)] == [1, 3]
    assert [(each.place, each.kind) for each in wrong] == [(2, "long")]


def test_the_longest_line_allowed_is_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("ä" * MAX_LINE + "\nb\n")
    assert [len(row.fields[0]) for row in open_table(path).rows()] == [MAX_LINE, 1]


def test_every_wrong_line_is_reported_and_the_good_ones_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tb\nc\n\xff\td\ne\tf\tg\nh\ti\nj\0\tk\nl\tm\n")
    wrong = []
    assert [row.fields for row in open_table(path).rows(wrong.append)] == [("a", "b"), ("h", "i"), ("l", "m")]
    assert [(each.place, each.kind) for each in wrong] == [(2, "columns"), (3, "encoding"), (4, "columns"), (6, "nul")]


def test_parallel_files_keep_step_past_a_wrong_line(tmp_path):
    (tmp_path / "a.en").write_bytes(b"one\ntw\xff\nthree\n")
    (tmp_path / "a.de").write_bytes(b"eins\nzwei\ndrei\n")
    wrong = []
    table = open_parallel(tmp_path / "a.en", tmp_path / "a.de")
    assert [row.fields for row in table.rows(wrong.append)] == [("one", "eins"), ("three", "drei")]
    assert [(each.path.name, each.place) for each in wrong] == [("a.en", 2)]


@pytest.mark.parametrize(("left", "right"), [(3, 5), (5, 3)])
def test_parallel_files_of_different_length_are_both_named(tmp_path, left, right):
    (tmp_path / "a.en").write_text("x\n" * left)
    (tmp_path / "a.de").write_text("y\n" * right)
    with pytest.raises(
        DataError, match=rf"a\.en has {left} lines and .*a\.de has {right}\. Parallel files need the same"
    ):
        list(open_parallel(tmp_path / "a.en", tmp_path / "a.de").rows())


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(DataError, match=r"pairs\.tvs: there is no such file\. Is it in another folder than"):
        open_table(tmp_path / "pairs.tvs")
    (tmp_path / "pairs.tsv").write_text(GOOD)
    with pytest.raises(DataError, match=r"pairs\.tvs: there is no such file\. Did you mean '.*pairs\.tsv'\?"):
        open_table(tmp_path / "pairs.tvs")
    with pytest.raises(DataError, match=r"there is no such file\. Nor is there a folder"):
        open_table(tmp_path / "nowhere" / "pairs.tsv")
    with pytest.raises(DataError, match="there is no such file"):
        open_table(tmp_path / "pairs.tsv" / "inside.tsv")
    with pytest.raises(DataError, match="this is a folder where a file is expected"):
        open_table(tmp_path, format="tsv")
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(
        DataError, match=r"this is a pipe, but data is read more than once\. Write it to a file first\."
    ):
        open_table(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match="this is a device or socket"):
        open_table("/dev/zero")
    with pytest.raises(DataError, match=r"this cannot be a path \(File name too long\)"):
        open_table(tmp_path / ("x" * 300 + ".tsv"))
    with pytest.raises(DataError, match="null"):
        open_table("a\0b.tsv")
    (tmp_path / "loop.tsv").symlink_to(tmp_path / "loop.tsv")
    with pytest.raises(DataError, match="symbolic links"):
        open_table(tmp_path / "loop.tsv")


def test_an_unreadable_file(tmp_path, monkeypatch):
    path = tmp_path / "a.tsv"
    path.write_text(GOOD)
    path.chmod(0)
    if os.geteuid() == 0:  # root reads everything: refuse in its place

        def refuse(self, *mode, **choices):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("pathlib.Path.open", refuse)
    assert sentence_of(path) == "a.tsv: the file cannot be read (Permission denied)."


def test_a_disk_that_fails_while_reading(tmp_path, monkeypatch):
    path = tmp_path / "a.tsv"
    path.write_text(GOOD)
    table = open_table(path)

    class Failing(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    whole = type(path).open
    monkeypatch.setattr(
        "pathlib.Path.open", lambda self, mode, buffering=-1: Failing() if buffering == 0 else whole(self, mode)
    )
    with pytest.raises(DataError, match=r"a\.tsv: the file cannot be read \(Input/output error\)\."):
        list(table.rows())


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        ("Ça alors, déjà vu à l'été", "latin-1", "WINDOWS-1252"),
        ("„Größe“ – schön", "cp1252", "WINDOWS-1252"),
        ("Привет, как дела?", "cp1251", "WINDOWS-1251"),
        ("Привет, как дела?", "koi8-r", "KOI8-R"),
        ("これはテストです。", "cp932", "SHIFT_JIS"),
        ("これはテストです。", "euc-jp", "EUC-JP"),
        ("안녕하세요 세계", "euc-kr", "EUC-KR"),
        ("你好，这是一个测试。", "gb18030", "GB18030"),
    ],
)
def test_the_likely_encoding(text, codec, name):
    assert encodings.likely(text.encode(codec)) == name


def test_random_bytes_have_no_likely_encoding():
    assert encodings.likely(random.Random(3).randbytes(2000)) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", Survey(0, 0, 0, 0, 0, False, True)),
        (b"a\nb\n", Survey(4, 2, 0, 0, 0, False, True)),
        (b"\xef\xbb\xbfa\r\nb\rc\n\rd\r", Survey(13, 3, 1, 3, 2, True, False)),
    ],
)
def test_the_survey_counts_line_ends(tmp_path, monkeypatch, content, expected):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    for block in (3, 4, 5, 7, 1 << 20):
        monkeypatch.setattr("unrolled.data.opening.BLOCK", block)
        assert survey(path) == expected


@given(st.binary(max_size=60))
def test_the_survey_agrees_with_counting(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("survey") / "a.txt"
    path.write_bytes(content)
    if content[:2] == b"\x1f\x8b":
        return
    found = survey(path)
    bare = content.replace(b"\r\n", b"")
    assert (found.crlf, found.lone_returns) == (content.count(b"\r\n"), bare.count(b"\r"))
    expected = content.split(b"\r")[0].count(b"\n") + 1 if found.lone_returns and not found.crlf else None
    assert expected is None or found.first_lone_return == expected


def rows_or_sentence(path, **choices):
    """Read everything; DataError and UsageError are fine, all else is a bug."""
    try:
        table = open_table(path, **choices)
        for row in table.rows():
            assert len(row.fields) == len(table.columns)
            assert all("\0" not in field and field.encode() is not None for field in row.fields)
        wrong = []
        for _ in table.rows(wrong.append):
            pass
        assert not wrong
    except DataError as error:
        assert str(error)
        assert "\n" not in str(error)


TEXT_FORMATS = sorted(set(FORMATS) - {"parquet"})
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(st.binary(max_size=200), st.sampled_from([*TEXT_FORMATS, None]), st.booleans())
@example(b"\x00", "tsv", False)
@example(b'"', "csv", False)
@example(b"\xef\xbb\xbf", None, False)
def test_random_bytes(tmp_path, content, kind, packed):
    path = tmp_path / "fuzz"
    path.write_bytes(gzip.compress(content) if packed else content)
    rows_or_sentence(path, format=kind)


SAMPLES = {
    "tsv": 'source\ttarget\nGo.\tVa !\nHe said "no".\tIl a dit « non ».\n',
    "csv": 'text;label\n"two\nlines";x\nplain;y\n"a ""b""";z\n',
    "jsonl": '{"source": "a\\u00e9\\ud83d\\ude00", "target": {"x": [1, 2.5]}}\n{"source": "b", "target": true}\n',
    "text": "one line\nанд another\n\n世界\n",
}


@FUZZ
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 120), st.binary(max_size=3)), min_size=1, max_size=4),
    st.sampled_from(["plain", "packed before", "packed after"]),
)
def test_mutated_files(tmp_path, kind, changes, packing):
    content = bytearray(SAMPLES[kind].encode())
    if packing == "packed before":
        content = bytearray(gzip.compress(bytes(content)))
    for place, new in changes:
        at = place % (len(content) + 1)
        content[at : at + 1] = new
    path = tmp_path / "fuzz"
    path.write_bytes(gzip.compress(bytes(content)) if packing == "packed after" else bytes(content))
    rows_or_sentence(path, format=kind)
    rows_or_sentence(path)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 9))
def test_mutated_parquet(tmp_path, changes, cut):
    written = io.BytesIO()
    pairs = pyarrow.table({"source": ["a", "bé", None] * 9, "translation": [{"de": "x", "en": "y"}] * 27})
    pyarrow.parquet.write_table(pairs, written, compression="none", use_dictionary=False)
    content = bytearray(written.getvalue())
    for place, new in changes:
        content[place % len(content)] = new
    path = tmp_path / "fuzz.parquet"
    path.write_bytes(bytes(content[: len(content) - cut // 8]))
    rows_or_sentence(path)


@FUZZ
@given(st.lists(st.binary(max_size=30), min_size=2, max_size=2))
def test_random_parallel_files(tmp_path, contents):
    for name, content in zip(("a", "b"), contents, strict=True):
        (tmp_path / name).write_bytes(content)
    try:
        assert all(len(row.fields) == 2 for row in open_parallel(tmp_path / "a", tmp_path / "b").rows())
    except DataError as error:
        assert "\n" not in str(error)


@given(st.text(max_size=30))
def test_any_text_as_columns(tmp_path_factory, columns):
    path = tmp_path_factory.mktemp("columns") / "a.tsv"
    path.write_text(GOOD)
    try:
        assert list(open_table(path, columns=columns).rows())
    except UsageError as error:
        assert "\n" not in str(error)


class TestHub:
    """Data sets of the library: saved folders, repositories, and names."""

    PAIRS = [{"translation": {"de": "eins", "en": "one"}}, {"translation": {"de": "zwei", "en": "two"}}]

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        datasets = pytest.importorskip("datasets")
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
        self.datasets = datasets

    def test_a_saved_folder(self, tmp_path):
        whole = self.datasets.Dataset.from_list(self.PAIRS)
        self.datasets.DatasetDict(train=whole, validation=whole.select([1])).save_to_disk(tmp_path / "saved")
        found = splits(tmp_path / "saved", columns="translation.en,translation.de")
        assert {split: [row.fields for row in table.rows()] for split, table in found.items()} == {
            "train": [("one", "eins"), ("two", "zwei")],
            "valid": [("two", "zwei")],
        }
        whole.save_to_disk(tmp_path / "single")
        assert [row.place for row in open_table(tmp_path / "single").rows()] == [1, 2]
        assert open_table(tmp_path / "single").fingerprint() != found["valid"].fingerprint()

    def test_a_damaged_saved_folder(self, tmp_path):
        self.datasets.Dataset.from_list(self.PAIRS).save_to_disk(tmp_path / "saved")
        (tmp_path / "saved" / "data-00000-of-00001.arrow").write_bytes(b"rubbish")
        with pytest.raises(DataError, match="saved: the data set cannot be loaded"):
            open_table(tmp_path / "saved")

    def test_a_local_repository(self, tmp_path):
        folder = tmp_path / "repository" / "data"
        folder.mkdir(parents=True)
        for number, pair in enumerate(self.PAIRS):
            (folder / f"train-0000{number}-of-00002.jsonl").write_text(json.dumps(pair) + "\n")
        table = open_table(tmp_path / "repository")
        assert [row.fields for row in table.rows()] == [("eins", "one"), ("zwei", "two")]

    def test_a_name(self, monkeypatch):
        asked = []

        def load(name, config):
            asked.append((name, config))
            whole = self.datasets.Dataset.from_list([{"text": "good", "label": "yes"}])
            return self.datasets.DatasetDict(train=whole, test=whole)

        monkeypatch.setattr(self.datasets, "load_dataset", load)
        assert list(splits("owner/name:de-en")) == ["train", "test"]
        assert [row.fields for row in open_table("hf:imdb").rows()] == [("good", "yes")]
        assert asked == [("owner/name", "de-en"), ("imdb", None)]

    def test_a_name_that_cannot_be_reached(self, monkeypatch):
        def load(name, config):
            raise ConnectionError("Couldn't reach 'owner/name' on the Hub")

        monkeypatch.setattr(self.datasets, "load_dataset", load)
        with pytest.raises(DataError, match="owner/name: the Hugging Face hub cannot be reached"):
            open_table("owner/name")

    def test_a_name_that_is_not_there(self, monkeypatch):
        def load(name, config):
            raise self.datasets.exceptions.DatasetNotFoundError("Dataset 'owner/name' doesn't exist.")

        monkeypatch.setattr(self.datasets, "load_dataset", load)
        with pytest.raises(
            DataError, match=r"owner/name: the data set cannot be loaded \(Dataset 'owner/name' doesn't"
        ):
            open_table("owner/name")

    def test_a_wrong_path_is_not_taken_for_a_name(self, monkeypatch, tmp_path):
        monkeypatch.setattr(self.datasets, "load_dataset", lambda name, config: pytest.fail("asked the hub"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "data").mkdir()
        for path in ("data/pairs", "nowhere/pairs.tsv", "pairs", "./a/b", "/a/b", "nowhere/pairs.txt"):
            with pytest.raises(DataError, match="there is no such file"):
                open_table(path)


def test_lines_of_a_huge_line_are_not_held(tmp_path):
    import tracemalloc

    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        for _ in range(40):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    assert [text for _, text in read_lines(path, lambda wrong: None)] == [None]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000
