"""CoNLL and CoNLL-U: what is a word, and that everything but one column comes back byte for byte."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.data.conll import sentences

UNIVERSAL = (
    "# text = du New York\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tde\t_\tADP\t_\t_\t_\t_\t_\t_\n2\tle\t_\tDET\t_\t_\t_\t_\t_\t_\n"
    "2.1\tx\t_\tX\t_\t_\t_\t_\t_\t_\n3\tNew York\t_\tPROPN\t_\t_\t_\t_\t_\t_\n\n"
)


def test_conllu_skips_ranges_and_empty_nodes_and_keeps_spaces(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(UNIVERSAL)
    (sentence,) = sentences(path, universal=True)
    assert sentence.column(2) == ["de", "le", "New York"]
    assert sentence.places() == [f"{path}:{line}" for line in (3, 4, 6)]
    assert sentence.replaced(4, ["A", "B", "C"]) == UNIVERSAL.replace("ADP", "A").replace("DET", "B").replace(
        "PROPN", "C"
    )


def test_docstart_comments_hashtags_and_blank_lines_with_a_tab(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_bytes("\ufeff-DOCSTART-\tO\r\n\r\n# of two\r\n#tag\tO\r\né\tB-x\r\n\t\r\nb\tI-x".encode())
    found = list(sentences(path))
    assert [sentence.column(1) for sentence in found] == [[], ["#tag", "é"], ["b"]]
    assert "".join(s.replaced(-1, s.column(-1)) for s in found).encode() == path.read_bytes()


def test_a_word_may_be_a_hash(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("# first\n\n# a comment\na O\n\n# O\n")
    assert [sentence.column(1) for sentence in sentences(path)] == [[], ["a"], ["#"]]


@given(
    st.lists(st.sampled_from(["a O", "b  x B-x", "# c", "", "\t", " "]), max_size=8), st.sampled_from(["\n", "\r\n"])
)
def test_the_sentences_are_the_file_or_a_line_is_named(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.conll"
    path.write_bytes(end.join(lines).encode())
    try:
        found = list(sentences(path))
    except DataError as error:
        assert re.search(r"any\.conll:\d+: \d columns? where \d are expected", str(error))
    else:
        assert "".join(s.replaced(1, s.column(1)) for s in found).encode() == path.read_bytes()


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_bytes(b"a b O\nc O\n")
    with pytest.raises(DataError, match=r"a.conll:2: 2 columns where 3 are expected"):
        list(sentences(path))
    path.write_bytes(b"a O\n\xff O\n")
    with pytest.raises(DataError, match=r"a.conll:2: not UTF-8"):
        list(sentences(path))
    path.write_bytes(b"a O\n")
    with pytest.raises(DataError, match=r"a.conll:1: column 3 of 2"):
        next(sentences(path)).column(3)
    with pytest.raises(UsageError, match="2 values for the 1 words"):
        next(sentences(path)).replaced(1, ["a", "b"])
