"""Products of bfloat16 by tile registers or by pairs, beside float64; the weights that make them, and their uses."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.layers import Recurrent
from unrolled.layers.kernels import choose, compiled, layer
from unrolled.layers.kernels.compiled import arrays
from unrolled.layers.kernels.compiled.arrays import array, held, laid_out
from unrolled.layers.kernels.tiled import MOST_ROWS, TiledWeight, lay_out

if not compiled.tiles_found():
    pytest.skip("this processor has neither amx_bf16, or the system keeps it, nor avx512_bf16", allow_module_level=True)

from unrolled.layers.kernels.compiled import amx, blocks, tiles, vectors

THERE = [way for way, there in (("registers", amx.found()), ("pairs", blocks.HAS_PAIRS)) if there]


@pytest.fixture(autouse=True, params=THERE)
def way(request, monkeypatch):
    """How the processor multiplies; where it knows both, registers come first."""
    if request.param == "pairs":
        for module in (amx, tiles):
            monkeypatch.setattr(module, "found", lambda: False)
    return request.param


def multiply(x, made, out, keep):
    """out = x · weight, as a compiled loop makes it."""
    given = x.view(torch.uint16).numpy(), made, out.numpy(), keep
    tiles.multiply_tiles(*given) if isinstance(made, tiles.Tiles) else vectors.multiply_panels(*given, 1)


def numbers(*shape):
    """Random bfloat16 numbers."""
    return torch.randn(shape).bfloat16()


def whole_tiles(most=4):
    return st.integers(1, most).map(lambda count: 32 * count)


@given(st.integers(1, 100), whole_tiles(), whole_tiles(12), st.booleans(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_product_is_that_of_exact_numbers(rows, inner, width, turned, keep, again):
    x, weight, before = numbers(rows, inner + 32)[:, :inner], numbers(inner, width), torch.randn(rows, width + 3)
    wanted = x.double() @ weight.double() + (before[:, :width].double() if keep else 0)
    made = laid_out(weight.t().contiguous().t() if turned else weight, in_tiles=True)
    for _ in range(1 + again):  # the columns come from the other end the second time
        out = before.clone()
        multiply(x, made, out[:, :width], keep)
    torch.testing.assert_close(out[:, :width].double(), wanted, rtol=1e-6, atol=2e-6 * inner)
    assert torch.equal(out[:, width:], before[:, width:]), "nothing beside the columns is written"


def test_a_bias_is_added_to_every_row():
    x, weight, bias, out = numbers(45, 64), numbers(64, 96), torch.randn(96), torch.empty(45, 96)
    made = laid_out(weight, in_tiles=True)
    told = array(x), made, bias.numpy(), out.numpy()
    tiles.project_tiles(*told) if isinstance(made, tiles.Tiles) else vectors.project_panels(*told, 1)
    torch.testing.assert_close(out.double(), x.double() @ weight.double() + bias.double(), rtol=1e-6, atol=1e-5)


def test_a_large_weight_is_gone_through_in_groups_of_columns():
    x, weight, out = numbers(200, 1024), numbers(1024, 640), torch.empty(200, 640)
    assert 2 * tiles.GROUP < 2 * 1024 * 640
    multiply(x, laid_out(weight, in_tiles=True), out, False)
    torch.testing.assert_close(out.double(), x.double() @ weight.double(), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 16, 17, 32, 50])
def test_a_row_does_not_hang_on_the_rows_beside_it(rows):
    torch.manual_seed(1)
    x, made = numbers(130, 64), laid_out(numbers(64, 64), in_tiles=True)
    together, some = torch.empty(130, 64), torch.empty(rows, 64)
    multiply(x, made, together, False)
    multiply(x[7 : 7 + rows].contiguous(), made, some, False)
    assert torch.equal(together[7 : 7 + rows], some)


def test_without_permission_no_tile_is_made(monkeypatch):
    monkeypatch.setattr(tiles, "found", lambda: False)
    monkeypatch.setattr(tiles, "HAS_PAIRS", False)
    with pytest.raises(RuntimeError, match="without them"):
        laid_out(numbers(32, 32), in_tiles=True)


@pytest.mark.parametrize(
    "shape, dtype, products, expected",
    [
        ((32, 64), torch.bfloat16, 4, True),
        ((32, 64), torch.bfloat16, 3, False),  # laying out would not pay
        ((32, 48), torch.bfloat16, 9, False),  # half a pair of tiles
        ((30, 64), torch.bfloat16, 9, False),
        ((0, 64), torch.bfloat16, 9, False),
        ((32, 64), torch.float32, 9, False),
    ],
)
def test_which_weights_are_laid_out_for_a_loop(shape, dtype, products, expected, way):
    weight = torch.empty(shape, dtype=dtype)
    assert compiled.tiles_worthwhile(weight.shape, dtype, products) is expected
    found = held(weight, products)
    in_tiles = isinstance(found, tiles.Tiles) if way == "registers" else found.kind == blocks.PAIRS
    assert in_tiles is expected


CELLS = [
    {"kind": "elman"},
    {"kind": "gru"},
    {"kind": "gru", "reset": "after"},
    {"kind": "gru", "reset": "after", "layer_norm": True},
    {"kind": "lstm"},
    {"kind": "lstm", "peephole": "full"},
    {"kind": "lstm", "projection_size": 64, "coupled": True},
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell.values())))
def test_a_loop_says_the_same_with_tiles_and_without(cell, monkeypatch):
    for module in (choose, layer):  # however few rows
        monkeypatch.setattr(module, "step_type", lambda cell, x, order, path: choose.product_type(x))
    torch.manual_seed(3)
    network = Recurrent(32, cell={**cell, "hidden_size": 64}, bidirectional=True)
    network.path = "compiled"
    x, mask = torch.randn(40, 9, 32), torch.arange(9) < torch.randint(1, 10, (40, 1))
    found = []
    for there in (True, False):
        if not there:
            monkeypatch.setattr(arrays, "laying_out_pays", lambda shape, dtype, products: False)
        with torch.autocast("cpu", torch.bfloat16):
            output = network(x, mask).output
        found.append((output, *torch.autograd.grad(output.float().square().sum(), tuple(network.parameters()))))
    for ours, library in zip(*found, strict=True):
        assert (ours - library).norm() <= 4e-3 * library.norm()


@pytest.mark.parametrize("lags", [False, True])
def test_the_gradient_of_the_input_is_one_of_many_rows(lags, monkeypatch):
    from unrolled.layers.kernels.gradients import input_gradient

    monkeypatch.setattr(compiled, "library_lags", lambda dtype: lags)
    gradient, weight = numbers(300, 96), numbers(96, 64)
    found = input_gradient(gradient, weight)
    assert found.dtype is (torch.float32 if lags else torch.bfloat16)
    near = {"rtol": 1e-5, "atol": 1e-4} if lags else {"rtol": 1e-2, "atol": 0.2}
    torch.testing.assert_close(found.double(), gradient.double() @ weight.double(), **near)


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [64, 70])  # 70: the last tiles are filled up
@pytest.mark.parametrize("shape", [(5,), (40,), (3, 4), (0,)], ids=str)
def test_a_linear_layer_of_a_tiled_weight(width, shape):
    weight, bias, x = torch.randn(width, 96), torch.randn(width), torch.randn(*shape, 96)
    tiled = TiledWeight.of(weight)
    for added in (None, bias):
        found = functional.linear(x, tiled, added)
        assert type(found) is torch.Tensor and found.dtype is torch.float32 and found.shape == (*shape, width)
        exact = functional.linear(x.bfloat16().double(), weight.bfloat16().double())
        torch.testing.assert_close(
            found.double(), exact + (0 if added is None else added.double()), rtol=1e-5, atol=1e-4
        )


def test_other_products_with_a_tiled_weight_and_its_rows():
    weight, x, total = torch.randn(96, 64), torch.randn(5, 64), torch.randn(5, 32)
    tiled = TiledWeight.of(weight)
    rows = tiled[32:64]
    given, rounded = x.bfloat16().double(), weight.bfloat16().double()
    exact = given @ rounded[32:64].t()
    for found, wanted in (
        (functional.linear(x, rows), exact),
        (torch.mm(x, rows.t()), exact),
        (torch.addmm(total, x, rows.t()), exact + total.double()),
        (
            functional.linear(x, tiled[64:][:32].to(torch.bfloat16)),
            x.bfloat16().double() @ weight[64:].bfloat16().double().t(),
        ),
    ):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4)
    assert tiled[32:64] is rows and torch.equal(tiled.t().t(), weight)


def test_whatever_else_is_done_to_a_tiled_weight_is_done_to_a_plain_one():
    weight, x = torch.randn(64, 32), torch.randn(4, 64)
    tiled = TiledWeight.of(weight)
    for found, wanted in (
        (tiled[3], weight[3]),
        (tiled[::2], weight[::2]),
        (tiled.sum(), weight.sum()),
        (functional.embedding(torch.tensor([5, 1]), tiled), weight[[5, 1]]),
        (x @ tiled, x @ weight),
        (torch.mm(x, tiled), x @ weight),
        (tiled.double(), weight.double()),
    ):
        assert torch.equal(found, wanted)
    many = torch.randn(MOST_ROWS + 1, 32)
    if tiled.way.most_rows == MOST_ROWS:
        assert torch.equal(functional.linear(many, tiled), functional.linear(many, weight))
    else:  # where the library's product of many rows is slower too
        exact = many.bfloat16().double() @ weight.bfloat16().double().t()
        torch.testing.assert_close(functional.linear(many, tiled).double(), exact, rtol=1e-5, atol=1e-5)
    asked = torch.randn(2, 32, requires_grad=True)
    functional.linear(asked, tiled).sum().backward()
    torch.testing.assert_close(asked.grad, weight.sum(0).expand(2, 32))


def test_a_weight_in_two_places_stays_one_and_others_are_left():
    module = torch.nn.ModuleDict(
        {"one": torch.nn.Linear(32, 7), "other": torch.nn.Linear(32, 7), "odd": torch.nn.Linear(9, 7)}
    )
    module["other"].weight = module["one"].weight
    data = module["one"].weight.data_ptr()
    lay_out(module)
    assert module["one"].weight is module["other"].weight and isinstance(module["one"].weight, TiledWeight)
    assert not isinstance(module["odd"].weight, TiledWeight) and not isinstance(module["one"].bias, TiledWeight)
    assert module["one"].weight.data_ptr() == data, "its numbers are not copied"


def test_a_bias_of_another_call_is_another_one():
    tiled, x = TiledWeight.of(torch.randn(33, 32)), torch.randn(2, 32)
    first, second = torch.zeros(33), torch.ones(33)
    torch.testing.assert_close(
        functional.linear(x, tiled, second) - functional.linear(x, tiled, first), torch.ones(2, 33)
    )


@pytest.mark.parametrize("steps", [1, 9])  # for one step nothing is laid out
def test_a_repeated_product_and_its_derivative(steps):
    from unrolled.layers.kernels.repeated import Repeated

    weight, x, total, bias = numbers(64, 96), numbers(21, 200)[:, 7:103], torch.randn(21, 64), torch.randn(64)
    product, gradient = Repeated(weight, steps), numbers(21, 64)
    in_tiles = product._ahead is not None
    assert in_tiles is (steps > 1)
    exact, before = x.double() @ weight.double().t(), total.double()
    product.add(x, total)
    near = {"rtol": 1e-5, "atol": 1e-4} if in_tiles else {"rtol": 1e-2, "atol": 0.2}  # mm rounds its result
    torch.testing.assert_close(total.double(), before + exact, **near)
    torch.testing.assert_close(product.times(x, bias).double(), exact + bias.double(), **near)
    torch.testing.assert_close(product.back(gradient).double(), gradient.double() @ weight.double(), **near)
    with pytest.raises(RuntimeError, match="side by side"):
        Repeated(weight, 9).back(gradient.t().contiguous().t())
    with pytest.raises(RuntimeError, match=r"float32 of torch\.bfloat16"):
        Repeated(weight, 9).back(gradient.float())


def test_what_torch_refuses_a_tiled_weight_refuses():
    tiled = TiledWeight.of(torch.randn(70, 64))
    for x, bias in (
        (torch.randn(4, 32), None),
        (torch.randn(4, 128), None),
        (torch.tensor(1.0), None),
        (torch.randn(4, 64, dtype=torch.float64), None),
        (torch.ones(4, 64, dtype=torch.int64), None),
        (torch.randn(4, 64), torch.zeros(3)),
        (torch.randn(4, 64), torch.zeros(90)),
    ):
        with pytest.raises(RuntimeError):
            functional.linear(x, tiled, bias)
    with pytest.raises(RuntimeError):
        torch.mm(torch.randn(2, 3, 64), tiled.t())


def test_rounding_a_weight_leaves_it_exact():
    weight, x = torch.randn(70, 64), torch.randn(3, 64)
    tiled = TiledWeight.of(weight)
    rounded = tiled.to(torch.bfloat16)
    functional.linear(x, rounded[5:20])
    functional.linear(x, rounded)
    assert torch.equal(tiled[5:20], weight[5:20]) and torch.equal(tiled.to(torch.float32), weight)
    assert torch.equal(rounded.to(torch.float32), weight.bfloat16().float())
    assert torch.equal(tiled.to("cpu", torch.bfloat16), weight.bfloat16())
    assert copy.deepcopy(tiled) is tiled


def test_several_threads_may_multiply_with_one_weight():
    torch.manual_seed(6)
    tiled, x = TiledWeight.of(torch.randn(1000, 512)), torch.randn(5, 512)
    bias = torch.randn(1500)
    wanted = functional.linear(x, tiled, bias[:1000])
    with ThreadPoolExecutor(4) as pool:  # each with a bias of its own, which goes when its product is done
        found = list(pool.map(lambda _: functional.linear(x, tiled, bias[:1000]), range(2000)))
    assert all(torch.equal(one, wanted) for one in found)


@pytest.mark.parametrize("size", [50, 64])
@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
def test_a_layer_of_tiled_weights_in_float32_and_under_autocast(kind, size):
    torch.manual_seed(7)
    network = Recurrent(96, cell={"kind": kind, "hidden_size": size}).eval()
    fast = copy.deepcopy(network)
    lay_out(fast)
    state = tuple(0.1 * torch.randn(3, size) for _ in network.state_sizes)
    for steps in (1, 2, 5, 9):
        x = torch.randn(3, steps, 96)
        for autocast in (False, True):
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                exact, found = network(x, None, state), fast(x, None, state)
            torch.testing.assert_close(found.output.float(), exact.output.float(), rtol=0, atol=0.03)
            stepped = fast.step(x[:, 0], state)[0]
            torch.testing.assert_close(stepped, network(x[:, :1], None, state).output[:, 0], rtol=0, atol=0.03)
