"""Products with a weight in panels are those of exact numbers, whatever the rows beside a row, on every machine."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.layers import Recurrent
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.repeated import Repeated
from unrolled.layers.kernels.tiled import TiledWeight, lay_out

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

import numba

from unrolled.layers.kernels.compiled import arrays, blocks, vectors
from unrolled.layers.kernels.loops import derived

HALF = [False, True]


@pytest.fixture(autouse=True)
def without_tiles(monkeypatch):
    monkeypatch.setattr(compiled, "tiles_found", lambda: False)


def product(rows, inner, width, *, half=False, turned=True, first=True):
    """A product of random numbers, and what it is exactly; nothing beside it may be written."""
    numbers = torch.Generator().manual_seed(rows + inner + width)
    x = torch.randn(rows, inner + 3, generator=numbers)[:, :inner]
    weight, bias = torch.randn(width, inner, generator=numbers), torch.randn(width, generator=numbers)
    weight = weight.bfloat16() if half else weight
    out = torch.full((rows + 1, width + 5), 7.0)
    laid = arrays.laid_out(weight.t() if turned else weight.t().contiguous(), in_tiles=False)
    begin = bias.data_ptr() if first else 0
    vectors.multiply_at(rows, x.data_ptr(), 4 * x.stride(0), laid, out.data_ptr(), 4 * out.stride(0), begin, 0)
    assert (out[rows:] == 7).all() and (out[:, width:] == 7).all()
    return out[:rows, :width], x.double() @ weight.double().t() + (bias.double() if first else 0)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(0, 20),
    inner=st.integers(1, 70),
    panels=st.integers(1, 9),
    half=st.booleans(),
    turned=st.booleans(),
    first=st.booleans(),
)
def test_a_product_is_that_of_exact_numbers(rows, inner, panels, half, turned, first):
    found, exact = product(rows, inner, 16 * panels, half=half, turned=turned, first=first)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wide", [(0, 4, 4, 4, 4, 4, 4), (0, 4, 2, 2, 1, 1, 1)], ids=["long vectors", "short ones"])
def test_it_is_so_with_the_blocks_of_another_processor(wide, monkeypatch):
    for module in (vectors, blocks):
        monkeypatch.setattr(module, "WIDE", wide)
    monkeypatch.setattr(vectors, "_multiply", numba.njit(vectors._multiply.py_func))
    monkeypatch.setattr(vectors, "called", numba.njit(vectors.product))
    for rows in (1, 2, 3, 4, 5, 6, 7, 13):
        for half in HALF:
            found, exact = product(rows, 37, 16 * 7, half=half)
            torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("half", HALF)
def test_a_row_is_the_same_whatever_stands_beside_it(half):
    weight = torch.randn(112, 50)
    laid = arrays.laid_out((weight.bfloat16() if half else weight).t(), in_tiles=False)
    x, bias = torch.randn(23, 50), torch.randn(112)

    def of(rows):
        given = x[rows].contiguous()
        out = given.new_empty(len(given), 112)
        arrays.multiply_at(given, laid, out, bias.data_ptr(), 0)
        return out

    together = of(range(23))
    for count in (1, 2, 3, 4, 5, 6, 7, 12):
        for start in range(23 - count):
            assert torch.equal(of(range(start, start + count)), together[start : start + count])


def test_what_was_there_is_kept_where_it_is_asked_for():
    x, weight, out = torch.randn(9, 20), torch.randn(20, 32), torch.randn(9, 40)
    before = out.clone()
    laid = arrays.laid_out(weight, in_tiles=False)
    vectors.multiply_panels(x.numpy(), laid, out.numpy()[:, 4:36], True, 1)
    torch.testing.assert_close(out[:, 4:36], before[:, 4:36] + x @ weight, rtol=1e-5, atol=1e-5)
    assert torch.equal(out[:, :4], before[:, :4]) and torch.equal(out[:, 36:], before[:, 36:])


def test_numbers_that_are_none_stay_where_they_are():
    x = torch.ones(3, 5)
    x[1, 2] = torch.nan
    out = torch.empty(3, 16)
    arrays.multiply_at(x, arrays.laid_out(torch.ones(5, 16), in_tiles=False), out)
    assert out[1].isnan().all() and (out[[0, 2]] == 5).all()


def test_rows_that_lie_otherwise_are_refused():
    laid = arrays.laid_out(torch.ones(5, 16), in_tiles=False)
    with pytest.raises(RuntimeError, match="side by side"):
        arrays.multiply_at(torch.ones(5, 3).t(), laid, torch.empty(3, 16))
    with pytest.raises(RuntimeError, match=r"makes float32 of torch\.float32 was given torch\.float64"):
        arrays.multiply_at(torch.ones(3, 5).double(), laid, torch.empty(3, 16))


# --- loops ------------------------------------------------------------------------------------------------------------

CELLS = [
    {"kind": "elman"},
    {"kind": "gru"},
    {"kind": "gru", "reset": "after", "layer_norm": True},
    {"kind": "lstm"},
    {"kind": "lstm", "hidden_size": 20},  # ahead in panels, back by the library
    {"kind": "lstm", "peephole": "full"},
    {"kind": "lstm", "projection_size": 16, "coupled": True},
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell.values())))
def test_a_loop_says_the_same_with_panels_and_without(cell, monkeypatch):
    torch.manual_seed(3)
    network = Recurrent(12, cell={"hidden_size": 32, **cell}, bidirectional=True)
    network.path = "compiled"
    x, mask = torch.randn(11, 9, 12), torch.arange(9) < torch.randint(1, 10, (11, 1))
    made, laid = [], arrays.lay_out
    monkeypatch.setattr(arrays, "lay_out", lambda *given: made.append(laid(*given)) or made[-1])
    found = []
    for there in (True, False):
        if not there:
            monkeypatch.setattr(arrays, "laying_out_pays", lambda shape, dtype, products: False)
        output = network(x, mask).output
        found.append((output, *torch.autograd.grad(output.square().sum(), tuple(network.parameters()))))
        assert bool(made) is there
        made.clear()
    for ours, library in zip(*found, strict=True):
        torch.testing.assert_close(ours, library, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "cell", [{"kind": "lstm"}, {"kind": "gru", "layer_norm": True}, {"kind": "elman", "hidden_size": 20}]
)
def test_a_layer_says_the_same_where_the_library_lags_and_where_not(cell, monkeypatch):
    torch.manual_seed(4)
    network = Recurrent(16, cell={"hidden_size": 32, **cell}, bidirectional=True)
    network.path = "compiled"
    x = torch.randn(60, 9, 16, requires_grad=True)
    mask = torch.arange(9) < torch.randint(5, 10, (60, 1))
    made, derive, multiply_at = [], derived.derive, vectors.multiply_at
    monkeypatch.setattr(derived, "derive", lambda *given: made.append(given) or derive(*given))
    monkeypatch.setattr(vectors, "multiply_at", lambda *given: made.append(given) or multiply_at(*given))
    found = []
    for lags in (True, False):
        monkeypatch.setattr(blocks, "LIBRARY_LAGS", lags)
        output = network(x, mask).output
        found.append((output, *torch.autograd.grad(output.square().sum(), (x, *network.parameters()))))
        assert bool(made) is lags
        made.clear()
    for ours, library in zip(*found, strict=True):
        torch.testing.assert_close(ours, library, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps", [1, 9])  # for one step nothing is laid out
def test_a_repeated_product_and_its_derivative(steps):
    weight, x, total, bias = torch.randn(64, 48), torch.randn(21, 90)[:, 7:55], torch.randn(21, 64), torch.randn(64)
    repeated, gradient = Repeated(weight, steps), torch.randn(21, 64)
    assert (repeated._ahead is not None) is (repeated._behind is not None) is (steps > 1)
    before = total + x @ weight.t()
    repeated.add(x, total)
    torch.testing.assert_close(total, before, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(repeated.times(x, bias), x @ weight.t() + bias, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(repeated.back(gradient), gradient @ weight, rtol=1e-5, atol=1e-5)


def test_when_panels_are_worthwhile():
    shape, single = torch.Size((7, 32)), torch.float32
    assert compiled.panels_worthwhile(shape, single, 4) and not compiled.panels_worthwhile(shape, single, 3)
    assert not compiled.panels_worthwhile(shape, torch.float64, 9)
    assert not compiled.panels_worthwhile(torch.Size((32, 7)), single, 9)
    assert not compiled.panels_worthwhile(torch.Size((0, 32)), single, 9)


# --- weights ----------------------------------------------------------------------------------------------------------

PRECISIONS = ["float32", "bfloat16"]


def near(found, x, weight, precision, bias=0.0):
    kept = weight.bfloat16().double() if precision == "bfloat16" else weight.double()
    assert type(found) is torch.Tensor and found.dtype is torch.float32
    torch.testing.assert_close(found.double(), x.double() @ kept.t() + bias, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("width", [64, 70, 3])  # 70, 3: the last panel is filled up
@pytest.mark.parametrize("shape", [(5,), (3, 4), (0,), (40,)], ids=str)
def test_a_linear_layer(shape, width, precision):
    weight, bias, x = torch.randn(width, 37), torch.randn(width), torch.randn(*shape, 37)
    laid = TiledWeight.of(weight, precision)
    near(functional.linear(x, laid), x, weight, precision)
    near(functional.linear(x, laid, bias), x, weight, precision, bias.double())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_other_products_and_a_weights_rows(precision):
    weight, x, total = torch.randn(96, 40), torch.randn(5, 40), torch.randn(5, 32)
    laid = TiledWeight.of(weight, precision)
    rows = laid[32:64]
    near(functional.linear(x, rows), x, weight[32:64], precision)
    near(torch.mm(x, rows.t()), x, weight[32:64], precision)
    near(torch.addmm(total, x, rows.t()), x, weight[32:64], precision, total.double())
    assert laid[32:64] is rows and torch.equal(laid.t().t(), weight) and copy.deepcopy(laid) is laid


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_weight_that_torch_changed_is_laid_out_again(precision):
    weight = torch.nn.Parameter(torch.randn(33, 8))
    laid, x, bias = TiledWeight.of(weight, precision), torch.randn(2, 8), torch.randn(33)
    for _ in range(2):
        for one, plain in ((laid, weight), (laid[5:20], weight[5:20])):
            near(functional.linear(x, one), x, plain.detach(), precision)
        near(functional.linear(x, laid, bias), x, weight.detach(), precision, bias.double())
        with torch.no_grad():
            weight.add_(torch.randn(33, 8))
            bias.mul_(2)


def test_one_that_was_made_without_a_count_of_changes():
    with torch.inference_mode():
        weight, x = torch.randn(20, 8), torch.randn(2, 8)
        near(functional.linear(x, TiledWeight.of(weight, "float32")), x, weight, "float32")


def test_of_many_rows_the_product_is_torchs(monkeypatch):
    monkeypatch.setattr(vectors, "MOST_ROWS", 48)
    monkeypatch.setattr(blocks, "LIBRARY_LAGS", False)
    weight, x = torch.randn(64, 32), torch.randn(49, 32)
    laid = TiledWeight.of(weight, "bfloat16")
    assert torch.equal(functional.linear(x, laid), functional.linear(x, weight))
    near(functional.linear(x[:48], laid), x[:48], weight, "bfloat16")
    monkeypatch.setattr(blocks, "LIBRARY_LAGS", True)
    near(functional.linear(x, TiledWeight.of(weight, "bfloat16")), x, weight, "bfloat16")


def test_what_torch_refuses_is_refused():
    laid = TiledWeight.of(torch.randn(70, 64), "float32")
    for x, bias in (
        (torch.randn(4, 32), None),
        (torch.tensor(1.0), None),
        (torch.randn(4, 64, dtype=torch.float64), None),
        (torch.ones(4, 64, dtype=torch.int64), None),
        (torch.randn(4, 64), torch.zeros(3)),
    ):
        with pytest.raises(RuntimeError):
            functional.linear(x, laid, bias)


def test_several_threads_may_multiply_with_one_weight():
    laid, x, bias = TiledWeight.of(torch.randn(500, 128), "bfloat16"), torch.randn(5, 128), torch.randn(700)
    wanted = functional.linear(x, laid, bias[:500])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: functional.linear(x, laid, bias[:500]), range(500)))
    assert all(torch.equal(one, wanted) for one in found)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("size", [20, 32])
@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
def test_a_layer_of_such_weights(kind, size, precision):
    torch.manual_seed(7)
    network = Recurrent(24, cell={"kind": kind, "hidden_size": size}).eval()
    fast = copy.deepcopy(network)
    lay_out(fast, precision)
    assert all(isinstance(one, TiledWeight) for one in fast.parameters() if one.dim() == 2)
    state = tuple(0.1 * torch.randn(3, size) for _ in network.state_sizes)
    for steps in (1, 2, 5, 9):
        x = torch.randn(3, steps, 24)
        with torch.no_grad():
            exact, found = network(x, None, state).output, fast(x, None, state).output
        apart = (exact - found).abs().max()
        assert apart < (1e-5 if precision == "float32" else 2e-2)
        assert precision == "float32" or apart > 1e-5, "the weight is rounded"


def test_the_panels_of_a_loop_are_those_of_the_weight():
    laid = TiledWeight.of(torch.randn(64, 16), "float32")
    assert np.shares_memory(arrays.held(laid.t(), 9).numbers, laid.laid_out().numbers)
    assert not np.shares_memory(laid.laid_out().numbers, laid.whole.numpy())


def test_one_product_lays_out_a_small_weight_for_one_row_and_a_large_one_for_many(monkeypatch):
    monkeypatch.setattr(compiled, "library_lags", lambda _: True)
    monkeypatch.setattr(compiled, "tiles_found", lambda: True)
    small, large = torch.Size((64, 192)), torch.Size((512, 1024))
    many = compiled.PRODUCTS * compiled.STEP
    assert compiled.once_pays(small, torch.bfloat16, 1)
    assert not compiled.once_pays(large, torch.bfloat16, many - 1)
    assert compiled.once_pays(large, torch.bfloat16, many)
    assert not compiled.once_pays(small, torch.float32, 1), "a library multiplies a row in float32 as it lies"
