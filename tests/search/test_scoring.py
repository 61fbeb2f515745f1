import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.search import SearchSettings
from unrolled.search.scoring import coverage_score, length_divisor


def test_the_gnmt_length_penalty_by_hand():
    """lp = (5 + n)^α / 6^α: 1 for one symbol, 2^α for seven, 4^α for nineteen."""
    search = SearchSettings(length_penalty=0.5)
    assert length_divisor(search, 1) == 1.0
    assert length_divisor(search, 7) == pytest.approx(math.sqrt(2))
    assert length_divisor(search, 19) == 2.0
    assert length_divisor(SearchSettings(length_penalty=0.0), 40) == 1.0


def test_the_mean_divides_by_length():
    search = SearchSettings(length_normalisation="mean", length_penalty=3.0)
    assert [length_divisor(search, length) for length in (0, 1, 2, 30)] == [1.0, 1.0, 2.0, 30.0]


def test_the_coverage_penalty_by_hand():
    """Half covered costs log 2, more than covered nothing, padding nothing."""
    covered = np.array([[0.5, 1.7, 0.25], [1.0, 0.5, 0.0]])
    mask = np.array([[True, True, True], [True, True, False]])
    assert coverage_score(covered, mask) == pytest.approx([-math.log(8), -math.log(2)])
    assert coverage_score(np.empty((2, 0)), np.empty((2, 0), bool)).tolist() == [0.0, 0.0]


def test_what_nothing_looked_at_costs_much_but_stays_a_number():
    score = coverage_score(np.array([[0.0, 1.0]]), np.ones((1, 2), bool))[0]
    assert -100 < score < -80


@given(length=st.integers(1, 40), padding=st.integers(1, 40), seed=st.integers(0, 99))
def test_padding_does_not_move_the_last_bit(length, padding, seed):
    covered = np.random.default_rng(seed).random((3, length))
    wide = np.pad(covered, ((0, 0), (0, padding)), constant_values=0.3)
    mask = np.arange(length + padding) < length
    np.testing.assert_array_equal(
        coverage_score(covered, mask[None, :length].repeat(3, 0)), coverage_score(wide, mask[None].repeat(3, 0))
    )
