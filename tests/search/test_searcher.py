"""What every searcher owes, over the registry; and what `decode` refuses."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_stepper import TreeModel, allowed, batch, rating

from unrolled.base.errors import UnrolledError, UsageError
from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.search import SEARCHERS, SearchSettings, decode

KINDS = [
    SearchSettings(kind="argmax", max_length_constant=3),
    SearchSettings(kind="beam", beam=3, nbest=3, max_length_constant=3),
    SearchSettings(kind="sampling", nbest=3, seed=5, top_k=4, top_p=0.9, temperature=1.3, max_length_constant=3),
    SearchSettings(kind="sampling", nbest=2, seed=6, max_length_constant=3),
]
sources_of = st.lists(st.lists(st.integers(4, 6), max_size=5).map(lambda words: [*words, END]), min_size=1, max_size=6)


def test_every_searcher_is_tried_here():
    assert {search.kind for search in KINDS} == set(SEARCHERS)


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one._replace(weights=None) == other._replace(weights=None)
        if other.weights is None:
            assert one.weights is None
        else:
            np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
@given(
    data=st.data(),
    sources=sources_of,
    padding=st.integers(0, 9),
    seed=st.integers(0, 99),
    attention=st.booleans(),
    ngram=st.integers(0, 2),
    grid=st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=25, deadline=None)
def test_neighbours_order_and_padding_change_nothing(search, data, sources, padding, seed, attention, ngram, grid):
    """A sentence's result in a batch is, bit for bit, its result alone."""
    search = dataclasses.replace(search, no_repeat_ngram=ngram, coverage_penalty=0.4 if attention else 0.0)
    prefixes = [data.draw(st.lists(st.integers(4, 6), max_size=3)) for _ in sources]
    order = data.draw(st.permutations(range(len(sources))))
    together = decode(
        TreeModel(seed=seed, vocabulary_size=7, attention=attention, grid=grid),
        *batch([sources[row] for row in order], padding),
        search,
        prefixes=[prefixes[row] for row in order],
        numbers=order,
    )
    for row, found in zip(order, together, strict=True):
        model = TreeModel(seed=seed, vocabulary_size=7, attention=attention, grid=grid)
        same(found, decode(model, *batch([sources[row]]), search, prefixes=[prefixes[row]], numbers=[row])[0])


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
@given(
    source=st.lists(st.integers(4, 6), max_size=4),
    seed=st.integers(0, 999),
    minimum=st.integers(0, 3),
    maximum=st.integers(3, 6),
    ngram=st.integers(0, 3),
    ban_unknown=st.booleans(),
    forced=st.lists(st.sampled_from([UNKNOWN, 4, 5, 6]), max_size=3),
    beta=st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=25, deadline=None)
def test_hypotheses_keep_the_rules_and_say_the_truth(
    search, source, seed, minimum, maximum, ngram, ban_unknown, forced, beta
):
    """Rules hold; log-probabilities, scores and attention are the model's own for that very output."""
    model = TreeModel(seed=seed, vocabulary_size=7)
    search = dataclasses.replace(
        search,
        min_length=minimum,
        max_length=maximum,
        no_repeat_ngram=ngram,
        ban_unknown=ban_unknown,
        coverage_penalty=beta,
    )
    source = (*source, END)
    found = decode(model, *batch([list(source)], 2), search, prefixes=[forced])[0]
    assert found
    for hypothesis in found:
        said = (*hypothesis.ids, END) if hypothesis.finished else tuple(hypothesis.ids)
        assert hypothesis.ids[: len(forced)] == forced
        assert len(hypothesis.ids) <= maximum
        assert all(allowed(search, said[:place], said[place], tuple(forced)) for place in range(len(said)))
        log_probs = [float(model.log_probs(source, said[:place])[said[place]]) for place in range(len(said))]
        assert hypothesis.token_log_probs == log_probs
        assert hypothesis.log_prob == sum(log_probs)
        assert hypothesis.score == pytest.approx(rating(model, search, source, said, sum(log_probs)), abs=1e-9)
        expected = [model.weights(source, said[:place]) for place in range(len(said))]
        np.testing.assert_array_equal(hypothesis.weights, np.reshape(expected, (len(said), len(source))))
        assert hypothesis.weights.dtype == np.float32


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
def test_no_sentence_is_no_work(search):
    assert decode(TreeModel(), *batch([]), search) == []


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
def test_rows_that_end_are_not_stepped_again(search):
    class Timed(TreeModel):
        def log_probs(self, source, prefix):
            logs = np.full(self.vocabulary_size, -40.0, dtype=np.float32)
            logs[END if len(prefix) >= source[0] else 5] = 0.0
            return logs

    model = Timed(vocabulary_size=9)
    lengths = [7, 4, 6, 5]
    search = dataclasses.replace(search, nbest=1, length_penalty=0.0)
    found = decode(model, *batch([[length, END] for length in lengths]), search)
    assert [len(hypotheses[0].ids) for hypotheses in found] == lengths
    wide = search.beam if search.kind == "beam" else 1
    assert model.rows == [4, *[4 * wide] * 4, 3 * wide, 2 * wide, wide]


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
def test_the_source_sets_the_limit(search):
    class Endless(TreeModel):
        def log_probs(self, source, prefix):
            logs = super().log_probs(source, prefix).copy()
            logs[END] = -np.inf
            return logs

    search = dataclasses.replace(search, max_length_ratio=1.5, max_length_constant=2)
    found = decode(Endless(), *batch([[4, 4, 4, END], [END]]), search, prefixes=[[], [4, 5, 4, 5]])
    assert {len(hypothesis.ids) for hypothesis in found[0]} == {8}
    assert {len(hypothesis.ids) for hypothesis in found[1]} == {5}, "a prefix gets room for one more"
    assert not any(hypothesis.finished for hypotheses in found for hypothesis in hypotheses)


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
def test_an_impossible_prefix_is_said_all_the_same(search):
    class Against(TreeModel):
        def log_probs(self, source, prefix):
            logs = super().log_probs(source, prefix).copy()
            logs[4] = -np.inf
            return logs

    for hypothesis in decode(Against(), *batch([[5, END]]), search, prefixes=[[5, 4]])[0]:
        assert hypothesis.ids[:2] == [5, 4]
        assert hypothesis.token_log_probs[1] == np.finfo(np.float32).min
        assert np.isfinite(hypothesis.score)


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
def test_coverage_needs_attention(search):
    search = dataclasses.replace(search, coverage_penalty=0.2)
    with pytest.raises(UsageError, match=r"\[search.coverage_penalty\] 0.2 was given, but this model has no attention"):
        decode(TreeModel(attention=False), *batch([[4, END]]), search)


@pytest.mark.parametrize("search", KINDS, ids=lambda search: search.kind)
def test_not_a_number_is_an_error_that_names_the_sentence(search):
    class Broken(TreeModel):
        def log_probs(self, source, prefix):
            logs = super().log_probs(source, prefix).copy()
            logs[END] = -np.inf
            if source[0] == 5 and len(prefix) == 2:
                logs[:] = np.nan
            return logs

    with pytest.raises(UnrolledError, match="at symbol 3 of sentence 42 the model's log-probabilities are not numbers"):
        decode(Broken(vocabulary_size=7), *batch([[4, END], [5, END]]), search, numbers=[7, 41])


@pytest.mark.parametrize(
    "given_, match",
    [
        ({"ids": np.zeros((2, 3), int), "mask": np.ones((2, 2), bool)}, r"shape \(2, 3\) and mask \(2, 2\)"),
        ({"ids": np.zeros(3, int), "mask": np.ones(3, bool)}, r"Give both as \[sentences, source length\]"),
        ({"mask": np.array([[True, True], [False, False]])}, "sentence 2 has no real source position"),
        ({"prefixes": [[4]]}, "1 prefixes for 2 sentences"),
        ({"numbers": [1, 2, 3]}, "3 numbers for 2 sentences"),
        ({"numbers": [1, -2]}, "-2 is among the sentence numbers; they count from 0"),
        ({"prefixes": [[], [4, 6]]}, "prefix of sentence 2 has the symbol 6, which is not among the 6"),
        ({"prefixes": [[-1], []]}, "prefix of sentence 1 has the symbol -1"),
        ({"prefixes": [[4, END], []]}, "prefix of sentence 1 has </s> in it. Give words only"),
        ({"prefixes": [[BEGIN, 4], []]}, "prefix of sentence 1 has <s> in it"),
        ({"prefixes": [[PAD], []]}, "prefix of sentence 1 has <pad> in it"),
        ({"prefixes": [[4], [4, 5, 4, 5]]}, "prefix of sentence 2 has 4 symbols, max_length is 3. Shorten"),
    ],
)
def test_what_does_not_fit_together_is_refused(given_, match):
    ids, mask = batch([[4, END], [5, END]])
    arguments = {"ids": ids, "mask": mask, "settings": SearchSettings(max_length=3), **given_}
    with pytest.raises(UsageError, match=match):
        decode(TreeModel(), **arguments)


def test_a_prefix_as_long_as_the_limit_is_allowed():
    found = decode(TreeModel(), *batch([[4, END]]), SearchSettings(max_length=2), prefixes=[[4, 5]])[0]
    assert found[0].ids == [4, 5]


def test_masks_with_holes_count_and_show_real_positions_only():
    model = TreeModel(seed=4)
    ids, mask = np.array([[0, 4, 0, 5, END]]), np.array([[False, True, False, True, True]])
    same(
        decode(model, ids, mask, SearchSettings(coverage_penalty=0.3))[0],
        decode(model, *batch([[4, 5, END]]), SearchSettings(coverage_penalty=0.3))[0],
    )


def test_search_imports_no_torch():
    import subprocess
    import sys

    code = "import sys, unrolled.search; sys.exit('torch' in sys.modules or 'unrolled.models' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
