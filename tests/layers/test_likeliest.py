"""The likeliest symbols: what torch's topk and log_softmax find, in a pass of our own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.layers import likeliest as module
from unrolled.layers.likeliest import likeliest


@given(st.integers(1, 5), st.integers(1, 300), st.integers(1, 70), st.sampled_from([torch.float32, torch.float64]))
@settings(deadline=None)
def test_it_finds_what_sorting_finds(rows, vocabulary, k, dtype):
    logits = 5 * torch.randn(rows, vocabulary, dtype=dtype)
    scores, ids = likeliest(logits, k)
    wanted = logits.sort(dim=1, descending=True)
    k = min(k, vocabulary)
    assert torch.equal(logits.gather(1, ids), wanted.values[:, :k]) and ids.dtype is torch.int64
    torch.testing.assert_close(scores, logits.log_softmax(1).gather(1, ids), rtol=1e-6, atol=2e-6)


def test_of_equals_the_first_comes_first_and_what_is_impossible_last():
    logits = torch.tensor([[1.0, 2.0, 2.0, float("-inf"), 2.0], [float("-inf")] * 4 + [0.0]])
    scores, ids = likeliest(logits, 5)
    assert ids.tolist() == [[1, 2, 4, 0, 3], [4, 0, 1, 2, 3]]
    assert scores[1].tolist() == [0.0] + [float("-inf")] * 4


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_number_that_is_none_shows_in_every_probability(broken):
    logits = torch.randn(2, 100)
    logits[0, 50] = broken
    scores, _ = likeliest(logits, 3)
    assert scores[0].isnan().any() and scores[1].isfinite().all()


@given(st.integers(60, 300), st.integers(1, 300), st.integers(2, 6), st.integers(0, 999))
@settings(deadline=None)
def test_equals_come_in_the_order_of_their_ids(vocabulary, k, kinds, seed):
    numbers = torch.Generator().manual_seed(seed)
    logits = torch.randint(kinds, (3, vocabulary), generator=numbers).float()
    logits[0, logits[0] == 0] = float("-inf")
    wanted = logits.sort(dim=1, descending=True, stable=True).indices
    assert torch.equal(likeliest(logits, k)[1], wanted[:, : min(k, vocabulary)])


def test_where_all_is_no_number_ids_are_still_of_symbols():
    _, ids = likeliest(torch.full((2, 200), float("nan")), 5)
    assert ids.min() >= 0 and ids.max() < 200


def test_rows_that_are_part_of_longer_ones():
    whole = torch.randn(4, 50)
    whole[:, 40:] = 100  # which must not be seen
    for logits in (whole[:, :40], whole[1:, :40], whole[:, :40].t().contiguous().t()):
        for found, wanted in zip(likeliest(logits, 3), likeliest(logits.clone(), 3), strict=True):
            assert torch.equal(found, wanted)


def test_where_loops_are_not_compiled_torch_finds_the_same(monkeypatch):
    logits = torch.randn(3, 90)
    ours = likeliest(logits, 4)
    monkeypatch.setattr(module.compiled, "possible", lambda tensor: False)
    theirs = likeliest(logits, 4)
    assert torch.equal(ours[1], theirs[1])
    torch.testing.assert_close(ours[0], theirs[0])


def test_none_are_asked_for():
    scores, ids = likeliest(torch.randn(2, 50), 0)
    assert scores.shape == ids.shape == (2, 0)
