"""Vector files: bytes as the formats' documents give them, round trips, and every way to be damaged."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.data.vectors import Found, Vectors, fill, read_vectors, width_of, write_vectors

WORDS = ["the", "Zürich"]
NUMBERS = np.array([[0.5, -2.0, 3.0], [1.0, 0.25, -1e-3]], np.float32)
TEXT = "the 0.5 -2 3\nZürich 1 .25 -1e-3\n"
BINARY = b"2 3\nthe " + struct.pack("<3f", 0.5, -2, 3) + b"\nZ\xc3\xbcrich " + struct.pack("<3f", 1, 0.25, -1e-3)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "binary"),
    [
        (TEXT.encode(), False),
        (b"2 3\n" + TEXT.encode(), False),
        (b"2 3\n" + TEXT.replace("\n", " \n").encode(), False),  # fastText: a space before the line end
        (BINARY, True),
        (BINARY + b"\n", True),
    ],
)
def test_the_documented_bytes(tmp_path: Path, content: bytes, binary: bool, packed: bool) -> None:
    path = tmp_path / "v.gz" if packed else tmp_path / "v"
    path.write_bytes(gzip.compress(content) if packed else content)
    found = read_vectors(path, binary=binary)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.matrix, NUMBERS)
    some = read_vectors(path, binary=binary, wanted=["Zürich", "absent"])
    assert some.words == ["Zürich"]
    np.testing.assert_array_equal(some.matrix, NUMBERS[1:])


@given(
    rows=st.dictionaries(
        st.text("abü\u00a0", min_size=1, max_size=5),
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
        min_size=1,
    ),
    kind=st.sampled_from(["word2vec", "binary", "glove"]),
    end=st.sampled_from(["", ".gz"]),
)
def test_what_is_written_is_read(tmp_path_factory, rows, kind, end) -> None:
    vectors = Vectors(list(rows), np.array(list(rows.values()), np.float32))
    path = write_vectors(tmp_path_factory.mktemp("v") / f"v{end}", vectors, kind=kind)
    again = read_vectors(path, binary=kind == "binary")
    assert again.words == vectors.words
    assert again.matrix.tobytes() == vectors.matrix.tobytes()


def test_a_word_may_hold_spaces(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("the 1 2\n. . . 3 4\n")
    assert read_vectors(tmp_path / "v").words == ["the", ". . ."]


@pytest.mark.parametrize(
    ("content", "binary", "message"),
    [
        (b"a 1 2\nb 1\n", False, r"v:2: 1 numbers where 2"),
        (b"a 1 2\nb 1 2 3\n", False, r"v:2: more than the 2"),
        (b"a 1 2\nb 1 x\n", False, r"v:2: 'x' is no number"),
        (b"a 1 nan\n", False, r"v:1: .*NaN"),
        (b"a 1 2\nb 1 2\na 3 4\n", False, r"v:3: the word 'a' stands already at .*v:1"),
        (b"3 2\na 1 2\n", False, r"v:1: 3 words are announced, but there are 1"),
        (b"a 1 2\n\xff 1 2\n", False, r"v:2: this is not UTF-8"),
        (b"a\n", False, r"v:1: 0 numbers where some"),
        (BINARY[:-1], True, r"v, word 2: the file ends here"),
        (BINARY + b"\nmore", True, r"v: more follows after the 2 words"),
        (TEXT.encode(), True, r"v:1: a binary file begins"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path: Path, content: bytes, binary: bool, message: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "v", binary=binary)


def test_filling_an_embedding_counts_what_it_finds() -> None:
    matrix = np.full((4, 3), 7, np.float32)
    assert fill(matrix, ["<pad>", "THE", "Zürich", "x"], Vectors(WORDS, NUMBERS)) == Found(1, 1, 2)
    np.testing.assert_array_equal(matrix, [[7] * 3, NUMBERS[0], NUMBERS[1], [7] * 3])
    with pytest.raises(UsageError, match="Make the sizes equal"):
        fill(matrix, ["a"], Vectors(WORDS, NUMBERS))


def test_a_word_that_the_format_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'a b' cannot stand in a binary file"):
        write_vectors(tmp_path / "v", Vectors(["a b"], NUMBERS[:1]), kind="binary")


@pytest.mark.parametrize("kind", ["word2vec", "binary", "glove"])
def test_what_a_file_is_shows_in_it(tmp_path: Path, kind: str) -> None:
    draw = np.random.default_rng(3)
    vectors = Vectors([f"Wörter{number}" for number in range(300)], draw.normal(size=(300, 70)).astype(np.float32))
    write_vectors(tmp_path / "v", vectors, kind=kind)  # type: ignore[arg-type]
    found = read_vectors(tmp_path / "v")
    assert found.words == vectors.words and width_of(tmp_path / "v") == 70
    np.testing.assert_array_equal(found.matrix, vectors.matrix)


def test_a_file_without_vectors_has_no_width(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("0 3\n")
    with pytest.raises(DataError, match=r"v: there is no vector in it"):
        width_of(tmp_path / "v")
