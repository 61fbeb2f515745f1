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
