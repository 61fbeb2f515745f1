"""Lists of words and tags in Parquet are sentences, as `datasets` writes them."""

from __future__ import annotations

import json

import pyarrow
import pyarrow.parquet
import pytest

from unrolled.base.errors import DataError, UsageError
from unrolled.data.readers import open_table

WORDS = [["Anna", "lives", "in", "Rome"], ["New", "York"], []]
TAGS = [[1, 0, 0, 2], [2, 3], []]
NAMES = ["O", "B-PER", "B-LOC", "I-LOC"]


def written(path, columns, feature=None):
    table = pyarrow.table(columns)
    if feature is not None:
        note = {"info": {"features": {"ner_tags": feature}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(note)})
    pyarrow.parquet.write_table(table, path)
    return path


KIND = {"names": NAMES, "_type": "ClassLabel"}
EXPECTED = [(1, ("Anna\tlives\tin\tRome", "B-PER\tO\tO\tB-LOC")), (2, ("New\tYork", "B-LOC\tI-LOC"))]


@pytest.mark.parametrize(
    "feature", [{"feature": KIND, "_type": "Sequence"}, {"feature": KIND, "_type": "List"}, [KIND]]
)
def test_numbered_tags_have_their_names(tmp_path, feature):
    path = written(tmp_path / "a.parquet", {"id": ["1", "2", "3"], "tokens": WORDS, "ner_tags": TAGS}, feature)
    table = open_table(path)
    assert (table.columns, table.format) == (("word", "tag"), "tokens")
    assert list(table.rows()) == EXPECTED


def test_numbers_without_names_and_texts(tmp_path):
    table = open_table(written(tmp_path / "a.parquet", {"tokens": WORDS, "ner_tags": TAGS}))
    assert [row.fields[1] for row in table.rows()] == ["1\t0\t0\t2", "2\t3"]
    texts = {"form": WORDS, "kind": [[NAMES[tag] for tag in row] for row in TAGS], "text": ["a", "b", "c"]}
    path = written(tmp_path / "b.parquet", texts)
    assert list(open_table(path, columns="form,kind").rows()) == EXPECTED
    assert open_table(path).format == "parquet"


def test_words_alone(tmp_path):
    table = open_table(written(tmp_path / "a.parquet", {"words": WORDS}))
    assert table.columns == ("word",)
    assert [row.fields for row in table.rows()] == [("Anna\tlives\tin\tRome",), ("New\tYork",)]


@pytest.mark.parametrize(
    ("words", "tags", "match"),
    [
        ([["a", "b"]], [[1]], r"a\.parquet:1: 2 words and 1 tags\. Write one tag a word\."),
        ([["a"], ["b"]], [[1], [9]], r"a\.parquet:2: the tag 9 is none of the 4 that 'ner_tags' names"),
        ([["a"], None], [[1], [1]], r"a\.parquet:2: 'tokens' has no value where a list of words"),
    ],
)
def test_rows_that_do_not_fit_are_named(tmp_path, words, tags, match):
    path = written(tmp_path / "a.parquet", {"tokens": words, "ner_tags": tags}, [KIND])
    with pytest.raises(DataError, match=match):
        list(open_table(path).rows())


def test_a_column_that_there_is_not_is_named(tmp_path):
    path = written(tmp_path / "a.parquet", {"tokens": WORDS, "ner_tags": TAGS})
    with pytest.raises(UsageError, match=r"no column is called 'nope'. Known: ner_tags, tokens"):
        open_table(path, columns="tokens,nope")


@pytest.mark.parametrize(
    "columns, message",
    [
        ("token,ner_tags", r"no column is called 'token'. Did you mean 'tokens'\? Known: id, ner_tags, tokens"),
        ("tokens,ner_tag", r"no column is called 'ner_tag'. Did you mean 'ner_tags'\? Known: id, ner_tags, tokens"),
        (
            "id,tokens",
            r"the column 'tokens' is list.*, and a text is expected. Columns with text are id; of a table of",
        ),
    ],
)
def test_a_wrong_name_among_columns_of_lists_is_named_with_the_nearest(tmp_path, columns, message):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"id": ["1", "2"], "tokens": WORDS[:2], "ner_tags": TAGS[:2]}), path)
    with pytest.raises(UsageError, match=message):
        open_table(path, columns=columns)
    pyarrow.parquet.write_table(pyarrow.table({"numbers": [[0.5], [1.5]]}), path)
    with pytest.raises(UsageError, match=r"no column is called 'number'. Did you mean 'numbers'"):
        open_table(path, columns="number")
