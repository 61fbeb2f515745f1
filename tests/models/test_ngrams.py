"""Counting n-grams: nltk's Kneser–Ney where both are defined, chances that add up, worked examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.lm import KneserNeyInterpolated
from nltk.util import everygrams, ngrams

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN
from unrolled.models.ngrams import KneserNey

WORDS = 5
DOCUMENTS = st.lists(st.lists(st.integers(4, 3 + WORDS), min_size=1, max_size=12), min_size=1, max_size=5)


def learnt(documents, order, **options):
    return KneserNey.learn(
        [np.array([BEGIN, *one]) for one in documents], order=order, vocabulary_size=WORDS, **options
    )


@settings(max_examples=40)
@given(documents=DOCUMENTS, order=st.integers(2, 4), discount=st.sampled_from([0.1, 0.5, 0.75]))
def test_it_is_nltk_s(documents, order, discount):
    """Their one discount for all orders, and no discount of the unigrams, under which nothing stands."""
    discounts = np.full((order, 3), discount)
    discounts[0] = 0.0
    ours = learnt(documents, order, discounts=discounts)
    padded = [["<s>"] * (order - 1) + list(map(str, one)) for one in documents]
    theirs = KneserNeyInterpolated(order, discount=discount)
    grams = [[gram for gram in everygrams(one, max_len=order) if gram[-1] != "<s>"] for one in padded]
    theirs.fit(grams, vocabulary_text=[word for one in padded for word in one])
    for document, one in zip(documents, padded, strict=True):
        wanted = [theirs.logscore(gram[-1], gram[:-1]) * np.log(2) for gram in ngrams(one, order)]
        found = ours.log_probs(np.array([BEGIN, *document]))
        assert found == pytest.approx(wanted, abs=1e-9)


@settings(max_examples=40)
@given(documents=DOCUMENTS, order=st.integers(1, 4), before=st.lists(st.integers(4, 3 + WORDS), max_size=5))
def test_chances_of_all_symbols_add_up_to_one(documents, order, before):
    model = learnt(documents, order)
    total = sum(np.exp(model.log_probs(np.array([BEGIN, *before, word]))[-1]) for word in range(4, 4 + WORDS))
    assert total == pytest.approx(1.0, abs=1e-9)


def test_what_was_never_seen_has_a_chance():
    model = learnt([[4, 5, 4, 5, 6]], 3)
    found = model.log_probs(np.array([BEGIN, 8, 4, 7, 8]))
    assert np.isfinite(found).all()
    assert model.log_probs(np.array([BEGIN, 90]))[0] == model.log_probs(np.array([BEGIN, 8]))[0]


def test_a_longer_context_tells_more():
    draw = np.random.default_rng(0)
    text = []
    for _ in range(300):
        text += [4, 5, 6] if draw.random() < 0.5 else [7, 5, 8]  # what follows 5 hangs on what is before it
    held = np.array([BEGIN, *text[-300:]])
    losses = [-learnt([text[:-300]], order).log_probs(held).mean() for order in (1, 2, 3)]
    assert losses[0] > losses[1] + 0.5 > losses[2] + 0.7
    assert losses[2] < 0.27  # ln 2 every third symbol is the least


def test_a_symbol_that_follows_many_is_likelier_anew_than_one_that_is_frequent_after_one():
    """Kneser & Ney's own point: 'Francisco' is frequent, but only after 'San'."""
    text = [4, 5] * 20 + [6, 7, 4, 7, 8, 7]
    model = learnt([text], 2, discounts=np.full((2, 3), 0.5))
    after = [model.log_probs(np.array([BEGIN, 8, word]))[1] for word in (5, 4)]
    assert text.count(5) >= text.count(4) - 1 and after[0] < after[1]


def test_it_says_what_it_cannot_do():
    with pytest.raises(UsageError, match="order 0 was asked for; it is 1 or more"):
        learnt([[4]], 0)
    with pytest.raises(UsageError, match="needs some text"):
        learnt([[]], 3)
