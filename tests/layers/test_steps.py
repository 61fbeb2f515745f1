"""A step of a search by compiled code is the step that torch's own words make, and torch.nn's where it has the same."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.layers import ATTENTIONS, CELLS
from unrolled.layers.kernels import compiled, steps
from unrolled.layers.kernels.tiled import TiledWeight
from unrolled.models.decoders.readout import Readout

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

CELL_KINDS = [
    {"kind": "lstm"},
    {"kind": "lstm", "coupled": True},
    {"kind": "lstm", "peephole": "diagonal"},
    {"kind": "lstm", "layer_norm": True},
    {"kind": "lstm", "projection_size": 3},
    {"kind": "lstm", "zoneout": 0.2},
    {"kind": "gru"},
    {"kind": "gru", "reset": "after"},
    {"kind": "gru", "reset": "after", "outer_bias": True},
    {"kind": "gru", "layer_norm": True},
    {"kind": "gru", "zoneout": 0.2},
    {"kind": "elman"},
    {"kind": "elman", "activation": "relu"},
]
SCORES = [
    {"kind": "dot"},
    {"kind": "scaled_dot"},
    {"kind": "bilinear"},
    {"kind": "additive", "hidden_size": 5},
    {"kind": "additive", "hidden_size": 17, "normalised": True},
    {"kind": "concat", "hidden_size": 20},
]


@pytest.fixture
def called(monkeypatch):
    """Names of the compiled steps that were made."""
    found = []
    for name in ("lstm", "gru_update", "look"):
        made = getattr(steps, name)
        monkeypatch.setattr(steps, name, lambda *given, name=name, made=made: (found.append(name), made(*given))[1])
    return found


def close(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.clone(), other, rtol=1e-5, atol=2e-6)


def both_ways(step, *given):
    """What ``step`` gives in inference mode, and without it."""
    with torch.no_grad():
        words = step(*given)
    with torch.inference_mode():
        return step(*given), words


def random_cell(settings, input_size, hidden_size):
    cell = CELLS.build({**settings, "hidden_size": hidden_size}, input_size).eval()
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return cell


@pytest.mark.parametrize("kind", CELL_KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
@given(rows=st.integers(1, 7), hidden=st.integers(1, 40), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=15)
def test_a_cells_step_is_that_of_its_equations(kind, rows, hidden, seed):
    torch.manual_seed(seed)
    cell = random_cell(kind, 4, hidden)
    state = tuple(torch.randn(rows, size) for size in cell.state_sizes)
    kept = [part.clone() for part in state]
    close(*both_ways(cell, 2 * torch.randn(rows, 4), state))
    close(state, kept)  # what was given is not written to


def test_an_lstms_step_is_that_of_torch(called):
    oracle, cell = torch.nn.LSTMCell(4, 9), random_cell({"kind": "lstm"}, 4, 9)
    for ours, name in ((cell.input_weight, "weight_ih"), (cell.hidden_weight, "weight_hh"), (cell.bias, "bias_ih")):
        getattr(oracle, name).data.copy_(ours)
    oracle.bias_hh.data.zero_()
    x, state = torch.randn(3, 4), (torch.randn(3, 9), torch.randn(3, 9))
    with torch.inference_mode():
        ours = cell(x, state)
    close(ours, oracle(x, state))
    assert called == ["lstm"]


@pytest.mark.parametrize("reset", ["before", "after"])
def test_a_grus_step_is_compiled(reset, called):
    cell = random_cell({"kind": "gru", "reset": reset}, 4, 9)
    close(*both_ways(cell, torch.randn(3, 4), (torch.randn(3, 9),)))
    assert called == ["gru_update"]


@pytest.mark.parametrize("kind", SCORES, ids=lambda kind: "-".join(map(str, kind.values())))
@given(rows=st.integers(1, 5), places=st.integers(1, 20), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=15)
def test_a_look_is_that_of_its_equations(kind, rows, places, seed):
    torch.manual_seed(seed)
    attention = ATTENTIONS.build(kind, 6, 6).eval()
    lengths = torch.randint(1, places + 1, (rows, 1))
    memory = attention.remember(torch.randn(rows, places, 6), torch.arange(places) < lengths)
    ours, words = both_ways(attention, 3 * torch.randn(rows, 6), memory)
    close(ours[:2], words[:2])
    assert (ours.weights[~memory.mask] == 0).all()
    close([ours.weights.sum(1)], [torch.ones(rows)])


def test_a_look_is_that_of_torch(called):
    attention = ATTENTIONS.build("scaled_dot", 6, 6)
    encoded, mask = torch.randn(4, 9, 6), torch.arange(9) < torch.tensor([[1], [4], [9], [7]])
    query = torch.randn(4, 6)
    with torch.inference_mode():
        context = attention(query, attention.remember(encoded, mask)).context
    wanted = functional.scaled_dot_product_attention(query.unsqueeze(1), encoded, encoded, mask.unsqueeze(1))
    close([context], [wanted.squeeze(1)])
    assert called == ["look"]


@given(rows=st.integers(1, 5), places=st.integers(1, 9), size=st.integers(1, 40))
@settings(deadline=None, max_examples=20)
def test_an_additive_score(rows, places, size):
    query, keys, vector = torch.randn(rows, size), torch.randn(rows, places, size), torch.randn(size)
    close([steps.additive_score(query, keys, vector)], [(query.unsqueeze(1) + keys).tanh() @ vector])


@given(rows=st.integers(1, 5), places=st.integers(1, 9), size=st.integers(1, 40), double=st.booleans())
@settings(deadline=None, max_examples=30)
def test_what_is_read_by_weights_and_what_meets_a_vector(rows, places, size, double):
    values, weights, vectors = torch.randn(rows, places, size), torch.randn(rows, places), torch.randn(rows, size)
    weights[:, 0] = 0
    if double:
        values, weights, vectors = values.double(), weights.double(), vectors.double()
    close([steps.read(weights, values)], [torch.einsum("rp,rps->rs", weights, values)])
    close([steps.meet(values, vectors)], [torch.einsum("rps,rs->rp", values, vectors)])
    strided = torch.randn(places, rows, size, dtype=values.dtype).transpose(0, 1)
    close([steps.read(weights, strided)], [torch.einsum("rp,rps->rs", weights, strided)])


@pytest.mark.parametrize("extra", [{"coverage": "neural"}, {"reach": "local_m"}, {"normaliser": "sparsemax"}])
def test_a_look_with_other_parts_is_theirs(extra):
    attention = ATTENTIONS.build({"kind": "bilinear", **extra}, 6, 5).eval()
    memory = attention.remember(torch.randn(3, 7, 5))
    queries = torch.randn(2, 3, 6)

    def twice():
        first = attention(queries[0], memory)
        return attention(queries[1], memory, first.state)

    ours, words = both_ways(twice)
    close(ours[:2], words[:2])


def test_weights_that_are_as_good_as_one_and_scores_beyond_any_exponent():
    attention = ATTENTIONS.build("dot", 2, 2)
    memory = attention.remember(torch.tensor([[[300.0, 0.0], [-300.0, 0.0], [299.0, 1.0]]]))
    ours, words = both_ways(attention, torch.tensor([[50.0, 0.0]]), memory)
    close(ours[:2], words[:2])
    assert ours.weights[0, 0] == 1 and ours.weights[0, 1] < 1e-37


def test_a_query_that_is_no_number_is_refused_in_a_search_too():
    attention = ATTENTIONS.build("dot", 2, 2)
    memory = attention.remember(torch.randn(1, 3, 2))
    with torch.inference_mode(), pytest.raises(UsageError, match="must be finite"):
        attention(torch.tensor([[float("nan"), 0.0]]), memory)


def test_a_memory_whose_parts_disagree_is_left_to_torch_which_refuses_it():
    attention = ATTENTIONS.build("dot", 4, 4)
    memory = attention.remember(torch.randn(3, 5, 4))
    query = torch.randn(3, 4)
    for wrong in (
        memory._replace(mask=torch.ones(3, 9, dtype=torch.bool)),
        memory._replace(keys=memory.keys[:1].clone(), values=memory.values[:1].clone()),
        memory._replace(values=memory.values[:, :2].clone()),
    ):
        with torch.inference_mode(), pytest.raises(RuntimeError):
            attention(query, wrong)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_state_of_one_row_for_many_is_no_state_of_theirs(kind):
    cell = random_cell({"kind": kind}, 4, 9)
    state = tuple(torch.randn(1, size) for size in cell.state_sizes)
    h = state[0].expand(5, -1).contiguous()
    ours, words = both_ways(cell.advance, cell.project(torch.randn(5, 4)), (h, *state[1:]))
    close(ours, words)


def test_threads_that_share_a_weight_may_give_it_other_biases():
    weight, x = torch.randn(40, 64), torch.randn(5, 64)
    laid = TiledWeight.of(weight, "float32")
    biases = [torch.randn(40) for _ in range(4)]

    def all_right(bias):
        wanted = x @ weight.t() + bias
        with torch.inference_mode():
            return all(torch.allclose(laid.rows(x, bias), wanted, atol=1e-3) for _ in range(300))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(all_right, biases))


@pytest.mark.parametrize("change", [torch.Tensor.double, lambda x: x.t().contiguous().t()], ids=["double", "turned"])
def test_other_tensors_are_left_to_torch(change):
    x = change(torch.randn(5, 7))
    with torch.inference_mode():
        assert not steps.plain(x)
        assert torch.equal(steps.tanh(x), x.tanh())


def test_what_could_be_trained_is_left_to_torch():
    x = torch.randn(3, 4, requires_grad=True)
    assert not steps.plain(x)
    steps.tanh(x).sum().backward()
    torch.testing.assert_close(x.grad, 1 - x.detach().tanh() ** 2)


def test_a_readout_squashes_alike():
    readout = Readout((4, 5))
    close(*([one] for one in both_ways(readout, (torch.randn(3, 4), torch.randn(3, 5)))))


@given(
    st.integers(1, 9), st.sampled_from([32, 48, 64]), st.sampled_from(["rows", "vector", "one", "strided", "double"])
)
@settings(deadline=None, max_examples=40)
def test_a_product_is_added_to_what_is_there(rows, width, shape):
    weight, x = torch.randn(width, 64), torch.randn(rows, 64)
    total = {
        "rows": torch.randn(rows, width),
        "vector": torch.randn(width),
        "one": torch.randn(width).expand(rows, width),
        "strided": torch.randn(rows, width + 3)[:, 1 : width + 1],
        "double": torch.randn(rows, width).double(),
    }[shape]
    kept = total.clone()
    laid = TiledWeight.of(weight, "float32")
    found = torch.addmm(total, x, laid.t()) if shape != "double" else laid.added(total, x)
    torch.testing.assert_close(found, (x @ weight.t() + total).float(), rtol=1e-5, atol=2e-5)
    assert torch.equal(total, kept)


def test_a_product_of_rows_that_lie_turned():
    weight, x = torch.randn(40, 64), torch.randn(64, 5).t()
    laid, bias = TiledWeight.of(weight, "float32"), torch.randn(40)
    for found in (functional.linear(x, laid, bias), laid.rows(x, bias)):
        torch.testing.assert_close(found, functional.linear(x, weight, bias), rtol=1e-5, atol=2e-5)
