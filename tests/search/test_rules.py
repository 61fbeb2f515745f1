import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN, Candidates
from unrolled.search import SearchSettings
from unrolled.search.rules import Rules, apply, repeating


@given(
    said=st.integers(0, 9),
    rows=st.integers(1, 4),
    n=st.integers(1, 4),
    size=st.integers(1, 4),
    seed=st.integers(0, 999),
)
@settings(max_examples=150, deadline=None)
def test_repeating_names_exactly_what_would_repeat(said, rows, n, size, seed):
    text = np.random.default_rng(seed).integers(0, size, size=(rows, said))
    banned = repeating(text, n)
    for line, row in zip(text.tolist(), banned.tolist(), strict=True):
        grams = {tuple(line[start : start + n]) for start in range(said - n + 1)}
        expected = {symbol for symbol in range(size) if len(line) >= n - 1 and (*line[said - n + 1 :], symbol) in grams}
        assert {symbol for symbol in row if symbol >= 0} == expected


def test_bans_by_settings_and_step():
    text = np.empty((2, 0), dtype=np.int64)
    nothing = np.empty((2, 0), dtype=np.int64)
    assert Rules(SearchSettings(), nothing).bans(text, 0) == [PAD, BEGIN]
    assert Rules(SearchSettings(ban_unknown=True), nothing).bans(text, 0) == [PAD, BEGIN, UNKNOWN]
    short = Rules(SearchSettings(min_length=2), nothing)
    assert [END in short.bans(text, step) for step in range(4)] == [True, True, False, False]
    repeats = Rules(SearchSettings(no_repeat_ngram=2), nothing).bans(np.array([[7, 8, 7], [7, 8, 9]]), 3)
    np.testing.assert_array_equal(repeats[2], [8, -1])


def test_forced_symbols_by_sentence_and_step():
    rules = Rules(SearchSettings(), np.array([[5, 6], [7, -1], [-1, -1]]))
    rows = np.array([0, 1, 1, 2])
    np.testing.assert_array_equal(rules.forced(rows, 0), [5, 7, 7, -1])
    np.testing.assert_array_equal(rules.forced(rows, 1), [6, -1, -1, -1])
    assert rules.forced(rows[1:], 1) is None
    assert rules.forced(rows, 2) is None


def test_apply_keeps_scores_and_what_the_engine_gave():
    scores = np.log(np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], dtype=np.float32))
    ids = np.array([[4, 5, 3], [3, 4, 5]], dtype=np.int32)
    given_ = Candidates(scores, ids, None, ())
    before = scores.copy(), ids.copy()
    ruled, named = apply(given_, [4, np.array([-1, 3])], np.array([-1, 5]), 2)
    assert named[0].tolist() == [4, 5] and named[1, 0] == 5
    assert ruled[0].tolist() == [-np.inf, float(scores[0, 1])]
    assert ruled[1].tolist() == [float(scores[1, 2]), -np.inf]
    assert (ruled.dtype, named.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(ids, before[1])
