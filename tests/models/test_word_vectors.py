"""word2vec's update: as autograd has it, draw by draw; the compiled one equal; what is drawn by chance."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN, UNKNOWN
from unrolled.models import MODELS, WordVectors
from unrolled.models.kernels.word_vectors import compiled, plain
from unrolled.models.word_vectors import LEAST, alias, chances, divided

SIZE, VOCABULARY = 5, 11


def tables(seed, vocabulary=VOCABULARY, size=SIZE):
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(vocabulary, size)).astype(np.float32) for _ in range(2)]


def given_chances(seed, vocabulary=VOCABULARY):
    draw = np.random.default_rng(seed)
    counts = [0, 0, 0, 0, *draw.integers(1, 50, vocabulary - 4)]
    return chances(counts, 0.05, 0.75)


def by_autograd(ids, drawn, vectors, outputs, *, window, negative, bag, rate, seed):
    """The paper's objective, written anew: each prediction's loss by torch, each step down its gradient."""
    table, out = torch.tensor(vectors, requires_grad=True), torch.tensor(outputs, requires_grad=True)
    draws, loss = plain.Draws(seed), 0.0
    for sentence in " ".join("|" if one == BEGIN else str(one) for one in ids if one >= 4 or one == BEGIN).split("|"):
        kept = []
        for word in map(int, sentence.split()):
            if drawn.keep[word] >= 1 or (draws.bits() % 2**32) / 2**32 < drawn.keep[word]:
                kept.append(word)
        for place, word in enumerate(kept):
            reach = window - draws.below(window)
            near = [kept[other] for other in range(len(kept)) if 0 < abs(other - place) <= reach]
            for inputs in ([near] if bag else [[one] for one in near]) if near else []:
                noise = [draws.noise(drawn) for _ in range(negative)]
                noise = torch.tensor([one for one in noise if one != word], dtype=torch.int64)
                hidden = table[torch.tensor(inputs)].mean(0)
                one = -functional.logsigmoid(hidden @ out[word]) - functional.logsigmoid(-(out[noise] @ hidden)).sum()
                steps = torch.autograd.grad(one, [table, out])
                with torch.no_grad():
                    table -= rate * steps[0]
                    out -= rate * steps[1]
                loss += one.item()
    return loss, table.detach().numpy(), out.detach().numpy()


@pytest.mark.parametrize("bag", [False, True])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_step_goes_down_the_gradient(bag, data):
    ids = np.array(data.draw(st.lists(st.integers(1, VOCABULARY - 1), max_size=12)), np.int32)
    how = {"window": data.draw(st.integers(1, 3)), "negative": data.draw(st.integers(1, 4)), "bag": bag}
    how |= {"rate": 0.3, "seed": data.draw(st.integers(0, 2**63 - 1))}
    drawn = given_chances(data.draw(st.integers(0, 9)))
    wanted = by_autograd(ids.tolist(), drawn, *tables(1), **how)
    vectors, outputs = tables(1)
    found = plain.learn(ids, drawn, vectors, outputs, **how)
    assert found.loss == pytest.approx(wanted[0], rel=1e-4, abs=1e-5)
    assert found.words == int((ids >= 4).sum())
    np.testing.assert_allclose(vectors, wanted[1], atol=2e-5)
    np.testing.assert_allclose(outputs, wanted[2], atol=2e-5)


@pytest.mark.parametrize("bag", [False, True])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_compiled_update_is_the_plain_one(bag, data):
    ids = np.array(data.draw(st.lists(st.integers(0, VOCABULARY - 1), max_size=60)), np.int32)
    window, negative = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    rate, seed = data.draw(st.sampled_from([0.0, 0.05])), data.draw(st.integers(0, 2**63 - 1))
    drawn = given_chances(data.draw(st.integers(0, 9)))
    one, two = tables(2), tables(2)
    wanted = plain.learn(ids, drawn, *one, window=window, negative=negative, bag=bag, rate=rate, seed=seed)
    found = compiled.learn(ids, *drawn, *two, window, negative, bag, np.float32(rate), seed)
    assert found[1:] == wanted[1:] and found[0] == pytest.approx(wanted.loss, rel=1e-4, abs=1e-5)
    for left, right, first in zip(one, two, tables(2), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
        assert rate or np.array_equal(right, first)


def test_long_sentences_are_cut(monkeypatch):
    ids = np.full(compiled.LONGEST + 5, 5, np.int32)
    drawn = plain.Chances(*given_chances(0))._replace(keep=np.ones(VOCABULARY))
    found = compiled.learn(ids, *drawn, *tables(3), 1, 1, True, np.float32(0), 1)
    assert found[1:] == (len(ids), len(ids))
    assert (
        compiled.learn(ids[: compiled.LONGEST + 1], *drawn, *tables(3), 1, 1, True, np.float32(0), 1)[1] == len(ids) - 5
    )


def test_frequent_words_are_left_out_and_noise_follows_the_power():
    counts = [9, 9, 9, 9, 900, 90, 10]
    drawn = chances(counts, 0.01, 0.75)
    share = np.array([0.9, 0.09, 0.01])
    np.testing.assert_allclose(drawn.keep[4:], np.minimum(1, np.sqrt(0.01 / share) + 0.01 / share))
    assert (chances(counts, 0.0, 0.75).keep == 1).all()
    draws, seen = plain.Draws(1), np.zeros(7)
    for _ in range(20_000):
        seen[draws.noise(drawn)] += 1
    wanted = np.array([900, 90, 10]) ** 0.75
    np.testing.assert_allclose(seen[4:] / seen.sum(), wanted / wanted.sum(), atol=0.01)
    assert not seen[:4].any()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any))
def test_an_alias_table_gives_each_its_chance(weights):
    first, other = alias(np.array(weights, float))
    chance = first.copy()
    np.add.at(chance, other, 1 - first)
    np.testing.assert_allclose(chance / len(weights), np.array(weights) / sum(weights), atol=1e-9)
    assert ((first >= 0) & (first <= 1 + 1e-12)).all()


@settings(max_examples=50)
@given(begins=st.lists(st.integers(0, 4 * LEAST - 1), max_size=9), threads=st.integers(1, 5))
def test_a_text_is_divided_before_sentences(begins, threads):
    ids = np.full(4 * LEAST, 7, np.int32)
    ids[begins] = BEGIN
    parts = divided(ids, threads)
    assert np.array_equal(np.concatenate(parts), ids) and 1 <= len(parts) <= threads
    if len(set(begins)) > 1:
        assert all(part[0] == BEGIN for part in parts[1:])


def network(**chosen):
    torch.manual_seed(4)
    return WordVectors(VOCABULARY, [0, 0, 0, 0, *range(1, VOCABULARY - 3)], embedding_size=SIZE, **chosen)


def test_one_thread_and_a_seed_give_the_same_vectors_and_more_threads_learn_as_much():
    ids = torch.randint(4, VOCABULARY, (3 * LEAST,), dtype=torch.int32)
    ids[::20] = BEGIN
    ids[5] = UNKNOWN
    one, two, other, many = (network(subsample=0.0) for _ in range(4))
    found = one.learn(ids, rate=0.05, seed=3)
    assert two.learn(ids, rate=0.05, seed=3) == found and torch.equal(one.embedding.weight, two.embedding.weight)
    assert other.learn(ids, rate=0.05, seed=4).loss != found.loss
    parted = many.learn(ids, rate=0.05, seed=3, threads=3)
    assert parted.words == found.words == int((ids >= 4).sum())
    assert parted.predictions == pytest.approx(found.predictions, rel=0.05)
    assert parted.loss / parted.predictions == pytest.approx(found.loss / found.predictions, rel=0.05)
    assert not torch.equal(one.embedding.weight, network().embedding.weight) and one.outputs.abs().max() > 0
    assert torch.equal(one.embedding.weight[:4], network().embedding.weight[:4])  # what is no word does not move


def test_its_settings_are_checked():
    built = MODELS.build({"kind": "word_vectors", "embedding_size": 3}, 6, [0, 0, 0, 0, 1, 2])
    assert built(torch.tensor([[4, 5]])).shape == (1, 2, 3)
    assert built.embedding.weight[4:].abs().max() <= 1 / 6 and not built.outputs.any()
    with pytest.raises(SettingsError, match="skip_gram"):
        MODELS.build({"kind": "word_vectors", "algorithm": "glove"}, 6, [0, 0, 0, 0, 1, 2])
    with pytest.raises(SettingsError, match="subsample"):
        MODELS.build({"kind": "word_vectors", "subsample": 1.0}, 6, [0, 0, 0, 0, 1, 2])
