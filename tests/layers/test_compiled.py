"""Compiled loops: their scalar functions, their products, and that bfloat16 and damaged numbers come through."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.dispatcher import Dispatcher

from unrolled.layers import Recurrent
from unrolled.layers.kernels import choose, compiled, layer
from unrolled.layers.kernels.compiled import functions, products, scalars
from unrolled.layers.kernels.compiled import lstm as loops
from unrolled.layers.kernels.compiled.arrays import array, held

if not all(map(compiled.product_found, (torch.float32, torch.float64, torch.bfloat16))):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

ROUNDED = {torch.float32: 1e-6, torch.float64: 1e-12, torch.bfloat16: 1e-2}


def over(function):
    @njit
    def run(x, out):
        for place in range(len(x)):
            out[place] = function(x[place])

    def call(x):
        out = np.empty_like(x)
        run(x, out)
        return out

    return call


EXP, SIGMOID, TANH = over(scalars.exp), over(scalars.sigmoid), over(scalars.tanh)


@pytest.mark.parametrize("dtype, limit", [(np.float32, 3e-7), (np.float64, 1e-14)])
@pytest.mark.parametrize(
    "ours, theirs",
    [(EXP, np.exp), (SIGMOID, lambda x: 1 / (1 + np.exp(-x))), (TANH, np.tanh)],
    ids=["exp", "σ", "tanh"],
)
def test_scalar_functions_are_within_some_units_in_the_last_place(ours, theirs, dtype, limit):
    x = np.concatenate([np.linspace(-80, 80, 20_001), np.linspace(-1, 1, 20_001)]).astype(dtype)
    wanted = theirs(x.astype(np.longdouble))
    np.testing.assert_array_less(np.abs(ours(x) - wanted), limit * np.abs(wanted) + 1e-35)


def test_scalar_functions_have_their_limits_and_pass_a_nan_on():
    x = np.array([-np.inf, -1e30, -0.0, 1e30, np.inf, np.nan], np.float32)
    np.testing.assert_allclose(SIGMOID(x), [0, 0, 0.5, 1, 1, np.nan], atol=1e-37)
    np.testing.assert_array_equal(TANH(x), [-1, -1, 0, 1, 1, np.nan])
    assert np.isnan(EXP(x)[-1])


@njit
def through(x, halves, back):
    for place in range(len(x)):
        scalars.put(halves, place, x[place])
        back[place] = scalars.take(halves, place)


@given(st.lists(st.floats(width=32), min_size=1))
@settings(deadline=None)
def test_bfloat16_is_rounded_as_torch_rounds_it(numbers):
    x = np.array(numbers, np.float32)
    back = np.empty_like(x)
    through(x, np.empty(len(x), np.uint16), back)
    np.testing.assert_array_equal(back, torch.from_numpy(x).bfloat16().float().numpy())


@njit
def product(x, weight, out, keep):
    products.multiply(x[:, 1:], weight, out[:, :3], keep)


@pytest.mark.parametrize("dtype", ROUNDED, ids=str)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_products_take_parts_of_rows_and_turned_weights(dtype, keep, turned):
    torch.manual_seed(2)
    sums = torch.promote_types(dtype, torch.float32)
    x, out = torch.randn(2, 6).to(dtype), torch.randn(2, 7).to(sums)
    weight = torch.randn(3, 5).to(dtype).t() if turned else torch.randn(5, 3).to(dtype)
    wanted = out.clone()
    wanted[:, :3] = x[:, 1:].to(sums) @ weight.to(sums) + (wanted[:, :3] if keep else 0)
    product(array(x), held(weight), array(out), keep)
    torch.testing.assert_close(
        out, wanted, rtol=0, atol=ROUNDED[torch.float64 if sums is torch.float64 else torch.float32]
    )


OPTIONS = [
    {"kind": "elman"},
    *({"kind": "gru", "reset": reset, **option} for reset in ("before", "after") for option in ({}, {"zoneout": 0.3})),
    {"kind": "lstm", "peephole": "full", "coupled": True},
    {"kind": "lstm", "peephole": "diagonal", "projection_size": 5, "zoneout": 0.3},
    {"kind": "lstm", "recurrent_dropout": 0.3},
]


@pytest.mark.parametrize("size", [5, 32])  # 32: the weights are whole tiles
@pytest.mark.parametrize("cell", OPTIONS, ids=lambda cell: "-".join(map(str, cell.values())))
def test_in_bfloat16_values_and_gradients_stay_near_float32(cell, size, monkeypatch):
    for module in (choose, layer):  # however few rows
        monkeypatch.setattr(module, "step_type", lambda cell, x, order, path: choose.product_type(x))
    torch.manual_seed(4)
    cell = {**cell, "projection_size": size} if "projection_size" in cell else cell
    network = Recurrent(3, cell={**cell, "hidden_size": size}, layers=2, bidirectional=True)
    network.path = "compiled"
    x, mask = torch.randn(3, 8, 3), torch.arange(8) < torch.tensor([[8], [5], [2]])
    found = []
    for autocast in (False, True):
        torch.manual_seed(5)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            output, ends = network(x, mask)
        assert output.dtype is (torch.bfloat16 if autocast else torch.float32)
        assert {end.dtype for end in ends} == {torch.float32}
        grads = torch.autograd.grad(output.sum() + sum(end.sum() for end in ends), tuple(network.parameters()))
        found.append((output.float(), *ends, *grads))
    for near, exact in zip(found[1], found[0], strict=True):
        assert (near - exact).norm() <= 0.03 * exact.norm() + 1e-3


@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
def test_a_weight_that_is_no_number_shows_in_the_output(kind):
    network = Recurrent(2, cell={"kind": kind, "hidden_size": 5})
    network.path = "compiled"
    network.cells[0].hidden_weight.data[0, 0] = float("nan")
    assert network(torch.ones(3, 4, 2)).output.isnan().any()


def test_machine_code_is_kept_until_any_of_the_modules_changes(monkeypatch):
    assert loops.forward._cache._cache_file._source_stamp[1] == functions.SOURCE
    monkeypatch.setattr(functions, "SOURCE", "changed")

    def double(x):
        return 2 * x

    kept = functions.loop_function(double)
    assert kept(3) == 6
    assert kept.stats.cache_misses
    again = functions.loop_function(double)
    assert again(3) == 6
    assert again.stats.cache_hits
    monkeypatch.setattr(functions, "SOURCE", "changed again")
    anew = functions.loop_function(double)
    assert anew(3) == 6
    assert anew.stats.cache_misses
    assert not anew.stats.cache_hits


def test_without_a_folder_to_write_it_is_made_in_every_process(monkeypatch):
    def refuse(self):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(Dispatcher, "enable_caching", refuse)
    assert functions.loop_function(lambda x: 2 * x)(3) == 6


PLAIN = [
    {"kind": "elman"},
    {"kind": "gru"},
    {"kind": "lstm"},
    {"kind": "lstm", "peephole": "full", "coupled": True},
    {"kind": "lstm", "projection_size": 1},
]
NORMED = [{"kind": "gru", "reset": "after", "layer_norm": True}, {"kind": "lstm", "layer_norm": True}]
"""Of few numbers, a normalised sum makes a rounding large: only float64 tells."""


@pytest.mark.parametrize(
    "cell, dtype",
    [
        *((cell, dtype) for cell in PLAIN for dtype in (torch.float32, torch.float64, torch.bfloat16)),
        *((cell, torch.float64) for cell in NORMED),
    ],
    ids=lambda one: str(one) if isinstance(one, torch.dtype) else "-".join(map(str, one.values())),
)
@pytest.mark.parametrize("size, hidden", [(1, 5), (1, 16), (5, 1), (1, 1), (1, 32)])
def test_sizes_of_one(cell, dtype, size, hidden):
    torch.manual_seed(5)
    network = Recurrent(size, cell={**cell, "hidden_size": hidden}, bidirectional=True).double()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    x, mask = torch.randn(9, 4, size), torch.arange(4) < torch.randint(1, 5, (9, 1))
    found = []
    for path, kind in (("plain", torch.float64), ("compiled", torch.float32 if dtype is torch.bfloat16 else dtype)):
        network.path = path
        network.to(kind)
        given = x.to(kind, copy=True).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=path == "compiled" and dtype is torch.bfloat16):
            output = network(given, mask).output
        loss = (output.double() * torch.linspace(-1, 1, output.numel()).view_as(output)).sum()
        gradients = torch.autograd.grad(loss, (given, *network.parameters()))
        found.append([one.double() for one in (output, *gradients)])
    near = {torch.float32: 2e-5, torch.float64: 1e-10, torch.bfloat16: 0.1}[dtype]
    for exact, ours in zip(*found, strict=True):
        assert (exact - ours).norm() <= near * (exact.norm() + 0.1)


def test_a_full_peephole_of_one_number_under_autocast():
    torch.manual_seed(5)
    network = Recurrent(4, cell={"kind": "lstm", "hidden_size": 1, "peephole": "full"})
    torch.nn.init.constant_(network.cells[0].peephole_weight, 0.5)
    x = torch.randn(40, 5, 4)
    found = []
    for path in ("plain", "compiled"):
        network.path = path
        with torch.autocast("cpu", torch.bfloat16):
            output = network(x).output
        found.append([output.float(), *torch.autograd.grad(output.float().sum(), list(network.parameters()))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0.03, atol=0.03 * one.abs().max().item())


@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("first", ["learned", "expanded", "turned", "apart"])
def test_a_first_state_of_one_step_that_lies_otherwise(kind, first):
    torch.manual_seed(6)
    network = Recurrent(
        32, cell={"kind": kind, "hidden_size": 32}, initial="learned" if first == "learned" else "zeros"
    )
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    row = {"expanded": torch.randn(1, 32).expand(64, -1), "turned": torch.randn(32, 64).t()}
    row |= {"apart": torch.randn(64, 70)[:, ::2][:, :32]}
    state = None if first == "learned" else (row[first],) * len(network.state_sizes)
    x, found = torch.randn(64, 1, 32), []
    for path in ("plain", "compiled", "whole"):
        network.path = path
        loss = network(x, None, state).output.square().sum()
        found.append(torch.autograd.grad(loss, [*network.parameters()], allow_unused=True))
    for ours in found[1:]:
        torch.testing.assert_close(ours, found[0], rtol=1e-4, atol=1e-4)
