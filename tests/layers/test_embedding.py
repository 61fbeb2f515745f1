"""Vectors of symbols: padding, dropout of numbers and of symbols, and what is refused."""

import pytest
import torch

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.layers import Embedding


def test_padding_is_zero_and_gets_no_gradient():
    embedding = Embedding(11, size=3)
    ids = torch.tensor([[BEGIN, 7, END, PAD], [5, PAD, PAD, PAD]])
    vectors = embedding(ids)
    assert vectors.shape == (2, 4, 3)
    assert (vectors[ids == PAD] == 0).all()
    assert torch.equal(vectors[0, 1], embedding.weight[7])
    vectors.sum().backward()
    assert embedding.weight.grad[PAD].tolist() == [0.0] * 3
    assert embedding.weight.grad[7].tolist() == [1.0] * 3


def test_vectors_start_with_deviation_one_over_root_size():
    torch.manual_seed(0)
    assert Embedding(500, size=64).weight[1:].std().item() == pytest.approx(1 / 8, rel=0.02)


def test_word_dropout_reads_real_symbols_as_unknown_in_training_only():
    torch.manual_seed(0)
    embedding = Embedding(50, size=3, word_dropout=0.4)
    ids = torch.randint(0, 50, (40, 60))
    vectors = embedding(ids)
    unknown = (vectors == embedding.weight[UNKNOWN]).all(2)
    special = (ids == PAD) | (ids == BEGIN) | (ids == END)
    assert not unknown[special].any()
    assert unknown[~special & (ids != UNKNOWN)].float().mean().item() == pytest.approx(0.4, abs=0.03)
    kept = ~unknown
    assert torch.equal(vectors[kept], embedding.weight[ids[kept]])
    embedding.eval()
    assert torch.equal(embedding(ids), embedding.weight[ids])


@pytest.mark.parametrize("kind", ["plain", "locked"])
def test_dropout_of_numbers_is_scaled_and_locked_is_the_same_at_all_steps(kind):
    torch.manual_seed(0)
    embedding = Embedding(9, size=200, dropout=0.25, dropout_kind=kind)
    ids = torch.full((2, 5), 7)
    vectors = embedding(ids)
    dropped = vectors == 0
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.08)
    torch.testing.assert_close(vectors[~dropped], (embedding.weight[7] / 0.75).expand_as(vectors)[~dropped])
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped)) == (kind == "locked")
    assert not torch.equal(dropped[0], dropped[1])


def test_wrong_input_is_named():
    with pytest.raises(
        UsageError, match=r"ids of an embedding have the type torch.float32; they must be whole numbers"
    ):
        Embedding(9)(torch.zeros(2, 3))
    with pytest.raises(SettingsError, match=r"vocabulary_size of an embedding is 0"):
        Embedding(0)
    with pytest.raises(SettingsError, match=r"size of an embedding is -1"):
        Embedding(9, size=-1)
    with pytest.raises(SettingsError, match=r"word_dropout 1.5 was given; it must be at least 0 and below 1"):
        Embedding(9, word_dropout=1.5)


def test_frozen_symbols_keep_their_vectors_and_the_others_learn():
    torch.manual_seed(0)
    embedding = Embedding(7, size=3)
    before = embedding.weight.detach().clone()
    embedding.freeze(torch.tensor([6, 4]))
    assert embedding.weight.shape == (5, 3) and torch.equal(embedding.frozen, before[[4, 6]])
    assert torch.equal(embedding.table(), before)
    ids = torch.tensor([[4, 5, 6, PAD], [1, 4, 3, 5]])
    assert torch.equal(embedding(ids), before[ids])
    (embedding(ids) * torch.arange(1.0, 9).view(2, 4, 1)).sum().backward()
    # weight holds the symbols 0, 1, 2, 3 and 5; 4 and 6 send no gradient anywhere
    assert embedding.weight.grad[:, 0].tolist() == [0.0, 5.0, 0.0, 7.0, 2.0 + 8.0]
    given = torch.arange(9.0).view(3, 3)
    embedding.put(torch.tensor([6, 5, 4]), given)
    assert torch.equal(
        embedding(torch.tensor([[4, 5, 6, 1]]))[0], torch.stack([given[2], given[1], given[0], before[1]])
    )
    again = Embedding(7, size=3)
    again.freeze(torch.tensor([4, 6]))
    again.load_state_dict(embedding.state_dict())
    assert torch.equal(again.table(), embedding.table()) and set(embedding.state_dict()) == {"weight", "frozen"}
    with pytest.raises(UsageError, match=r"hold 7; with 7 symbols they are from 0 to 6"):
        embedding(torch.tensor([[7]]))
    with pytest.raises(UsageError, match="hold -1;"):
        embedding(torch.tensor([[-1]]))
    with pytest.raises(UsageError, match="frozen once"):
        embedding.freeze(torch.tensor([5]))
    with pytest.raises(UsageError, match="<pad> never"):
        Embedding(7, size=3).freeze(torch.tensor([PAD]))


def test_an_embedding_that_freezes_nothing_is_saved_as_ever():
    assert list(Embedding(5, size=2).state_dict()) == ["weight"]
