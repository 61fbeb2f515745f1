"""A search's step in one compiled call gives what the parts give one by one, number by number."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.tiled import Precision
from unrolled.models import Seq2Seq, TorchStepper
from unrolled.models.at_once import AtOnce
from unrolled.models.decoders import QueryAfter
from unrolled.models.stepper import tiled

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled.amx import found as in_registers

PRECISIONS = ["float32", pytest.param("bfloat16", marks=pytest.mark.skipif(in_registers(), reason="tiles, no panels"))]
LSTM = {"kind": "lstm", "hidden_size": 32}
SYMBOLS = 57  # which fill no panel


def network(decoder: dict[str, Any] | None = None, *, symbols: int = SYMBOLS, **others: Any) -> Seq2Seq:
    torch.manual_seed(5)
    whole = {"kind": "query_after", "cell": LSTM, "attention": "bilinear", **(decoder or {})}
    encoder = {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 16}, "bidirectional": True}
    return Seq2Seq(symbols, symbols, **{"embedding_size": 64, "encoder": encoder, "decoder": whole, **others}).eval()


def sources(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one to seven symbols."""
    lengths = torch.arange(rows) % 7 + 1
    mask = torch.arange(7) < lengths.unsqueeze(1)
    return torch.randint(4, SYMBOLS, mask.shape).masked_fill(~mask, 0), mask


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("rows", [1, 7, 150])  # the last of which are said in parts
@pytest.mark.parametrize(
    "decoder",
    [{"input_feeding": True}, {"input_feeding": False}, {"attention": "dot"}, {"readout_size": 64}],
    ids=["feeding", "not", "dot", "another size"],
)
def test_every_number_is_that_of_the_parts(precision: Precision, rows: int, decoder: dict[str, Any]) -> None:
    model = tiled(network(decoder), precision)
    at_once = AtOnce.of(model)
    assert at_once is not None
    with torch.inference_mode():
        state = model.start(*sources(rows))
        last = torch.full((rows,), BEGIN)
        for k in (1, 3, 57):
            wanted, found = model.offer(last, state, k), at_once.offer(last, state, k)
            assert found is not None
            for one, other in zip((*found[:3], *found.state), (*wanted[:3], *wanted.state), strict=True):
                assert torch.equal(one, other) and one.dtype is other.dtype
            state, last = found.state, found.ids[:, 0].contiguous()


def test_where_one_position_is_made_of_several_symbols() -> None:
    model = tiled(
        network(encoder={"kind": "pyramidal", "cell": {"kind": "lstm", "hidden_size": 16}, "layers": 2}), "float32"
    )
    at_once = AtOnce.of(model)
    assert at_once is not None and model.encoder.reduction > 1
    with torch.inference_mode():
        state, last = model.start(*sources(3)), torch.full((3,), BEGIN)
        wanted, found = model.offer(last, state, 2), at_once.offer(last, state, 2)
    assert found is not None and torch.equal(found.weights, wanted.weights) and found.weights.shape == (3, 7)


@pytest.mark.parametrize(
    ("decoder", "others"),
    [
        ({"cell": {"kind": "gru", "hidden_size": 32}}, {}),
        ({"cell": {**LSTM, "peephole": True}}, {}),
        ({"cell": {**LSTM, "zoneout": 0.1}}, {}),
        ({"cell": {**LSTM, "layer_norm": True}}, {}),
        ({"layers": 2}, {}),
        ({"attention": "additive"}, {}),
        ({"attention": "scaled_dot"}, {}),
        ({"attention": {"kind": "bilinear", "coverage": "sum"}}, {}),
        ({"attention": {"kind": "bilinear", "reach": "local_m"}}, {}),
        ({"attention": {"kind": "bilinear", "normaliser": "sparsemax"}}, {}),
        ({"kind": "query_before", "attention": "additive"}, {}),
        ({}, {"copy": True}),
        ({}, {"embedding_scale": "root"}),
        ({}, {"tie": "decoder"}),  # of another size than the output
        ({}, {"alignment": "monotonic"}),
    ],
    ids=lambda settings: str(settings),
)
def test_other_models_go_part_by_part(decoder: dict[str, Any], others: dict[str, Any]) -> None:
    assert AtOnce.of(tiled(network(decoder, **others), "float32")) is None


def test_so_does_a_decoder_of_someones_own() -> None:
    class Other(QueryAfter):
        pass

    model = network()
    model.decoder.__class__ = Other
    assert AtOnce.of(tiled(model, "float32")) is None


def test_weights_as_they_are_go_part_by_part() -> None:
    assert AtOnce.of(network()) is None


def test_so_does_an_embedding_of_which_a_part_does_not_learn() -> None:
    model = network()
    model.target_embedding.freeze(torch.tensor([7, 9]))
    assert AtOnce.of(tiled(model, "float32")) is None


@pytest.mark.parametrize("change", ["many", "double", "half", "turned", "width"])
def test_other_tensors_go_part_by_part(change: str) -> None:
    model = tiled(network(symbols=80 if change == "many" else SYMBOLS), "float32")
    at_once = AtOnce.of(model)
    assert at_once is not None
    with torch.inference_mode():
        state, last = list(model.start(*sources(3))), torch.full((3,), BEGIN)
        assert at_once.offer(last, tuple(state), 2) is not None
        if change == "double":
            state[1] = state[1].double()
        if change == "half":
            last = last.int()
        if change == "turned":
            state[2] = state[2].transpose(1, 2).contiguous().transpose(1, 2)
        if change == "width":
            state[-1] = state[-1][:, :31].contiguous()
        assert at_once.offer(last, tuple(state), 70 if change == "many" else 2) is None


def test_a_state_that_is_no_number_and_a_symbol_that_is_none_are_named_as_ever() -> None:
    stepper = TorchStepper(network(), trained=True)
    ids, mask = sources(3)
    state, last = stepper.start(ids.numpy(), mask.numpy()), np.full(3, BEGIN)
    with pytest.raises(UsageError, match=f"ids of an embedding hold {SYMBOLS}"):
        stepper.step(np.full(3, SYMBOLS), state, 2)
    broken = state[-1].clone()
    broken[1, 2] = float("nan")
    with pytest.raises(UsageError, match="query of the attention Bilinear holds nan at row 1"):
        stepper.step(last, (*state[:-1], broken), 2)
    with pytest.raises(UsageError, match="take the state from start"):
        stepper.step(last[:2], state, 2)


def test_weights_that_change_are_seen() -> None:
    model = network()
    stepper = TorchStepper(model, trained=True)
    ids, mask = (tensor.numpy() for tensor in sources(3))
    last = np.full(3, BEGIN)
    before = stepper.step(last, stepper.start(ids, mask), 2).scores
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5).add_(0.01)
    after = stepper.step(last, stepper.start(ids, mask), 2).scores
    fresh = TorchStepper(model)
    np.testing.assert_allclose(after, fresh.step(last, fresh.start(ids, mask), 2).scores, rtol=1e-5, atol=1e-5)
    assert np.abs(after - before).max() > 1e-3


def test_a_search_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = TorchStepper(network(), trained=True)
    ids, mask = (tensor.numpy() for tensor in sources(3))
    state = stepper.start(ids, mask)
    wanted = stepper.step(np.full(3, BEGIN), state, 2)

    def never(*_: Any) -> Callable[..., Any]:
        raise AssertionError("part by part")

    monkeypatch.setattr(Seq2Seq, "offer", never)
    found = stepper.step(np.full(3, BEGIN), state, 2)
    np.testing.assert_array_equal(found.scores, wanted.scores)
