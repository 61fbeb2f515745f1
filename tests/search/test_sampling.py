import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_stepper import TreeModel, batch

from unrolled.base.protocol import BEGIN, END, PAD
from unrolled.search import SearchSettings, decode
from unrolled.search.sampling import head, pick


def plain_head(log_probs, temperature, top_k, top_p):
    """Temperature, then the k best, then the smallest set of mass top_p: one row, as a textbook says it."""
    order = sorted(
        (symbol for symbol in range(len(log_probs)) if log_probs[symbol] > -np.inf), key=lambda s: -log_probs[s]
    )
    order = order[: top_k or None]
    powers = [math.exp(float(log_probs[symbol]) / temperature) for symbol in order]
    shares = [power / sum(powers) for power in powers]
    size = next((n for n in range(1, len(order)) if top_p < 1 and sum(shares[:n]) >= top_p), len(order))
    return {symbol: share / sum(shares[:size]) for symbol, share in zip(order[:size], shares[:size], strict=True)}


def beyond_chance(counts: Counter, shares: dict) -> bool:
    """Pearson's χ² above its 99.9 % point (Wilson and Hilferty 1931)."""
    if set(counts) - set(shares):
        return True
    total, degrees = sum(counts.values()), len(shares) - 1
    statistic = sum((counts[one] - total * share) ** 2 / (total * share) for one, share in shares.items())
    return statistic > degrees * (1 - 2 / (9 * degrees) + 3.09 * math.sqrt(2 / (9 * degrees))) ** 3


@given(
    odds=st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=2, max_size=9),
    banned=st.sets(st.integers(0, 8), max_size=3),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.integers(0, 5),
    top_p=st.sampled_from([0.11, 0.53, 0.94, 1.0]),
)
@settings(max_examples=200, deadline=None)
def test_head_is_the_textbook_one(odds, banned, temperature, top_k, top_p):
    logs = np.sort(np.array(odds))[::-1]
    logs = logs - np.log(np.exp(logs).sum())
    scores = logs.copy()
    scores[[place for place in banned if place < len(scores)]] = -np.inf
    if not np.isfinite(scores).any():
        return
    mass = head(scores[None], temperature, top_k, top_p)[0]
    expected = plain_head(scores, temperature, top_k, top_p)
    assert set(np.flatnonzero(mass)) == set(expected)
    np.testing.assert_allclose(mass[list(expected)] / mass.sum(), list(expected.values()), rtol=1e-9)


def test_pick_takes_the_column_in_which_the_number_falls():
    mass = np.array([[0.0, 2.0, 0.0, 1.0, 1.0]])
    picked = [int(pick(mass, np.array([number]))[0]) for number in (0.0, 0.4999, 0.5, 0.7499, 0.75, 1 - 2**-53)]
    assert picked == [1, 1, 3, 3, 4, 4]
    assert pick(np.zeros((1, 3)), np.array([0.5])) == 0


@pytest.mark.parametrize(
    "rules", [{}, {"temperature": 0.6}, {"temperature": 1.8}, {"top_k": 3}, {"top_p": 0.7}, {"top_k": 4, "top_p": 0.8}]
)
def test_symbols_come_as_often_as_they_should(rules):
    model = TreeModel(seed=2, vocabulary_size=9)
    search = SearchSettings(kind="sampling", nbest=3000, seed=11, max_length=1, **rules)
    found = decode(model, *batch([[4, END]]), search)[0]
    first = Counter(hypothesis.ids[0] if hypothesis.ids else END for hypothesis in found)
    logs = model.log_probs((4, END), ()).astype(np.float64)
    logs[[PAD, BEGIN]] = -np.inf
    shares = plain_head(logs, search.temperature, search.top_k, search.top_p)
    assert len(shares) > 1
    assert not beyond_chance(first, shares)


def test_whole_outputs_come_as_often_as_they_should():
    """Steps are independent: the joint frequencies are products."""
    model = TreeModel(seed=9, vocabulary_size=6)
    search = SearchSettings(kind="sampling", nbest=5000, seed=1, max_length=2)
    found = decode(model, *batch([[4, END]]), search)[0]
    counts = Counter((*hypothesis.ids, *[END][: hypothesis.finished]) for hypothesis in found)

    def share(said):
        whole = 1.0
        for place, symbol in enumerate(said):
            logs = model.log_probs((4, END), said[:place]).astype(np.float64)
            logs[[PAD, BEGIN]] = -np.inf
            whole *= plain_head(logs, 1.0, 0, 1.0)[symbol]
        return whole

    words = [1, 4, 5]
    shares = {(END,): share((END,))} | {(word, END): share((word, END)) for word in words}
    for pair in itertools.product(words, repeat=2):
        ended = share((*pair, END))
        shares |= {(*pair, END): ended, pair: share(pair) - ended}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert not beyond_chance(counts, shares)


def test_log_probs_are_the_models_own_at_any_temperature():
    model = TreeModel(seed=3)
    search = SearchSettings(kind="sampling", nbest=5, seed=4, temperature=3.0, top_k=2, max_length=6)
    for hypothesis in decode(model, *batch([[4, END]]), search)[0]:
        said = (*hypothesis.ids, END)[: len(hypothesis.token_log_probs)]
        expected = [float(model.log_probs((4, END), said[:place])[said[place]]) for place in range(len(said))]
        assert hypothesis.token_log_probs == expected


def test_the_seed_the_sentence_and_the_draw_each_matter():
    model, sources = TreeModel(seed=3, end_bias=-3), [[4, END]] * 3

    def outputs(seed, numbers, nbest=4):
        search = SearchSettings(kind="sampling", seed=seed, nbest=nbest, max_length=20)
        return [[h.ids for h in found] for found in decode(model, *batch(sources), search, numbers=numbers)]

    first = outputs(1, [0, 1, 2])
    assert first == outputs(1, [0, 1, 2])
    assert len({tuple(ids) for found in first for ids in found}) > 8
    assert outputs(2, [0, 1, 2]) != first
    assert outputs(1, [2, 0, 7])[:2] == [first[2], first[0]]
    assert [found[:2] for found in first] == outputs(1, [0, 1, 2], nbest=2), "more draws do not change the first ones"
    assert outputs(1, [2**40, 2**40 + 1, 5])[0] != first[0]


def test_a_cold_draw_is_argmax():
    model, sources = TreeModel(seed=5), [[4, END], [5, 4, END]]
    cold = decode(model, *batch(sources), SearchSettings(kind="sampling", temperature=1e-300))
    assert [f[0].ids for f in cold] == [f[0].ids for f in decode(model, *batch(sources), SearchSettings(kind="argmax"))]


def test_asks_for_the_head_alone():
    model = TreeModel(vocabulary_size=40)
    decode(model, *batch([[4, END]]), SearchSettings(kind="sampling", top_k=6, max_length=3))
    assert set(model.asked) == {6 + 2}
