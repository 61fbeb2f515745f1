import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.protocol import UNKNOWN
from unrolled.search import Hypothesis, diagnose
from unrolled.search.diagnosis import Loop, longest_loop


def output(ids, finished=True):
    scored = len(ids) + finished
    return Hypothesis(list(ids), -1.0, -1.0, [math.log(0.25)] * scored, None, finished)


def test_an_output_in_order_needs_no_words():
    assert diagnose(output([4, 5, 6, 4, 4, 4])) == []


def test_an_empty_output():
    assert diagnose(output([])) == [
        "The output is empty: the model ended at once, with probability 0.25. "
        "Set min_length to 1, and look for empty targets in the training data."
    ]


def test_a_loop_is_quoted():
    (sentence,) = diagnose(output([7, 4, 5, 4, 5, 4, 5, 4, 5, 8]), list("gdededededh"[:10]))
    assert sentence == (
        "The output repeats itself: 'd e' 4 times in a row from symbol 2 on. "
        "If that is not wanted, set no_repeat_ngram to 2, or train longer."
    )
    assert "'4 5 6 7 8 …' 4 times in a row from symbol 1 on" in diagnose(output([4, 5, 6, 7, 8, 9] * 4))[0]


def test_a_cut_output():
    assert diagnose(output([4], finished=False)) == [
        "The output was cut after 1 symbol, before the model ended it. "
        "If more was to come, raise max_length or max_length_constant."
    ]
    assert diagnose(output([4] * 6, finished=False))[1:] == [
        "The output was cut after 6 symbols, before the model ended it. It is caught in the loop."
    ]
    assert "after 0 symbols" in diagnose(output([], finished=False))[0]


def test_nothing_but_unknown():
    assert "all unknown words" in diagnose(output([UNKNOWN, UNKNOWN]))[0]


def plain_loop(ids):
    """Every start, every period, turn by turn."""
    found = []
    for period in range(1, len(ids)):
        for start in range(len(ids)):
            unit, times = ids[start : start + period], 1
            while ids[start + times * period : start + (times + 1) * period] == unit:
                times += 1
            if times >= 4 and len(unit) == period:
                found.append((-times * period, period, start, times))
    return Loop(min(found)[2], min(found)[1], min(found)[3]) if found else None


@given(
    before=st.lists(st.integers(4, 5), max_size=5),
    unit=st.lists(st.integers(4, 6), min_size=1, max_size=4),
    times=st.integers(1, 7),
    after=st.lists(st.integers(4, 5), max_size=5),
)
def test_longest_loop_by_brute_force(before, unit, times, after):
    ids = before + unit * times + after
    assert longest_loop(ids) == plain_loop(ids)


@pytest.mark.parametrize("ids", [[], [4], [4] * 3])
def test_short_outputs_have_no_loop(ids):
    assert longest_loop(ids) is None
