"""Which path is chosen, and the parts of the fast ones: the packed order, the still memory, deferred gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import UsageError
from unrolled.layers import CELLS, Recurrent
from unrolled.layers.kernels import choose, compiled
from unrolled.layers.kernels.deferred import Deferred
from unrolled.layers.kernels.order import Order, order_of
from unrolled.layers.kernels.pair import pairable

CPU = torch.device("cpu")


def path_of(cell, lengths, dtype=torch.float32, autocast=False, size=256):
    x = torch.zeros(len(lengths), 8, size, dtype=dtype)
    order = Order(len(lengths), 8, lengths, CPU)
    cell = {"hidden_size": size, **({"kind": cell} if isinstance(cell, str) else cell)}
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        return choose.choose(CELLS.build(cell, size), x, order)


def test_the_path_follows_from_cell_type_and_padding():
    after = {"kind": "gru", "reset": "after"}
    assert path_of("lstm", [8] * 16) == path_of("lstm", [5] * 16, autocast=True, size=250) == "padded"
    assert path_of("lstm", [8] * 16, autocast=True) == ("compiled" if compiled.tiles_found() else "padded")
    assert path_of("lstm", [8] * 15) == path_of("lstm", [8] * 15 + [7]) == "compiled"
    assert path_of("lstm", [8] * 16, torch.float64) == "compiled"
    assert path_of({"kind": "lstm", "coupled": True}, [8] * 16) == "compiled"
    assert path_of({"kind": "lstm", "peephole": True}, [8] * 16, autocast=True) == "compiled"
    assert {path_of(cell, [8, 8], autocast=auto) for cell in ("gru", after, "elman") for auto in (False, True)} == {
        "compiled"
    }


def test_without_a_product_to_call_the_loop_is_one_of_torch(monkeypatch):
    monkeypatch.setattr(compiled, "product_found", lambda dtype: dtype is torch.float32)
    assert path_of("gru", [8, 8]) == "compiled"
    assert path_of("gru", [8, 8], autocast=True) == "whole"
    monkeypatch.setattr(compiled, "product_found", lambda dtype: False)
    assert path_of("gru", [8, 8]) == "whole"


def test_a_path_that_the_cell_does_not_have_is_refused():
    network = Recurrent(2, cell={"kind": "gru", "hidden_size": 5})
    network.path = "packed"
    with pytest.raises(
        UsageError, match=r"the cell GRU cannot run by the path 'packed'. Possible: plain, whole, compiled."
    ):
        network(torch.zeros(3, 7, 2))


def test_a_cell_without_a_kernel_runs_by_the_plain_loop():
    class Other(CELLS["lstm"]):
        """Another cell, of which no kernel knows."""

        def move(self, projected, state, seen):
            return tuple(tensor * 0.5 for tensor in super().move(projected, state, seen))

    torch.manual_seed(0)
    network = Recurrent(2, cell={"kind": "lstm", "hidden_size": 5})
    network.cells[0] = Other(2, hidden_size=5)
    x, mask = torch.randn(3, 8, 2), torch.arange(8) < torch.tensor([[8], [5], [2]])
    assert choose.choose(network.cells[0], x, order_of(mask, x)) == "plain"
    output, _ = network(x, mask)
    loop, moving = network.loop(), network.initial(3, x)
    for t in range(8):
        stepped, moving = loop.advance(loop.project(x[:, t]), moving)
        torch.testing.assert_close(stepped[t < torch.tensor([8, 5, 2])], output[t < torch.tensor([8, 5, 2]), t])
    output.sum().backward()
    assert network.cells[0].hidden_weight.grad.abs().sum() > 0


def test_both_directions_go_in_one_loop_where_their_weights_fit_in_the_cache():
    def paired(size, dtype=torch.float32, **cell):
        cells = [CELLS.build({"kind": "gru", "hidden_size": size, **cell}, 2) for _ in range(2)]
        x = torch.zeros(60, 2, dtype=dtype)
        return pairable(cells, x, Order(64, 4, [4] + [1] * 63, CPU), "whole")

    assert paired(128)
    assert not paired(256)
    assert not paired(128, layer_norm=True)
    assert paired(128, zoneout=0.1)


def test_a_step_of_few_rows_or_few_weights_is_multiplied_in_float32():
    def type_of(rows, size, path="whole"):
        cell = CELLS.build({"kind": "gru", "hidden_size": size}, 2)
        return choose.step_type(cell, torch.zeros(1), Order(rows, 3, [3] * rows, CPU), path)

    assert type_of(64, 256) is torch.float32  # no autocast: as it is
    with torch.autocast("cpu", torch.bfloat16):
        assert [type_of(64, 256), type_of(16, 256), type_of(4, 256)] == [torch.bfloat16] * 2 + [torch.float32]
        assert [type_of(64, 64), type_of(200, 64)] == [torch.float32, torch.bfloat16]
        assert [type_of(8, 64, "compiled"), type_of(9, 64, "compiled")] == [torch.float32, torch.bfloat16]


def test_what_is_multiplied_in_pairs_is_in_bfloat16_from_one_row_on(monkeypatch):
    def type_of(steps, path, size=64):
        cell = CELLS.build({"kind": "gru", "hidden_size": size}, 2)
        return choose.step_type(cell, torch.zeros(1), Order(1, steps, [steps], CPU), path)

    monkeypatch.setattr(compiled, "tiles_found", lambda: True)
    with torch.autocast("cpu", torch.bfloat16):
        for pairs, wanted in ((True, torch.bfloat16), (False, torch.float32)):
            monkeypatch.setattr(compiled, "pairs_used", lambda pairs=pairs: pairs)
            assert type_of(4, "compiled") is wanted
            assert type_of(4, "whole") is type_of(3, "compiled") is type_of(4, "compiled", 50) is torch.float32
    assert type_of(4, "compiled") is torch.float32  # no autocast: as it is


@pytest.mark.parametrize("path", ["whole", "compiled", "padded"])
def test_bfloat16_paths_of_the_lstm_stay_near_float32(path):
    torch.manual_seed(4)
    network = Recurrent(3, cell={"kind": "lstm", "hidden_size": 5}, bidirectional=True)
    x, mask = torch.randn(3, 8, 3), torch.arange(8) < torch.tensor([[8], [5], [2]])
    exact, ends = network(x, mask)
    weights = tuple(network.parameters())
    wanted = torch.autograd.grad(exact.sum() + ends[1].sum(), weights)
    network.path = path
    with torch.autocast("cpu", torch.bfloat16):
        near, near_ends = network(x, mask)
    assert (near.dtype, near_ends[1].dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(near.float(), exact, rtol=0, atol=0.01)
    torch.testing.assert_close(near_ends, ends, rtol=0, atol=0.02)
    for grad, right in zip(torch.autograd.grad(near.sum() + near_ends[1].sum(), weights), wanted, strict=True):
        assert (grad - right).norm() <= 0.02 * right.norm() + 1e-3


@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
def test_the_memory_of_a_padded_block_stands_still_to_the_last_bit(autocast):
    """A row with much padding behind it ends in the state it has alone, however long it stands."""
    torch.manual_seed(4)
    network = Recurrent(3, cell={"kind": "lstm", "hidden_size": 5})
    network.path = "padded"
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=3.0)
    x = torch.randn(2, 300, 3)
    near, far = (torch.arange(300) < torch.tensor([[length], [2]]) for length in (3, 300))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        short, long = network(x, near).state, network(x, far).state
    assert all(torch.equal(one[1], other[1]) for one, other in zip(short, long, strict=True))


@settings(deadline=None, max_examples=20)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_packing_turning_and_their_inverses(lengths):
    batch = len(lengths)
    order = Order(batch, 6, lengths, CPU)
    x = torch.arange(1.0, batch * 12 + 1).view(batch, 6, 2).requires_grad_()
    mask = torch.arange(6) < torch.tensor(lengths).unsqueeze(1)
    packed = order.pack(x)
    assert order.size == len(packed) == sum(lengths) == sum(order.counts)
    assert order.even == (len(set(lengths)) == 1)
    assert torch.equal(order.unpack(packed), x * mask.unsqueeze(2))
    turned = order.unpack(order.turn(packed))
    for row, length in enumerate(lengths):
        assert torch.equal(turned[row, :length], x[row, :length].flip(0))
        assert torch.equal(order.unsort(order.last(packed))[row], x[row, length - 1])
        assert torch.equal(order.unpack(order.spread(order.sort(x[:, 0])))[row, length - 1], x[row, 0])
    assert torch.equal(order.turn(order.turn(packed)), packed)
    block = order.pad(packed)
    assert torch.equal(order.unpad(block), packed)
    assert (block[order.padding()] == 0).all()
    (grad,) = torch.autograd.grad((order.unpack(order.turn(packed)) ** 2).sum(), x)
    assert torch.equal(grad, 2 * x * mask.unsqueeze(2))


def test_deferred_products_have_the_gradient_of_plain_ones():
    torch.manual_seed(6)
    weight, x = torch.randn(3, 2, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    mixed = torch.randn(3, 2, dtype=torch.float64)

    def chain(weight, x, product):
        for _ in range(3):
            x = (product(weight, x) @ mixed).tanh()
        return x

    def deferred(weight, x):
        held = Deferred(weight)
        return chain(weight, x, lambda _, given: held.product(given))

    given_tensors = (weight.requires_grad_(), x.requires_grad_())
    wanted = chain(*given_tensors, lambda weight, given: given @ weight.T)
    torch.testing.assert_close(deferred(*given_tensors), wanted)
    assert torch.autograd.gradcheck(deferred, given_tensors)


def test_a_pass_that_never_reaches_the_weight_leaves_nothing_to_the_next():
    weight = torch.tensor([[2.0]], requires_grad=True)
    x = torch.tensor([[3.0]], requires_grad=True)
    held = Deferred(weight)
    y = held.product(held.product(x))
    (only_x,) = torch.autograd.grad(y, x, retain_graph=True)
    (first,) = torch.autograd.grad(y, weight, retain_graph=True)
    (again,) = torch.autograd.grad(y, weight)
    assert only_x.item() == 4.0
    assert first.item() == again.item() == 12.0


def test_deferred_products_under_autocast_give_a_float32_gradient():
    weight = torch.randn(3, 2, requires_grad=True)
    held = Deferred(weight, torch.bfloat16)
    x = torch.ones(4, 2)
    y = held.product(x)
    y.sum().backward()
    assert (y.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(weight.grad, torch.full((3, 2), 4.0))


@pytest.mark.parametrize("cell", ["lstm", "gru", {"kind": "gru", "reset": "after"}, "elman"], ids=str)
def test_a_loop_under_autocast_stays_near_float32(cell):
    torch.manual_seed(8)
    part = {"hidden_size": 5, **({"kind": cell} if isinstance(cell, str) else cell)}
    network = Recurrent(3, cell=part, layers=2)
    x = torch.randn(4, 6, 3)
    weights = tuple(network.parameters())
    wanted = network(x).output
    grads = torch.autograd.grad(wanted.sum(), weights)
    with torch.autocast("cpu", torch.bfloat16):
        loop, moving, outputs = network.loop(), network.initial(4, x), []
        for projected in loop.project(x).unbind(1):
            output, moving = loop.advance(projected, moving)
            outputs.append(output)
        near = torch.stack(outputs, 1)
    torch.testing.assert_close(near.float(), wanted, rtol=0, atol=0.02)
    for grad, right in zip(torch.autograd.grad(near.sum(), weights), grads, strict=True):
        assert grad.dtype is torch.float32
        assert (grad - right).norm() <= 0.03 * right.norm() + 1e-3
