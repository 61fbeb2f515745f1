"""Threads that share the rows of a loop, a product, the gradient of a weight, or a loss."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.layers import Recurrent
from unrolled.layers.kernels import compiled
from unrolled.layers.loss import linear_cross_entropy

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled import arrays, sums, threads, tiles, vectors
from unrolled.layers.kernels.compiled.shares import shares
from unrolled.layers.kernels.order import Rows

if threads._LIBRARY is None:
    pytest.skip("torch brings no OpenMP library that could be called", allow_module_level=True)


@pytest.fixture
def several(monkeypatch):
    """Three threads, for the smallest work too."""
    monkeypatch.setattr(threads, "LEAST", 1)
    for module in (threads, vectors):
        monkeypatch.setattr(module, "available", lambda: 3)


# --- calls ------------------------------------------------------------------------------------------------------------


def test_jobs_are_done_at_once_and_on_threads_of_their_own():
    met, who = threading.Barrier(3), set()

    def job():
        met.wait(timeout=20)  # passes only when all three are at work
        who.add(threading.get_ident())

    threads.together([job] * 3)
    assert len(who) == 3 and threading.get_ident() in who


def test_what_a_job_raises_is_raised_when_none_is_at_work():
    done = []

    def late():
        time.sleep(0.05)
        done.append(True)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.together([interrupted, late, late])
    assert done == [True, True]


def test_an_interrupt_is_raised_whenever_it_comes():
    """In a process of its own: a signal of the system's, as Ctrl-C sends it."""
    script = """
import os, signal, threading, time
from unrolled.layers.kernels.compiled import threads
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background may be without
raised = 0
for turn in range(40):
    end = time.monotonic() + 2
    try:
        threading.Timer(0.004, os.kill, (os.getpid(), signal.SIGINT)).start()
        while time.monotonic() < end:
            threads.together([lambda: None, lambda: None])
    except KeyboardInterrupt:
        raised += 1
    else:
        break
print(raised)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["40"] and "ignored" not in found.stderr


@pytest.mark.parametrize("jobs", [0, 1, 4])
def test_without_a_library_one_thread_does_all(jobs, monkeypatch):
    monkeypatch.setattr(threads, "_PARALLEL", None)
    monkeypatch.setattr(threads, "_LIBRARY", None)
    assert threads.available() == 1
    done = []
    threads.together([lambda: done.append(threading.get_ident())] * jobs)
    assert done == [threading.get_ident()] * jobs


def test_there_are_as_many_as_torch_was_told_and_the_work_is_worth():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert threads.available() == 2
        assert [threads.worthwhile(threads.LEAST * count) for count in (0, 1, 2, 9)] == [1, 1, 2, 2]
    finally:
        torch.set_num_threads(before)


@given(st.integers(0, 200), st.integers(1, 9), st.integers(1, 33))
def test_portions_are_whole_and_all_there_is(count, several, whole):
    parts = threads.portions(count, several, whole)
    assert [place for part in parts for place in range(part.start, part.stop)] == list(range(count))
    assert len(parts) <= several and all(part.start % whole == 0 for part in parts)
    sizes = [-(-(part.stop - part.start) // whole) for part in parts]
    assert max(sizes) - min(sizes) <= 1 or count < several * whole


# --- rows of loops ----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(1, 6), st.sampled_from([1, 1, 4]))
def test_each_place_is_in_one_share_and_shares_are_about_even(lengths, count, whole):
    lengths = sorted(lengths, reverse=True)
    rows = Rows([sum(length > step for length in lengths) for step in range(lengths[0])], torch.device("cpu"))
    found = shares(rows, count, whole)
    places, given_rows = [], []
    for number, share in enumerate(found):
        assert share.number == number and share.counts[0] == share.stop - share.first and (share.counts > 0).all()
        given_rows += range(share.first, share.stop)
        own = [start + row for start, some in zip(share.starts, share.counts, strict=True) for row in range(some)]
        assert {int(rows.each[place]) for place in own} == set(range(share.first, share.stop))
        assert len(own) <= sum(lengths) / count + whole * lengths[0]
        assert share.first % whole == 0
        places += own
    assert sorted(places) == list(range(sum(lengths))) and given_rows == list(range(len(lengths)))
    assert len(found) <= count


@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["lstm", "gru", "elman"])
def test_a_layer_gives_the_same_bits_with_threads_and_without(kind, autocast, request):
    torch.manual_seed(4)
    network = Recurrent(32, cell={"kind": kind, "hidden_size": 32}, bidirectional=True)
    x, mask = torch.randn(21, 9, 32), torch.arange(9) < torch.randint(1, 10, (21, 1)).sort(0).values.flip(0)

    def found():
        network.zero_grad()
        given = x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            output = network(given, mask).output
        output.float().square().sum().backward()
        return [output, given.grad, *(weight.grad for weight in network.parameters())]

    alone = found()
    request.getfixturevalue("several")
    for one, other in zip(alone, found(), strict=True):
        assert torch.equal(one, other)


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 3000, 480), (1500, 61, 48), (90, 128, 400)], ids=str)
def test_a_shared_product_has_the_bits_of_one_threads(shape, half):
    rows, inner, width = shape
    torch.manual_seed(rows)
    weight, x, before = torch.randn(inner, width), torch.randn(rows, inner), torch.randn(rows, width)
    laid = arrays.laid_out(weight.bfloat16() if half else weight, in_tiles=False)
    assert rows * laid.steps * width >= vectors.SHARED
    found = []
    for count in (1, 2, 3, 5):
        out = before.clone()
        at, apart = out.data_ptr(), 4 * width
        vectors.called(count, *laid[1:], rows, x.data_ptr(), 4 * inner, 4, at, apart, at, apart)
        found.append(out)
    torch.testing.assert_close(found[0], before + x @ laid_weight(weight, half), rtol=1e-4, atol=1e-3)
    assert all(torch.equal(found[0], other) for other in found[1:])


def laid_weight(weight, half):
    return weight.bfloat16().float() if half else weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_weights_gradient_has_the_bits_of_one_threads(dtype, several, monkeypatch):
    monkeypatch.setattr(sums, "ours", lambda *_: dtype is torch.float32 or compiled.pairs_used())
    gradient, given = torch.randn(70, 100).to(dtype), torch.randn(70, 48).to(dtype)
    together, alone = torch.empty(100, 48), torch.empty(100, 48)
    sums.sum_of_products(gradient, given, together)
    monkeypatch.setattr(threads, "available", lambda: 1)
    sums.sum_of_products(gradient, given, alone)
    assert torch.equal(together, alone)
    torch.testing.assert_close(alone.double(), gradient.double().t() @ given.double(), rtol=1e-4, atol=1e-3)


def test_rows_of_a_product_in_tiles_are_shared(several, monkeypatch):
    made = []
    monkeypatch.setattr(tiles, "multiply_at", lambda *given: made.append((given[0], *given[4:])))
    weight = tiles.Tiles(np.zeros((4, 1, 16, 16), np.uint32), np.zeros(1, np.int64))
    x, out = torch.zeros(70, 32, dtype=torch.bfloat16), torch.zeros(70, 64)
    arrays.multiply_at(x, weight, out, first=out.data_ptr(), first_apart=64)
    at = out.data_ptr()
    expected = [(rows, at + 256 * start, 256, at + 256 * start, 256) for start, rows in ((0, 32), (32, 32), (64, 6))]
    assert sorted(made, key=lambda call: call[1]) == expected


# --- the loss ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_shared_loss_is_that_of_one_thread(smoothing, request):
    torch.manual_seed(5)
    hidden, weight, bias = torch.randn(50, 16), torch.randn(40, 16), torch.randn(40)
    targets = torch.randint(40, (50,))

    def found():
        given = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
        loss = linear_cross_entropy(*given, targets, smoothing)
        loss.backward()
        return [loss.detach(), *(tensor.grad for tensor in given)]

    alone = found()
    request.getfixturevalue("several")
    torch.testing.assert_close(found(), alone, rtol=1e-6, atol=1e-6)
