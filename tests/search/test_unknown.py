import numpy as np
import pytest

from unrolled.base.errors import UsageError
from unrolled.search import replace_unknown

WEIGHTS = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.1, 0.6, 0.3], [0.0, 0.0, 1.0]])


def test_each_unknown_becomes_the_word_it_looked_at():
    assert replace_unknown(["<unk>", "the", "<unk>"], WEIGHTS, ["a", "b", "c"]) == ["c", "the", "b"]


def test_the_column_and_row_of_end_are_not_read():
    assert replace_unknown(["<unk>", "<unk>", "x"], WEIGHTS, ["a", "b"]) == ["b", "a", "x"]  # of equals the first


def test_without_an_unknown_no_attention_is_needed():
    tokens = ["all", "known"]
    same = replace_unknown(tokens, None, ["a"])
    assert same == tokens and same is not tokens
    assert replace_unknown(["<unk>"], None, []) == ["<unk>"]


def test_the_symbol_can_be_named():
    assert replace_unknown(["?", "<unk>"], WEIGHTS, ["a", "b", "c"], unknown="?") == ["c", "<unk>"]


def test_errors_teach():
    with pytest.raises(UsageError, match=r"\[search.replace_unknown\] true was given, but this model has no attention"):
        replace_unknown(["<unk>"], None, ["a"])
    with pytest.raises(UsageError, match=r"shape \(4, 3\) cannot cover 1 tokens and 5 source words"):
        replace_unknown(["<unk>"], WEIGHTS, list("abcde"))
    with pytest.raises(UsageError, match=r"shape \(4, 3\) cannot cover 5 tokens"):
        replace_unknown(["<unk>"] * 5, WEIGHTS, ["a"])


def test_a_source_symbol_without_text_stands_for_nothing():
    weights = np.array([[0.7, 0.2, 0.1], [0.9, 0.0, 0.0]])
    assert replace_unknown(["<unk>", "<unk>"], weights, ["", "b", "c"]) == ["b", "b"]
    assert replace_unknown(["<unk>", "x"], weights, ["", "", ""]) == ["<unk>", "x"]
