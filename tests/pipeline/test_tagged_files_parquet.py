"""Sentences of a Parquet file are tagged row by row and written as JSON lines."""

from __future__ import annotations

import json

import pyarrow
import pyarrow.parquet
import pytest

from unrolled.base.errors import DataError
from unrolled.pipeline.tagged_files import pieces
from unrolled.tasks import TASKS


def test_each_row_is_a_line_of_words_and_tags(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"tokens": [["Zoë", "naps"], ["so"]]}), path)
    found = list(pieces(str(path), TASKS.build("tag"), spans=True))
    assert [one.words for one in found] == [["Zoë", "naps"], ["so"]]
    assert json.loads(found[0].write(["B-PER", "O"], [])) == {"tokens": ["Zoë", "naps"], "tags": ["B-PER", "O"]}


def test_a_table_without_lists_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a b"]}), path)
    with pytest.raises(DataError, match=r"a\.parquet: no column holds a list of words\. Call it tokens"):
        list(pieces(str(path), TASKS.build("tag"), spans=True))
