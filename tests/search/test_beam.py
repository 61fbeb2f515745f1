import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_stepper import TreeModel, batch, enumerate_all, plain_beam

from unrolled.base.protocol import END
from unrolled.search import SearchSettings, decode

ENOUGH = 400  # more than all continuations of all prefixes of 4 symbols out of 3


def ids_of(hypotheses):
    return [hypothesis.ids for hypothesis in hypotheses]


@pytest.mark.parametrize("normalisation, alpha", [("gnmt", 0.0), ("gnmt", 0.6), ("gnmt", 2.0), ("mean", 0.6)])
@pytest.mark.parametrize("beta", [0.0, 0.2, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_what_enumeration_finds(normalisation, alpha, beta, seed):
    model = TreeModel(seed=seed)
    search = SearchSettings(
        beam=ENOUGH,
        nbest=7,
        length_normalisation=normalisation,
        length_penalty=alpha,
        coverage_penalty=beta,
        max_length=4,
    )
    sources = [[5, 4, END], [4, END]]
    for source, found in zip(sources, decode(model, *batch(sources), search), strict=True):
        expected = enumerate_all(model, search, tuple(source))[:7]
        assert ids_of(found) == [list(ids) for _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-9)
        assert all(hypothesis.finished for hypothesis in found)


@given(
    seed=st.integers(0, 1000),
    min_length=st.integers(0, 3),
    ngram=st.integers(0, 3),
    ban_unknown=st.booleans(),
    forced=st.lists(st.sampled_from([1, 4, 5]), max_size=3).map(tuple),
    impossible=st.sampled_from([0.0, 0.2]),
)
@settings(max_examples=40, deadline=None)
def test_a_wide_beam_finds_the_optimum_under_every_rule(seed, min_length, ngram, ban_unknown, forced, impossible):
    model = TreeModel(seed=seed)
    search = SearchSettings(
        beam=ENOUGH, min_length=min_length, max_length=3, no_repeat_ngram=ngram, ban_unknown=ban_unknown
    )
    found = decode(model, *batch([[5, END]]), search, prefixes=[list(forced)])[0]
    expected = enumerate_all(model, search, (5, END), forced)
    if expected:
        assert tuple(found[0].ids) == expected[0][1]
        assert found[0].score == pytest.approx(expected[0][0], abs=1e-9)
    else:
        assert not found[0].finished


@given(
    seed=st.integers(0, 1000),
    beam=st.integers(1, 5),
    nbest=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.6, 1.5]),
    beta=st.sampled_from([0.0, 0.3]),
    limit=st.integers(1, 7),
    end_bias=st.sampled_from([-3.0, 0.0, 1.0]),
    grid=st.sampled_from([0.0, 0.5]),
    impossible=st.sampled_from([0.0, 0.3]),
    min_length=st.integers(0, 1),
    ngram=st.sampled_from([0, 2]),
)
@settings(max_examples=80, deadline=None)
def test_equals_the_plain_beam_of_one_sentence(
    seed, beam, nbest, alpha, beta, limit, end_bias, grid, impossible, min_length, ngram
):
    """The early stop, the vectors and the departed sentences change nothing, ties included."""
    model = TreeModel(seed=seed, end_bias=end_bias, grid=grid, impossible=impossible)
    search = SearchSettings(
        beam=beam,
        nbest=min(nbest, beam),
        length_penalty=alpha,
        coverage_penalty=beta,
        min_length=min_length,
        max_length=limit,
        no_repeat_ngram=ngram,
    )
    sources = [[5, 4, 4, END], [4, END], [END]]
    for source, found in zip(sources, decode(model, *batch(sources), search), strict=True):
        expected = plain_beam(model, search, tuple(source), limit)
        assert ids_of(found) == [list(ids) for _, ids, _, _ in expected]
        assert [hypothesis.finished for hypothesis in found] == [finished for *_, finished in expected]
        assert [hypothesis.log_prob for hypothesis in found] == [log_prob for _, _, log_prob, _ in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([one[0] for one in expected], abs=1e-9)


@pytest.mark.parametrize("end_bias", [-2.0, 0.0])
@pytest.mark.parametrize("grid", [0.0, 0.5])
def test_a_beam_of_one_is_argmax(end_bias, grid):
    model = TreeModel(seed=3, end_bias=end_bias, grid=grid, vocabulary_size=9)
    sources = [[4 + seed % 5, 4 + seed // 5, END] for seed in range(25)]
    beam = decode(model, *batch(sources), SearchSettings(beam=1, coverage_penalty=0.2))
    argmax = decode(model, *batch(sources), SearchSettings(kind="argmax", coverage_penalty=0.2))
    for ours, theirs in zip(beam, argmax, strict=True):
        assert ours[0]._replace(weights=None) == theirs[0]._replace(weights=None)
        np.testing.assert_array_equal(ours[0].weights, theirs[0].weights)


def test_stops_before_the_limit_once_nothing_can_win():
    """log P of the best finished is above log P of every prefix, so without length penalty one step settles it."""
    model = TreeModel(seed=1, end_bias=8.0)
    found = decode(model, *batch([[4, END]]), SearchSettings(beam=3, length_penalty=0.0, max_length=1000))
    assert found[0][0].ids == []
    assert len(model.rows) == 1
    patient = TreeModel(seed=1, end_bias=8.0)
    decode(patient, *batch([[4, END]]), SearchSettings(beam=3, nbest=3, length_penalty=0.0, max_length=1000))
    assert len(patient.rows) > 1


def test_the_early_stop_is_sharp():
    """A prefix at log P = -1.5 against a finished -1.0: with α = 0.6 it wins at 7 predicted symbols, loses at 6."""

    class Late(TreeModel):
        def log_probs(self, source, prefix):
            logs = np.full(self.vocabulary_size, -40.0, dtype=np.float32)
            logs[5 if prefix and len(prefix) < self.seed else END] = 0.0
            return logs if prefix else np.where(np.arange(len(logs)) == 5, -1.5, logs - 1.0).astype(np.float32)

    assert -1.5 / (12 / 6) ** 0.6 > -1.0 > -1.5 / (11 / 6) ** 0.6
    for limit, length, steps in ((6, 6, 7), (5, 0, 1)):
        model = Late(seed=limit)
        found = decode(model, *batch([[4, END]]), SearchSettings(beam=2, length_penalty=0.6, max_length=limit))[0]
        assert len(found[0].ids) == length
        assert len(model.rows) == steps


def test_a_finished_sentence_leaves_the_engine():
    class Two(TreeModel):
        def log_probs(self, source, prefix):
            logs = np.full(self.vocabulary_size, -5.0, dtype=np.float32)
            logs[END if len(prefix) >= source[0] else 5] = -0.01
            return logs

    model = Two(vocabulary_size=12)
    found = decode(model, *batch([[4, END], [9, END]]), SearchSettings(beam=2, length_penalty=0.0))
    assert [len(hypotheses[0].ids) for hypotheses in found] == [4, 9]
    assert model.rows[:2] == [2, 4]
    assert model.rows[5:] == [2] * 5


def test_unfinished_hypotheses_come_after_finished_ones_and_fill_up():
    class Endless(TreeModel):
        def log_probs(self, source, prefix):
            logs = super().log_probs(source, prefix).copy()
            logs[END] = -0.5 if prefix == (5,) else -np.inf
            return logs

    found = decode(Endless(seed=2), *batch([[4, END]]), SearchSettings(beam=4, nbest=4, max_length=3))[0]
    assert [hypothesis.finished for hypothesis in found] == [True, False, False, False]
    assert found[0].ids == [5]
    assert all(len(hypothesis.ids) == len(hypothesis.token_log_probs) == 3 for hypothesis in found[1:])
    assert all(hypothesis.weights.shape == (3, 2) for hypothesis in found[1:])
    assert [hypothesis.score for hypothesis in found[1:]] == sorted((h.score for h in found[1:]), reverse=True)


def test_a_prefix_that_nothing_may_follow_is_given_back():
    class Final(TreeModel):
        def log_probs(self, source, prefix):
            logs = np.full(self.vocabulary_size, -np.inf, dtype=np.float32)
            logs[5 if len(prefix) < 2 else END] = 0.0
            return logs

    found = decode(Final(), *batch([[4, END]]), SearchSettings(beam=3, nbest=2, min_length=3))[0]
    assert [(hypothesis.ids, hypothesis.finished) for hypothesis in found] == [([5, 5], False)]
    nothing = decode(Final(), *batch([[4, END]]), SearchSettings(beam=3, no_repeat_ngram=1, min_length=3))[0]
    assert nothing[0].ids == [5]


@given(seed=st.integers(0, 10_000), beam=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_no_hypothesis_comes_twice(seed, beam):
    model = TreeModel(seed=seed, grid=0.5)
    search = SearchSettings(beam=beam, nbest=beam, max_length=5)
    for found in decode(model, *batch([[4, 5, END], [5, END]]), search):
        assert len(found) == beam
        assert len({(*hypothesis.ids, hypothesis.finished) for hypothesis in found}) == beam
        assert len({tuple(hypothesis.ids) for hypothesis in found}) == beam


def test_asks_for_no_more_candidates_than_rules_can_take():
    model = TreeModel(vocabulary_size=50)
    decode(model, *batch([[4, END]]), SearchSettings(beam=5, max_length=4))
    assert set(model.asked) == {5 + 1 + 2}  # END, and PAD and BEGIN
    model = TreeModel(vocabulary_size=50)
    decode(model, *batch([[4, END]]), SearchSettings(beam=5, max_length=4), prefixes=[[7, 8]])
    assert model.asked[:2] == [50, 50]
    assert set(model.asked[2:]) == {8}
