"""The doctor counts what a few lines of plain Python over the same rows count, and names the places."""

import itertools
import json
import tracemalloc
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.data.census import Census
from unrolled.data.checks import duplicates, lengths
from unrolled.data.column import count_characters
from unrolled.data.doctor import examine
from unrolled.data.readers import Row, open_parallel, open_table, splits
from unrolled.data.table import Table, cut

SHARED = Path(__file__).parents[3] / "shared" / "data"


def table_of(rows, columns=("source", "target"), name="a.tsv"):
    """A table that stands in no file."""

    def read(report):
        return (Row(number, tuple(fields)) for number, fields in enumerate(rows, start=1))

    return Table(Path(name), columns, read)


def found(report, kind, split=None):
    """The findings of a kind."""
    return [each for each in report.findings if each.kind == kind and split in (None, each.split)]


def only(report, kind, split=None):
    (finding,) = found(report, kind, split)
    return finding


FILLER = [(f"word{number} and more", f"mot{number} et plus") for number in range(100)]

SMALL = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), min_size=1, max_size=12)


@given(SMALL)
def test_duplicates_are_what_a_set_says(rows):
    report = examine({"train": table_of(rows)})
    repeated = [number for number, row in enumerate(rows) if row in rows[:number]]
    assert sum(each.count for each in found(report, "duplicate")) == len(repeated)
    if repeated:
        places = [f"a.tsv:{number + 1} (as line {rows.index(rows[number]) + 1})" for number in repeated]
        assert list(only(report, "duplicate").places) == places[:5]


@given(SMALL)
def test_several_targets_and_their_ceiling(rows):
    targets = defaultdict(Counter)
    for source, target in rows:
        targets[source][target] += 1
    many = [source for source, counts in targets.items() if len(counts) > 1]
    best = sum(max(counts.values()) for counts in targets.values()) / len(rows)
    report = examine({"train": table_of(rows)})
    if not many:
        assert not found(report, "several targets")
        return
    finding = only(report, "several targets")
    assert finding.count == len(many)
    assert f"exactly right on at most {best:.1%} of the rows" in finding.message


@given(SMALL, SMALL)
def test_overlap_is_what_sets_say(train, test):
    report = examine({"train": table_of(train), "test": table_of(test, name="b.tsv")})
    rows = [number for number, row in enumerate(test, start=1) if row in train]
    sources = {source for source, _ in train}
    others = [number for number, row in enumerate(test, start=1) if row not in train and row[0] in sources]
    for kind, expected in (("overlap", rows), ("source overlap", others)):
        if not expected:
            assert not found(report, kind)
            continue
        finding = only(report, kind, "test")
        assert finding.count == len(expected)
        assert finding.places == tuple(f"b.tsv:{number}" for number in expected[:5])


@given(st.lists(st.lists(st.sampled_from(["a", "bcd", "ef"]), max_size=7).map(" ".join), min_size=1, max_size=40))
def test_lengths_are_numpys(texts):
    census = Census("train", table_of([(text,) for text in texts], ("text",)))
    measured = lengths.measure(census, 0)
    counts = np.array([len(text.split()) for text in texts])
    if counts.mean() <= 1.5:
        counts = np.array([len(text) for text in texts])
    assert (measured.shortest, measured.longest) == (counts.min(), counts.max())
    assert measured.median == np.quantile(counts, 0.5, method="inverted_cdf")
    assert measured.percentile_99 == np.quantile(counts, 0.99, method="inverted_cdf")
    assert measured.mean == pytest.approx(counts.mean(), abs=0.006)
    edges = [-np.inf, *(np.arange(1, len(measured.histogram)) * measured.width), np.inf]
    expected = [((counts > low) & (counts <= high)).sum() for low, high in itertools.pairwise(edges)]
    assert list(measured.histogram) == expected
    worst = int(measured.longest_place.partition(":")[2]) - 1
    assert counts[worst] == counts.max()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_characters_are_counted_by_code_point(text):
    assert count_characters(text) == Counter(text)


def test_the_share_of_the_longest(tmp_path):
    census = Census("train", table_of([("x" * 10,)] * 198 + [("x" * 1000,)] * 2, ("text",)))
    assert lengths.measure(census, 0).longest_share == pytest.approx(2000 / (1980 + 2000), abs=1e-4)


def test_empty_sides_are_errors_with_their_places():
    rows = [*FILLER, ("", "x"), ("y", " \t"), ("", "z")]
    report = examine({"train": table_of(rows)})
    assert [(each.count, each.places) for each in found(report, "empty")] == [
        (2, ("a.tsv:101", "a.tsv:103")),
        (1, ("a.tsv:102",)),
    ]
    assert found(report, "empty")[0].message == "2 texts of 'source' empty. Fill in the text or remove the row."
    assert not report.ok
    assert report.count("error") == 2


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("a\x07b", "control", "1 text of 'source' with U+0007: they become symbols that nobody sees. Remove them."),
        ("a\u200fb", "control", "1 text of 'source' with U+200F right-to-left mark"),
        ("a\ufeffb", "control", "1 text of 'source' with U+FEFF zero width no-break space"),
        ("a\rb", "return", "two lines run together"),
        ("a\ufffdb", "replacement", "the mark of a lost character"),
        ("dÃ©jÃ\xa0 vu", "mojibake", "like UTF-8 read as Latin-1"),
        ("donâ€™t", "mojibake", "like UTF-8 read as Latin-1"),
        ("fish &amp; chips", "entity", "HTML entities"),
        ("раypal", "scripts", "Look-alikes?"),
        (" a", "spaces", "white space at an end"),
        ("e\u0301te\u0301", "decomposed", "not in NFC"),
    ],
)
def test_odd_texts(text, kind, message):
    report = examine({"train": table_of([*FILLER, (text, "x")])})
    finding = only(report, kind)
    assert message in finding.message
    assert (finding.count, finding.places) == (1, ("a.tsv:101",))
    assert report.ok


@pytest.mark.parametrize("text", ["déjà vu", "ÂME", "SÃO", "naïve «ça»", "AT&T; no", "привет", "über Ελλάδα", "בּ"[:1]])
def test_what_is_not_odd(text):
    report = examine({"train": table_of([*FILLER, (text, "x")])})
    assert not report.findings


def test_identical_sides():
    report = examine({"train": table_of([*FILLER, ("ok", "ok"), ("", "")])})
    assert only(report, "identical sides").places == ("a.tsv:101",)


def test_unusual_length_ratios():
    rows = [("a" * length, "b" * (length * 2)) for length in range(20, 220)]
    rows[7], rows[50] = ("a" * 200, "b" * 10), ("a" * 10, "b" * 900)
    finding = only(examine({"train": table_of(rows)}), "length ratio")
    assert finding.count == 2
    assert finding.places == ("a.tsv:51 (60 times)", "a.tsv:8 (0.073 times)")
    assert "not about 1.9 times as long" in finding.message
    assert not found(examine({"train": table_of(rows[60:])}), "length ratio")


def test_a_text_much_longer_than_all_others():
    rows = [*FILLER, *[(f"s {number}", f"t {number}") for number in range(101)], ("word " * 900, "t " * 900)]
    findings = found(examine({"train": table_of(rows)}), "long text")
    assert [each.places for each in findings] == [("a.tsv:202",)] * 2
    assert "the longest 'source' has 900 words, where 99 % have at most 3" in findings[0].message


LABELLED = [(f"text {number} {number * 7}", "spam" if number % 9 == 0 else "ham") for number in range(90)]


def test_classes_and_those_never_seen():
    train = table_of([*LABELLED, ("rare", "odd")], ("text", "label"))
    test = table_of([("new one", "spam"), ("new two", "other"), ("new three", "other")], ("text", "label"), "b.tsv")
    report = examine({"train": train, "test": test})
    assert report.splits[0].columns[1].labels == {"ham": 80, "spam": 10, "odd": 1}
    assert report.splits[0].columns[0].labels is None
    assert "1 class of 'label' never seen in train, in 2 rows: other" in only(report, "unseen classes").message
    assert only(report, "unseen classes").places == ("b.tsv:2",)
    assert only(report, "rare classes").message == "1 of 3 classes of 'label' are seen fewer than 5 times: odd."
    assert only(report, "unbalanced").message == "'ham' is 88% of 'label': always answering it is right that often."
    assert not any(each.column == "label" for each in report.unknown), "classes are not cut into symbols"


def test_translations_are_not_classes():
    report = examine({"train": table_of(FILLER), "test": table_of(FILLER[:3])})
    assert all(column.labels is None for split in report.splits for column in split.columns)
    assert not found(report, "unseen classes")


def test_unknown_symbols():
    train = table_of([("the cat sat here", "x y"), ("the cat ran home", "x y")] * 20)
    test = table_of([("the dog sat ñ", "x z")], name="b.tsv")
    report = examine({"train": train, "test": test})
    shares = {(each.column, each.tokenizer): each for each in report.unknown}
    assert shares["source", "character"].share == pytest.approx(3 / 13)  # d, g and ñ
    assert shares["source", "word"].share == pytest.approx(2 / 4)
    assert set(shares["source", "word"].examples) == {"dog", "ñ"}
    assert shares["target", "character"].share == pytest.approx(1 / 3)
    seen = [each for each in found(report, "unseen characters") if "source" in each.message]
    assert "'ñ' U+00F1 latin small letter n with tilde" in seen[0].message
    assert seen[0].places[0].startswith("b.tsv:1")
    severities = {(each.message.split()[1], each.severity) for each in found(report, "unknown symbols")}
    assert severities == {("word", "note"), ("character", "warning")}


def test_words_seen_once_are_unknown_as_the_word_tokenizer_has_it():
    train = table_of([("a b c", "x"), ("a b d", "x")])
    report = examine({"train": train, "valid": table_of([("a b c d", "x")], name="b.tsv")}, tokenizers=["word"])
    shares = [each.share for each in report.unknown if (each.column, each.tokenizer) == ("source", "word")]
    assert shares == [pytest.approx(0.5), pytest.approx(0.5)], "counted here, and measured with the tokenizer itself"


def test_real_tokenizers_measure_their_share():
    train = table_of([("abc abd", "x")] * 30)
    test = table_of([("abc é", "x")], name="b.tsv")
    report = examine({"train": train, "test": test}, tokenizers=["bpe", {"kind": "character"}])
    shares = {each.tokenizer: each.share for each in report.unknown if each.column == "source"}
    assert 0 < shares["bpe"] <= 1
    counted, measured = [
        each.share for each in report.unknown if (each.column, each.tokenizer) == ("source", "character")
    ]
    assert counted == pytest.approx(measured) == pytest.approx(1 / 5)


def write(path, content):
    path.write_bytes(content)
    return path


def test_wrong_lines_do_not_stop_the_doctor(tmp_path):
    lines = [f"source {number}\ttarget {number}\n".encode() for number in range(100)]
    lines[3], lines[5], lines[9] = b"alone\n", b"a\tb\tc\n", b"caf\xe9\tx\n"
    path = write(tmp_path / "a.tsv", b"".join(lines))
    report = examine({"train": open_table(path)})
    columns, encoding = only(report, "columns"), only(report, "encoding")
    assert columns.message == "2 lines with another number of columns, left out here. Repair them."
    assert columns.places[0].startswith(f"{path}:4: 1 column where 2 are expected")
    assert columns.places[1].startswith(f"{path}:6: 3 columns where 2 are expected")
    assert encoding.places[0].startswith(f"{path}:10: not UTF-8 (byte 0xE9 at byte 4 of the line)")
    assert report.splits[0].rows == 97
    assert report.splits[0].wrong == 3


def test_half_a_character_is_not_called_another_encoding(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"text": "a"}\n' * 9 + b'{"text": "\\ud83d"}\n')
    assert only(examine({"train": open_table(path)}), "half").message.startswith(
        "1 line with half a character, left out"
    )


def test_one_column_and_one_row_are_said(tmp_path):
    report = examine({"train": open_table(write(tmp_path / "a.txt", b"alone\n"))})
    assert only(report, "one row").message.startswith("one row, and some must be held out for validation: training")
    assert not report.ok and not found(report, "few rows")
    long = examine({"train": open_table(write(tmp_path / "c.txt", b"one line " * 20_000))})
    assert long.ok and only(long, "few rows").message.startswith("only 1 row"), "a language model learns from pieces"
    assert (
        only(report, "one column").message
        == "one column (text): running text, for a language model; to learn a text from a text takes two, "
        "source and target."
    )
    table = examine({"train": open_table(write(tmp_path / "b.csv", b"text\n" + b"alone\n" * 200))})
    assert only(table, "one column").message.startswith("one column (text): to learn a text from a text takes two")
    assert not found(examine({"train": table_of(FILLER)}), "one column")


def test_many_wrong_lines_are_counted_and_the_first_are_shown(tmp_path):
    path = write(tmp_path / "a.tsv", b"a\tb\n" * 70 + b"a\n" * 50)
    finding = only(examine({"train": open_table(path)}), "columns")
    assert (finding.count, len(finding.places)) == (50, 5)


def test_a_file_that_breaks_off_is_an_error(tmp_path):
    (tmp_path / "a.en").write_text("x y\n" * 30)
    (tmp_path / "a.de").write_text("u v\n" * 31)
    report = examine({"train": open_parallel(tmp_path / "a.en", tmp_path / "a.de")})
    assert "has 30 lines and" in only(report, "unreadable").message
    assert report.splits[0].rows == 30


def test_line_ends_and_the_byte_order_mark(tmp_path):
    rows = [f"s {number}\tt {number}".encode() for number in range(100)]
    windows = write(tmp_path / "w.tsv", b"\xef\xbb\xbf" + b"\r\n".join(rows))
    report = examine({"train": open_table(windows)})
    assert {each.kind for each in report.findings} == {"byte order mark", "windows line ends"}
    mixed = write(tmp_path / "m.tsv", b"\r\n".join(rows[:60]) + b"\r\n" + b"\n".join(rows[60:]) + b"\n")
    finding = only(examine({"train": open_table(mixed)}), "mixed line ends")
    assert (finding.severity, finding.message) == (
        "warning",
        "60 of 100 lines end in CR LF, the others in LF. The CR is left out.",
    )
    quoted = write(tmp_path / "q.csv", b"\r\n".join(b'"s\n%d","t"' % number for number in range(100)) + b"\r\n")
    assert not found(examine({"train": open_table(quoted)}), "mixed line ends"), "a quoted line end is another matter"


def test_places_of_parallel_files_name_the_side(tmp_path):
    (tmp_path / "a.en").write_text("".join(f"s {number}\n" for number in range(100)))
    (tmp_path / "a.de").write_text("".join(f"t {number}\n" for number in range(99)) + "x &amp; y\n")
    report = examine({"train": open_parallel(tmp_path / "a.en", tmp_path / "a.de")})
    assert only(report, "entity").places == (f"{tmp_path / 'a.de'}:100",)


def test_columns_that_differ_from_train():
    report = examine({"train": table_of(FILLER), "test": table_of([("a",)], ("text",), "b.tsv")})
    assert only(report, "columns differ").message == (
        "the columns are text, those of train source, target. Choose the same ones with --columns."
    )


def test_few_rows():
    assert only(examine({"train": table_of(FILLER[:7])}), "few rows").message.startswith("only 7 rows to learn from")


def test_no_rows_at_all():
    report = examine({"train": table_of([])})
    assert only(report, "no rows").severity == "error"
    assert report.splits[0].columns[0].lengths is None


def test_the_report_is_json():
    train = table_of([*LABELLED, ("", "ham")], ("text", "label"))
    tree = examine({"train": train, "test": table_of(LABELLED[:3], ("text", "label"))}).tree()
    assert json.loads(json.dumps(tree)) == json.loads(json.dumps(tree, default=list))
    assert tree["ok"] is False
    assert tree["splits"][0]["columns"][1]["labels"]["ham"] == 81


def test_errors_come_first_and_then_train():
    rows = [*FILLER, ("", "x"), ("a &amp; b", "y"), FILLER[0]]
    report = examine({"train": table_of(rows), "test": table_of(rows, name="b.tsv")})
    order = {"error": 0, "warning": 1, "note": 2}
    keys = [(order[each.severity], each.split == "test") for each in report.findings]
    assert keys == sorted(keys)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=30))
def test_any_text_can_be_examined(rows):
    rows = [row for row in rows if not any("\ud800" <= c <= "\udfff" or c == "\0" for c in "".join(row))]
    report = examine({"train": table_of(rows), "valid": table_of(rows[::2])})
    assert report.splits[0].rows == len(rows)
    json.dumps(report.tree())


def test_digests_and_not_texts_are_kept():
    peaks = []
    for count in (1_000, 4_000):
        rows = ((f"the same words over and over {number % 50}", "y z " * 40) for number in range(count))
        source = Table(Path("a"), ("source", "target"), lambda report, rows=rows: (Row(1, fields) for fields in rows))
        tracemalloc.start()
        Census("train", source)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 3_000 * 60, "a row costs its digests and its place, not its 200 characters"


def test_digests_beyond_the_most_are_not_kept(monkeypatch):
    monkeypatch.setattr("unrolled.data.census.MOST_ROWS", 1000)
    monkeypatch.setattr("unrolled.data.column.MOST_ROWS", 1000)
    monkeypatch.setattr("unrolled.data.checks.text.MOST_ROWS", 1000)
    rows = [(f"s {number}", f"t {number}") for number in range(1500)] + [("s 1", "t 1")] * 1000
    report = examine({"train": table_of(rows)})
    assert not found(report, "duplicate")
    assert only(report, "many rows").message == "duplicates and overlap were looked for in the first 1,000 rows only."


def test_two_columns_of_three_are_taken(tmp_path):
    path = write(tmp_path / "a.tsv", b"alef\tA\t3\nbet\tB\t4\n")
    table = cut(open_table(path), ("source", "target"))
    assert [row.fields for row in table.rows()] == [("alef", "A"), ("bet", "B")]
    assert table.guessed[-1] == "Looked at are source, target; not used: 3 (choose with --columns)."
    named = cut(table_of([("1", "t", "s")], ("id", "target", "source")), ("source", "target"))
    assert [row.fields for row in named.rows()] == [("s", "t")]


def test_duplicate_groups_keep_the_first_row_first():
    order, first = duplicates._groups(np.array([5, 3, 5, 3, 5], dtype=np.int64))
    assert dict(zip(order.tolist(), first.tolist(), strict=True)) == {0: 0, 2: 0, 4: 0, 1: 1, 3: 1}


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real data sets are not beside the checkout (../shared/data)")
def test_the_real_sets():
    multi30k = examine(splits(SHARED / "multi30k_en-de", columns="de,en"))
    assert multi30k.ok
    assert [split.rows for split in multi30k.splits] == [29_000, 1_014, 1_000]
    ridges = examine(splits(SHARED / "histnorm_german-ridges"))
    assert [place.split(": ")[0].rpartition("/")[2] for place in only(ridges, "columns", "train").places] == [
        "train.tsv.gz:16413"
    ]
    hebrew = {split: cut(table, ("source", "target")) for split, table in splits(SHARED / "translit_en-hebrew").items()}
    report = examine(hebrew)
    assert [split.rows for split in report.splits] == [32_026, 8_006, 10_007]
    assert not found(report, "overlap"), "the paper's split: no name crosses train and test"
