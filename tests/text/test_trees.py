"""A text side's JSON file: written and read, and every damage named with its file."""

import pytest

from unrolled.base.errors import DataError, UnrolledError
from unrolled.text.trees import tree_of, write_tree


def read(path):
    with tree_of(path, "counts") as tree:
        return tree.get("other", 0), [int(one) for one in tree["counts"]]


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "new" / "counts.json"
    write_tree(path, {"counts": [2, 3]})
    assert read(path) == (0, [2, 3])


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"counts": 7}', '{"counts": ["a"]}', '{"count": []}'])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "counts.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"counts.json: damaged, it does not hold the counts. Take the file from"):
        read(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"counts.json: the counts cannot be read \(No such file"):
        read(tmp_path / "counts.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnrolledError, match=r"file: cannot be written"):
        write_tree(tmp_path / "file" / "counts.json", {})
