"""Draws of our own: the generator of the paper, and what a draw must be whatever makes it."""

import math

import numpy as np
import pytest
import torch
from numba import njit
from torch.nn import functional

from unrolled.layers import draws
from unrolled.layers.draws import FEW, dropout, kept
from unrolled.layers.dropout import LockedDropout, PlainDropout
from unrolled.layers.kernels.compiled import philox

TYPES = [torch.float32, torch.float64, torch.bfloat16]


@njit
def block(counter, key):
    a, b, c, d = philox.rounds(counter[0], counter[1], counter[2], counter[3], key[0], key[1])
    return a & philox.WORD, b & philox.WORD, c & philox.WORD, d & philox.WORD


@njit
def words(first, key):
    made = np.empty(philox.WORDS, np.uint32)
    philox.fill(made, first, key)
    return made


@pytest.mark.parametrize(
    "counter, key, wanted",
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_the_known_answers_of_random123(counter, key, wanted):
    assert list(block(np.array(counter, np.uint64), np.array(key, np.uint64))) == wanted


def test_a_block_of_words_is_that_of_its_number_and_the_key():
    first, key = np.uint64((5 << 32) - 3), np.uint64(0x0123456789ABCDEF)  # a number goes on above 32 bits
    made = words(first, key).reshape(4, philox.BLOCKS)
    for place in (0, 2, 3, 63):
        number = int(first) + place
        counter = np.array([number & 0xFFFFFFFF, number >> 32, 0, 0], np.uint64)
        halves = np.array([int(key) & 0xFFFFFFFF, int(key) >> 32], np.uint64)
        assert made[:, place].tolist() == list(block(counter, halves))


def test_a_draw_compares_the_words_of_its_key(monkeypatch):
    monkeypatch.setattr(draws, "_key", lambda: 77)
    drawn = kept((3, 500), 0.3, torch.empty(0)).flatten()
    made = np.concatenate([words(np.uint64(64 * part), np.uint64(77)) for part in range(6)])[:1500]
    assert drawn.tolist() == (made < 0.3 * 2**32).astype(float).tolist()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("chance", [0.01, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("size", [7, 300, 4000])
def test_the_chance_is_the_one_that_was_asked_for(dtype, chance, size):
    torch.manual_seed(3)
    drawn = kept((100, size), chance, torch.empty(0, dtype=dtype), 2.5)
    assert drawn.dtype is dtype and set(drawn.unique().tolist()) == {0.0, 2.5}
    deviation = math.sqrt(chance * (1 - chance) / drawn.numel())
    assert abs((drawn > 0).double().mean().item() - chance) < 4 * deviation


def test_neighbours_columns_and_calls_do_not_know_of_each_other():
    torch.manual_seed(5)
    one, other = (kept((512, 512), 0.4, torch.empty(0)) - 0.4 for _ in range(2))
    flat, bound = one.flatten(), 4.5 * 0.24 / 512  # of means of 512² products, each of variance 0.24²
    for apart in (1, 2, 3, 16, 63, 64, 65, 128, 192, 256, 512):
        assert abs((flat[apart:] * flat[:-apart]).mean()) < 1.01 * bound, apart
    assert abs((one * other).mean()) < bound


@pytest.mark.parametrize("size", [FEW, FEW + 1])
def test_the_seed_decides(size):
    def drawn(seed):
        torch.manual_seed(seed)
        return [kept((size,), 0.5, torch.empty(0)), dropout(torch.ones(size), 0.5)]

    for first, again, other in zip(drawn(1), drawn(1), drawn(2), strict=True):
        assert torch.equal(first, again) and not torch.equal(first, other)
    assert not torch.equal(drawn(1)[0], kept((size,), 0.5, torch.empty(0)))


def test_threads_change_nothing():
    before = torch.get_num_threads()
    made = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(1)
            made.append(dropout(torch.ones(300, 300), 0.2))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*made)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_dropout_leaves_is_scaled_and_so_is_its_gradient(dtype):
    torch.manual_seed(2)
    x = torch.randn(40, 50, dtype=dtype).requires_grad_()
    y = dropout(x, 0.3)
    gradient = torch.randn(40, 50, dtype=dtype)
    y.backward(gradient)
    left = y != 0
    scaled = [(tensor.detach().double() / 0.7).to(dtype) * left for tensor in (x, gradient)]
    assert y.dtype is dtype and 0.6 < left.double().mean() < 0.8
    torch.testing.assert_close((y.detach(), x.grad), tuple(scaled))


def test_gradients_of_first_and_second_order():
    x = torch.randn(30, FEW // 30 + 1, dtype=torch.float64).requires_grad_()

    def drop(x):
        torch.manual_seed(4)
        return dropout(x, 0.4)

    assert torch.autograd.gradcheck(drop, x, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x: drop(x) ** 3, x, fast_mode=True)


def test_the_mean_stays():
    torch.manual_seed(6)
    for dtype in TYPES:
        y = dropout(torch.ones(1000, 1000, dtype=dtype), 0.3).double()
        assert abs(y.mean() - 1) < (1e-3 if dtype is torch.bfloat16 else 0) + 4 * math.sqrt(0.3 / 0.7) / 1000


def test_columns_that_do_not_lie_side_by_side():
    x = torch.randn(90, 70).t().requires_grad_()
    y = dropout(x, 0.5)
    gradient = torch.randn(90, 70).t()
    (back,) = torch.autograd.grad(y, x, gradient)
    torch.testing.assert_close(y.detach(), 2 * x.detach() * (y != 0))
    torch.testing.assert_close(back, 2 * gradient * (y != 0))


@pytest.mark.parametrize("kind", [PlainDropout, LockedDropout])
def test_in_evaluation_and_at_rate_0_nothing_changes(kind):
    x, before = torch.randn(5, 30, 20), torch.get_rng_state()
    assert torch.equal(kind(rate=0.5).eval()(x), x) and torch.equal(kind(rate=0.0)(x), x)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_locked_draw_is_the_same_at_all_steps():
    torch.manual_seed(7)
    y = LockedDropout(rate=0.5)(torch.ones(6, 9, 300))
    assert torch.equal(y, y[:, :1].expand_as(y)) and set(y.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(y[0], y[1])


def test_few_numbers_and_types_of_others_are_drawn_by_torch():
    for x in (torch.randn(FEW), torch.randn(2, FEW).half()):
        torch.manual_seed(8)
        ours = dropout(x, 0.3)
        torch.manual_seed(8)
        assert torch.equal(ours, functional.dropout(x, 0.3))


def test_gradients_of_gradients_that_are_batched_and_tangents():
    x = torch.randn(2 * FEW)

    def some(x):
        torch.manual_seed(1)
        return dropout(x, 0.5)[:3]

    alone = torch.autograd.functional.jacobian(some, x)
    assert torch.equal(torch.autograd.functional.jacobian(some, x, vectorize=True), alone)
    assert sorted(alone.unique().tolist()) in ([0, 2], [0])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        assert torch.autograd.forward_ad.unpack_dual(dropout(dual, 0.5)).tangent.unique().tolist() == [0, 2]


def test_numbers_that_torch_keeps_otherwise():
    negated = torch.ones(2 * FEW)._neg_view()
    assert sorted(dropout(negated, 0.5).unique().tolist()) == [-2, 0]
    assert dropout(torch._efficientzerotensor((2 * FEW,)), 0.5).sum() == 0
    with torch.device("meta"):
        assert dropout(torch.ones(2 * FEW, device="cpu"), 0.5).device.type == "cpu"


def test_torch_may_trace_and_batch_it():
    x = torch.randn(3, 2 * FEW)
    drawn = torch.func.vmap(lambda row: dropout(row, 0.5), randomness="different")(x)
    assert not torch.equal(drawn[0] == 0, drawn[1] == 0)
    exported = torch.export.export(PlainDropout(rate=0.5).train(), (x,)).module()
    assert set((exported(x) / x).round().unique().tolist()) == {0.0, 2.0}
