"""A layer of compiled loops as one node: gradients in one call are those part by part, on one thread and on several."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from unrolled.layers import LSTM, Recurrent
from unrolled.layers.kernels import compiled

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled import blocks, threads
from unrolled.layers.kernels.loops import node

EVERYTHING = {"layer_norm": True, "recurrent_dropout": 0.3, "zoneout": 0.2}
CELLS = [
    {"kind": "elman"},
    {"kind": "gru"},
    {"kind": "gru", **EVERYTHING},
    {"kind": "gru", "reset": "after", "outer_bias": True},
    {"kind": "gru", "reset": "after", **EVERYTHING},
    {"kind": "lstm", "peephole": "diagonal"},
    {"kind": "lstm", "hidden_size": 17, "projection_size": 16, "layer_norm": True},
    {"kind": "lstm", "peephole": "full", "coupled": True, "projection_size": 16, **EVERYTHING},
]
every_cell = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell.values())))
every_type = pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])


@pytest.fixture(autouse=True)
def own_products(monkeypatch):
    """Every product is ours, as where a library lags."""
    monkeypatch.setattr(blocks, "LIBRARY_LAGS", True)


def gradients(network, given, half, wanted=True):
    """Output, last states and the gradients of all that has one."""
    x, mask, state = (one if one is None or not isinstance(one, torch.Tensor) else one.clone() for one in given)
    x.requires_grad_(wanted)
    network.zero_grad()
    torch.manual_seed(5)
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        output, ends = network(x, mask, state)
    (output.float().sin().sum() + sum(end.cos().sum() for end in ends)).backward()
    return [output.detach(), *(end.detach() for end in ends), x.grad, *(one.grad for one in network.parameters())]


def example(cell, *, state=False):
    torch.manual_seed(3)
    network = Recurrent(32, cell={"hidden_size": 32, **cell}, layers=2, bidirectional=True)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    x, lengths = torch.randn(60, 12, 32), torch.randint(1, 13, (60,))
    lengths[0] = 12
    first = tuple(torch.randn_like(zeros) for zeros in network.initial(60, x)) if state else None
    return network, (x, torch.arange(12) < lengths.unsqueeze(1), first)


@every_cell
@every_type
@pytest.mark.parametrize("state", [False, True], ids=["zeros", "given"])
def test_gradients_in_one_call_are_those_part_by_part(cell, half, state, monkeypatch):
    if half and not compiled.pairs_used():
        pytest.skip("this processor has no instruction for pairs of bfloat16")
    network, given = example(cell, state=state)
    asked, possible = [], node.possible
    monkeypatch.setattr(node, "possible", lambda *told: asked.append(possible(*told)) or asked[-1])
    at_once = gradients(network, given, half)
    assert asked == [not half or cell.get("hidden_size") != 17] * 4, "17 is no width of tiles"
    monkeypatch.setattr(node, "possible", lambda *_: False)
    for ours, parts in zip(at_once, gradients(network, given, half), strict=True):
        torch.testing.assert_close(ours, parts, rtol=2e-2 if half else 1e-4, atol=2e-2 if half else 1e-4)


@every_cell
@every_type
def test_two_threads_give_what_one_gives(cell, half, monkeypatch):
    network, given = example(cell)
    alone = gradients(network, given, half)
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "available", lambda: 2)
    jobs, together = [], threads.together
    monkeypatch.setattr(threads, "together", lambda told: jobs.append(len(told)) or together(told))
    both = gradients(network, given, half)
    assert jobs.count(2) >= 4, "a direction each, forward and back, of two layers"
    for one, two in zip(alone, both, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5)


@every_cell
def test_what_wants_no_gradient_gets_none(cell):
    network, given = example(cell)
    whole = gradients(network, given, half=False)
    for weight in (network.cells[0].input_weight, network.cells[3].hidden_weight):
        weight.requires_grad_(False)
        weight.grad = None
    found = gradients(network, given, half=False, wanted=False)
    states = 1 + len(network.state_sizes)
    assert found[states] is None
    names = ["", *(name for name, _ in network.named_parameters())]
    for name, one, other in zip(names, whole[states:], found[states:], strict=True):
        if name in ("", "cells.0.input_weight", "cells.3.hidden_weight"):
            assert other is None
        else:
            assert torch.equal(one, other), name


@pytest.mark.parametrize("lags", [False, True])
def test_two_threads_know_of_inference_mode(lags, monkeypatch):
    monkeypatch.setattr(blocks, "LIBRARY_LAGS", lags)
    network, given = example({"kind": "lstm"})
    network.eval()
    with torch.inference_mode():
        alone = network(*given).output
        monkeypatch.setattr(threads, "LEAST", 1)
        monkeypatch.setattr(threads, "available", lambda: 2)
        both = network(*given).output
    assert both.is_inference() and (both - alone).abs().max() < 1e-5


@every_cell
@every_type
def test_another_default_device_changes_nothing(cell, half):
    network, given = example(cell, state=True)
    expected = gradients(network, given, half)
    with torch.device("meta"):
        found = gradients(network, given, half)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
def test_two_threads_make_products_that_are_torchs(kind, monkeypatch):
    """In float64 they are, on every machine: on a thread of their own they want no graph either."""
    network, given = example({"kind": kind})
    network, given = network.double(), (given[0].double(), *given[1:])
    alone = gradients(network, given, half=False)
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(threads, "available", lambda: 2)
    for one, two in zip(alone, gradients(network, given, half=False), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


def lying_otherwise(tensor, how):
    """The same numbers, or one of them everywhere, in memory as a parametrization may leave them."""
    if how == "expanded":
        return tensor[:1].expand_as(tensor) if tensor.dim() == 1 else tensor[:, :1].expand_as(tensor)
    wide = torch.zeros(*(2 * size for size in tensor.shape))
    view = wide[tuple(slice(None, None, 2) for _ in tensor.shape)]
    return view.copy_(tensor)


@every_cell
@pytest.mark.parametrize("how", ["strided", "expanded"])
def test_weights_may_lie_in_memory_as_they_like(cell, how):
    network, (x, mask, _) = example(cell)
    weights = {name: lying_otherwise(one.detach(), how).requires_grad_() for name, one in network.named_parameters()}
    found = []
    for network.path in ("plain", "compiled"):
        torch.manual_seed(5)
        output = torch.func.functional_call(network, weights, (x, mask)).output
        found.append((output, *torch.autograd.grad(output.sin().sum(), tuple(weights.values()))))
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-3)


def test_a_packed_sequence_may_lie_in_memory_as_it_likes():
    packed = pack_padded_sequence(torch.randn(9, 5, 32), torch.tensor([9, 7, 7, 3, 1]))
    layer = LSTM(32, 64)
    expected = torch.autograd.grad(layer(packed)[0].data.sum(), tuple(layer.parameters()))
    turned = PackedSequence(packed.data.t().contiguous().t(), *packed[1:])
    found = torch.autograd.grad(layer(turned)[0].data.sum(), tuple(layer.parameters()))
    for one, other in zip(expected, found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("cell", [{"kind": "lstm"}, {"kind": "gru", "layer_norm": True}])
def test_a_penalty_on_gradients_is_not_lost(cell):
    """As it was without a word, where no gradient came in that has a graph."""
    network, (x, mask, _) = example(cell)
    x.requires_grad_()
    loss = network(x, mask).output.sum()
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="path = 'plain'"):
        (loss + grad.square().sum()).backward()
    network.path = "plain"
    (grad,) = torch.autograd.grad(network(x, mask).output.sum(), x, create_graph=True)
    assert torch.autograd.grad(grad.square().sum(), network.cells[0].hidden_weight)[0].abs().max() > 0
