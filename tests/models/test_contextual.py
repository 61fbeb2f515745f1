"""Contextual vectors where an embedding stood: what is read is what the saved model reads; only s and γ learn."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.data.spelling import collate_spelled
from unrolled.layers import Embedding
from unrolled.models import Classifier, Elmo, Seq2Seq
from unrolled.models.contextual import Contextual, Mixture, look_up
from unrolled.models.pointer import shares, shares_of, spread, spread_to

CHARACTERS = 9
READING = {
    "character_size": 3,
    "filters": (2, 3),
    "highways": 1,
    "cell": {"kind": "lstm", "hidden_size": 5},
    "layers": 2,
    "residual": True,
}


def words(**chosen: object) -> Contextual:
    torch.manual_seed(0)
    found = Contextual(CHARACTERS, READING, **chosen)
    with torch.no_grad():
        for weight in found.reader.parameters():
            weight.normal_(std=0.5)
        found.reader.spelling.embedding.weight[PAD] = 0.0
        found.mixture.weight.copy_(torch.tensor([0.3, -0.5, 1.0]))
        found.mixture.gamma.fill_(1.7)
    return found.eval()


def begun(character: int) -> int:
    return CHARACTERS if character == UNKNOWN else character + CHARACTERS - 3


def rows_of(texts: list[list[list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts of words of characters as the rows of symbols that a tokenizer makes, with END."""
    rows = [[*(one for word in text for one in (begun(word[0]), *word[1:])), END] for text in texts]
    ids = torch.full((len(rows), max(map(len, rows))), PAD)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
    return ids, ids != PAD


TEXTS = st.lists(
    st.lists(st.lists(st.sampled_from([UNKNOWN, 4, 5, 6, 7, 8]), min_size=1, max_size=4), max_size=4),
    min_size=1,
    max_size=4,
)


def expected(table: Contextual, texts: list[list[list[int]]]) -> torch.Tensor:
    """What the saved model's own batches give, mixed by hand: [batch, words + end, size]."""
    spelled = [[[BEGIN, *word, END] for word in text] for text in texts]
    batch = collate_spelled(spelled, [[UNKNOWN] * len(text) for text in texts])
    layers = table.reader(batch.characters, batch.mask).layers()
    shares = table.mixture.weight.softmax(0)
    normed = [(one - one.mean(2, True)) / (one.var(2, False, keepdim=True) + 1e-5).sqrt() for one in layers]
    mixed = 1.7 * 10**-0.5 * sum(share * one for share, one in zip(shares, normed, strict=True))
    return (mixed * batch.mask.unsqueeze(2))[:, 1:]


@settings(max_examples=30, deadline=None)
@given(TEXTS)
def test_rows_of_symbols_are_read_as_the_saved_model_reads_words(texts):
    table = words()
    ids, mask = rows_of(texts)
    found = look_up(table, ids, mask)
    wanted = expected(table, texts)
    torch.testing.assert_close(found.vectors, wanted, atol=1e-5, rtol=1e-5)
    assert found.mask.sum(1).tolist() == [len(text) + 1 for text in texts]
    for row, text in enumerate(texts):
        owners = [place for place, word in enumerate(text) for _ in word] + [len(text)]
        assert found.owner[row, : len(owners)].tolist() == owners


@settings(max_examples=15, deadline=None)
@given(TEXTS)
def test_words_one_by_one_are_read_alike(texts):
    texts = [text for text in texts if text]
    if not texts:
        return
    table = words()
    longest = max(len(word) for text in texts for word in text)
    given_ = torch.full((len(texts), max(map(len, texts)), longest), PAD)
    for row, text in enumerate(texts):
        for place, word in enumerate(text):
            given_[row, place, : len(word)] = torch.tensor([begun(word[0]), *word[1:]])
    mask = given_[:, :, 0] != PAD
    wanted = expected(table, texts)[:, :-1]
    found = table(given_, mask)
    for row, text in enumerate(texts):
        torch.testing.assert_close(found[row, : len(text)], wanted[row, : len(text)], atol=1e-5, rtol=1e-5)
    assert (found[~mask] == 0).all()


@settings(max_examples=15, deadline=None)
@given(TEXTS, st.integers(0, 4), st.randoms(use_true_random=False))
def test_neighbours_padding_and_order_change_nothing(texts, more, random):
    table = words()
    ids, mask = rows_of(texts)
    whole = look_up(table, ids, mask)
    order = random.sample(range(len(texts)), len(texts))
    wide = look_up(table, functional.pad(ids[order], (0, more)), functional.pad(mask[order], (0, more)))
    for place, row in enumerate(order):
        count = len(texts[row]) + 1
        torch.testing.assert_close(wide.vectors[place, :count], whole.vectors[row, :count], atol=1e-5, rtol=1e-5)


def test_a_layer_is_chosen_by_its_share():
    mixture = Mixture(3, 4)
    layers = torch.randn(3, 2, 5, 4)
    torch.testing.assert_close(mixture(layers), functional.layer_norm(layers, (4,)).mean(0) / 2)
    with torch.no_grad():
        mixture.weight[1] = 100.0
        mixture.gamma.fill_(3.0)
    torch.testing.assert_close(mixture(layers), 1.5 * functional.layer_norm(layers[1], (4,)))
    assert float(mixture(layers).detach().square().mean()) == pytest.approx(9 / 4, rel=1e-3)  # 1/size with γ = 1


def test_only_shares_and_gamma_learn_and_nothing_drops_out_below():
    table = words(dropout=torch.nn.Dropout(0.5)).train()
    assert not table.reader.training and not any(one.training for one in table.reader.modules())
    ids, mask = rows_of([[[4, 5], [6]]])
    look_up(table, ids, mask).vectors.square().sum().backward()
    moved = {name for name, weight in table.named_parameters() if weight.grad is not None}
    assert moved == {"mixture.weight", "mixture.gamma"}
    assert not torch.equal(look_up(table, ids, mask).vectors, look_up(table, ids, mask).vectors)
    assert torch.equal(look_up(table.eval(), ids, mask).vectors, look_up(table, ids, mask).vectors)


def test_forgotten_words_are_spelled_as_unknown():
    table = words()
    table.word_dropout = 1.0 - 1e-9
    ids, mask = rows_of([[[4, 5], [6]]])
    unknown, _ = rows_of([[[UNKNOWN, UNKNOWN], [UNKNOWN]]])
    wanted = look_up(table, unknown, mask).vectors
    assert not torch.allclose(look_up(table, ids, mask).vectors, wanted)
    torch.testing.assert_close(look_up(table.train(), ids, mask).vectors, wanted)


def test_strange_ids_are_refused():
    table = words()
    most = 2 * CHARACTERS - 3
    with pytest.raises(UsageError, match=f"ids of contextual words are from 0 to {most - 1}; was the text"):
        table.read(torch.tensor([[most, END]]), torch.ones(1, 2, dtype=torch.bool))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 7))
def test_weights_are_spread_as_where_positions_are_evenly_wide(reduction, length):
    mask = torch.arange(length) < torch.tensor([[length], [max(1, length - 2)]])
    owner = (torch.arange(length) // reduction).expand(2, -1)
    weights = torch.rand(2, 3, -(-length // reduction))
    even = spread(weights, shares(mask, reduction), reduction)
    torch.testing.assert_close(spread_to(weights, shares_of(mask, owner), owner), even)
    torch.testing.assert_close(spread_to(weights[:, 0], shares_of(mask, owner), owner), even[:, 0])


@pytest.mark.parametrize("encoder", [{"kind": "rnn"}, {"kind": "pyramidal", "layers": 2}])
def test_what_attention_says_of_words_is_said_of_their_characters(encoder):
    encoder = {**encoder, "cell": {"kind": "gru", "hidden_size": 4}}
    ids, mask = rows_of([[[4, 5, 6], [7], [8, 4]], [[5]]])
    model = Classifier(20, 3, embedding_size=10, encoder=encoder, pooling="attention", dropout=0.0)
    model.embedding = words()
    said = model.eval()(ids, mask)
    torch.testing.assert_close(said.weights.sum(1), torch.ones(2))
    assert said.weights.shape == ids.shape and (said.weights[~mask] == 0).all()
    assert said.weights[0, 0] == said.weights[0, 1] == said.weights[0, 2]
    target, real = torch.tensor([[BEGIN, 5, END], [BEGIN, 6, END]]), torch.ones(2, 3, dtype=torch.bool)
    network = Seq2Seq(20, 9, embedding_size=10, encoder=encoder, dropout=0.0)
    network.source_embedding = words()
    network.eval()
    whole = network(ids, mask, target, real)
    torch.testing.assert_close(whole.weights.sum(2), torch.ones(2, 2))
    assert torch.equal(whole.weights[0, :, 0], whole.weights[0, :, 2])
    state = network.select(network.start(ids, mask), torch.tensor([1, 0]))
    stepped = network.step(torch.full((2,), BEGIN), state)
    torch.testing.assert_close(stepped.weights.flip(0), whole.weights[:, 0])
    torch.testing.assert_close(stepped.logits.flip(0), whole.logits.unflatten(0, (2, 2))[:, 0])


def test_a_plain_embedding_keeps_its_positions():
    table = Embedding(7, size=3)
    ids, mask = torch.tensor([[4, END]]), torch.ones(1, 2, dtype=torch.bool)
    found = look_up(table, ids, mask)
    assert found.owner is None and found.mask is mask and torch.equal(found.vectors, table(ids))


def test_the_reader_is_that_of_the_language_model():
    model = Elmo(CHARACTERS, 12, **READING)
    assert set(model.reader.state_dict()) == set(words().reader.state_dict())
