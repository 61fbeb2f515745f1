"""Exact match and F1 as SQuAD has them; spans against every span there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.tasks.reading_scores import LONGEST, best_spans, exact_match, normalised, span_probability, token_f1


@pytest.mark.parametrize(
    "text, found",
    [("The  cat!", "cat"), ("an A-team", "ateam"), ("Theatre, a U.S. the", "theatre us"), ("12 %", "12"), ("the", "")],
)
def test_texts_are_compared_without_case_marks_and_articles(text, found):
    assert normalised(text) == found


def test_scores_are_those_of_the_paper_s_script():
    assert exact_match("the Cat.", ["dog", "cat"]) == 1.0
    assert exact_match("cats", ["cat"]) == 0.0
    assert token_f1("the red cat", ["a cat"]) == pytest.approx(2 * (1 / 2 * 1) / (1 / 2 + 1))
    assert token_f1("cat cat", ["cat"]) == pytest.approx(2 * (1 / 2 * 1) / (1 / 2 + 1)), "bags of words"
    assert token_f1("red dog", ["cat", "big red dog"]) == pytest.approx(2 * (1 * 2 / 3) / (1 + 2 / 3))
    assert token_f1("dog", ["cat"]) == 0.0
    assert (token_f1("the", ["a"]), token_f1("the", ["cat"])) == (1.0, 0.0)


@pytest.mark.parametrize(
    "answer, wanted, exact, overlap",
    [
        ("Denver Broncos", ["Denver Broncos", "the Broncos"], 1, 1),  # articles go
        ("denver broncos!", ["The Denver  Broncos."], 1, 1),  # case, marks, white space
        ("Broncos", ["Denver Broncos", "Denver Broncos team"], 0, 2 / 3),  # P 1, R 1/2; the better of two answers
        ("Santa Clara, California", ["Levi's Stadium in Santa Clara"], 0, 2 * (2 / 3 * 2 / 5) / (2 / 3 + 2 / 5)),
        ("a an the", [""], 1, 1),  # nothing is left of it: as no answer
        ("", [""], 1, 1),  # SQuAD 2.0: none wanted, none given
        ("", ["Denver"], 0, 0),
        ("Denver", [""], 0, 0),
    ],
)
def test_cases_of_the_published_script(answer, wanted, exact, overlap):
    """Worked out by hand after normalize_answer, compute_exact and compute_f1 of SQuAD's evaluate-v2.0.py."""
    assert exact_match(answer, wanted) == exact
    assert token_f1(answer, wanted) == pytest.approx(overlap)


@given(st.integers(2, 20), st.integers(0, 10**6))
def test_no_span_runs_on_to_the_place_of_no_answer(size, seed):
    draw = np.random.default_rng(seed)
    first, last = (draw.dirichlet(np.ones(size)) for _ in range(2))
    found = best_spans(first, last, size * size, end=size - 1)
    assert (size - 1, size - 1) in [span[:2] for span in found]
    assert all(i == size - 1 for i, j, _ in found if j == size - 1)
    assert sum(span[2] for span in found) == pytest.approx(1)


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_the_best_spans_are_found_among_all(size, seed):
    draw = np.random.default_rng(seed)
    first, last = (draw.dirichlet(np.ones(size)).astype(np.float32) for _ in range(2))
    every = {(i, j): float(first[i]) * float(last[j]) for i in range(size) for j in range(i, min(size, i + LONGEST))}
    found = best_spans(first, last, 3)
    order = sorted(every, key=lambda span: -every[span])[:3]
    assert [span[:2] for span in found] == order
    assert [span[2] for span in found] == pytest.approx([every[span] / sum(every.values()) for span in order], rel=1e-4)


@given(size=st.integers(1, 40), seed=st.integers(0, 99), nowhere=st.booleans())
def test_the_probability_of_a_span_is_the_one_that_it_is_answered_with(size, seed, nowhere):
    draw = np.random.default_rng(seed)
    first, last = (draw.dirichlet(np.ones(size)).astype(np.float32) for _ in range(2))
    end = size - 1 if nowhere else None
    found = best_spans(first, last, size * size, end)
    assert [span_probability(first, last, span[:2], end) for span in found] == pytest.approx([one[2] for one in found])
    assert sum(one[2] for one in found) == pytest.approx(1)


def test_a_span_longer_than_any_answer_has_a_probability_too():
    first = last = np.full(LONGEST + 1, 1 / (LONGEST + 1))
    spans = (LONGEST + 1) * (LONGEST + 2) // 2
    assert span_probability(first, last, (0, LONGEST)) == pytest.approx(1 / spans)
    assert span_probability(np.array([0.0, 1.0]), np.array([1.0, 0.0]), (0, 1)) == 0.0


def test_where_no_span_is_possible_the_first_symbol_is_one():
    first, last = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    assert best_spans(first, last) == [(2, 2, 0.0)]
