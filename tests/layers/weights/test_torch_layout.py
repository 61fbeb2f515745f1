"""Weights to torch.nn and back: round trips are exact, torch.nn computes the same, and what it has not is refused."""

import copy

import pytest
import torch
from torch import nn

from unrolled.base.errors import UsageError
from unrolled.layers import GRU, LSTM, Elman, Recurrent, load_torch, to_torch

ROWS, TIME, INPUT, HIDDEN, PROJECTED = 3, 4, 2, 5, 3
FLAGS = {"num_layers": 2, "bidirectional": True}
CASES = {
    "lstm": (LSTM, {}, nn.LSTM, {}),
    "lstm-no-bias": (LSTM, {"bias": False}, nn.LSTM, {"bias": False}),
    "projected": (LSTM, {"proj_size": PROJECTED}, nn.LSTM, {"proj_size": PROJECTED}),
    "coupled": (LSTM, {"coupled": True}, nn.LSTM, {}),
    "gru": (GRU, {}, nn.GRU, {}),
    "gru-no-bias": (GRU, {"bias": False}, nn.GRU, {"bias": False}),
    "relu": (Elman, {"nonlinearity": "relu"}, nn.RNN, {"nonlinearity": "relu"}),
}


def built(kind, options, seed=3):
    torch.manual_seed(seed)
    layer = kind(INPUT, HIDDEN, **FLAGS, **options, dtype=torch.float64)
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.5)
    return layer


@pytest.mark.parametrize("name", CASES)
def test_there_and_back_is_exact_and_torch_nn_computes_the_same(name):
    kind, options, theirs, their_options = CASES[name]
    layer, other = built(kind, options), built(kind, options, seed=4)
    oracle = theirs(INPUT, HIDDEN, **FLAGS, **their_options, dtype=torch.float64)
    oracle.load_state_dict(to_torch(layer))
    x = torch.randn(TIME, ROWS, INPUT, dtype=torch.float64)
    torch.testing.assert_close(layer(x), oracle(x), rtol=1e-10, atol=1e-10)
    load_torch(other, oracle)
    for one, two in zip(layer.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not any(array.requires_grad for array in to_torch(layer).values())


def test_a_plain_recurrent_is_meant_too_whatever_wraps_it():
    torch.manual_seed(3)
    oracle = nn.GRU(INPUT, HIDDEN, 2, batch_first=True)
    network = Recurrent(
        INPUT, cell={"kind": "gru", "hidden_size": HIDDEN, "reset": "after", "outer_bias": True}, layers=2
    )
    load_torch(network, oracle.state_dict())
    x = torch.randn(ROWS, TIME, INPUT)
    torch.testing.assert_close(network(x).output, oracle(x)[0], rtol=1e-6, atol=1e-6)


def test_copies_are_handed_out():
    layer = built(LSTM, {"proj_size": PROJECTED})
    kept = copy.deepcopy(layer.state_dict())
    for array in to_torch(layer).values():
        array.zero_()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, kept[name])


def test_a_learned_first_state_stays_as_it_is():
    layer = LSTM(INPUT, HIDDEN, initial="learned")
    for first in layer.recurrent.first:
        nn.init.ones_(first)
    load_torch(layer, nn.LSTM(INPUT, HIDDEN))
    assert all((first == 1).all() for first in layer.recurrent.first)


@pytest.mark.parametrize(
    "build, message",
    [
        (
            lambda: LSTM(2, 5, peephole=True),
            r"the cell LSTM cannot go to or come from torch.nn, which has no peepholes",
        ),
        (lambda: LSTM(2, 5, peephole="full"), r"come from torch.nn, which has no full peepholes"),
        (
            lambda: GRU(2, 5, layer_norm=True),
            r"the cell GRU cannot .* torch.nn, which has no layer normalisation inside",
        ),
        (lambda: LSTM(2, 5, zoneout=0.1), r"torch.nn, which has no zoneout"),
        (lambda: GRU(2, 5, reset="before"), r"a GRU with reset 'before' cannot go to or come from torch.nn"),
        (lambda: LSTM(2, 5, 2, residual=True), r"a residual network cannot go to or come from torch.nn"),
        (lambda: nn.LSTM(2, 5), r"a LSTM was given; give a Recurrent, LSTM, GRU or Elman of this library"),
    ],
)
def test_what_torch_nn_has_not_is_refused(build, message):
    with pytest.raises(UsageError, match=message):
        to_torch(build())


def without(state, name):
    return {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize(
    "build, weights, message",
    [
        (
            lambda: LSTM(2, 5),
            nn.LSTM(3, 5),
            r"weight_ih_l0 has the shape \[20, 3\]; for this network it must be \[20, 2\]",
        ),
        (lambda: LSTM(2, 5), nn.GRU(2, 5), r"weight_ih_l0 has the shape \[15, 2\]; .* must be \[20, 2\]"),
        (
            lambda: LSTM(2, 5),
            nn.LSTM(2, 5, 2),
            r"weights of torch.nn that this network has no place for: weight_ih_l1, weight_hh_l1",
        ),
        (lambda: LSTM(2, 5, 2), nn.LSTM(2, 5), r"weights of torch.nn lack weight_ih_l1, which this network needs"),
        (
            lambda: LSTM(2, 5, proj_size=3),
            without(nn.LSTM(2, 5, proj_size=3).state_dict(), "weight_hr_l0"),
            r"weights of torch.nn lack weight_hr_l0",
        ),
        (lambda: LSTM(2, 5), nn.LSTM(2, 5, proj_size=3), r"weight_hh_l0 has the shape \[20, 3\]; .* must be \[20, 5\]"),
        (
            lambda: LSTM(2, 5, bias=False),
            nn.LSTM(2, 5),
            r"weights of torch.nn, layer 0, forward: there is a bias and the cell has none; build it with bias=True",
        ),
        (
            lambda: LSTM(2, 5, coupled=True),
            nn.LSTM(2, 5),
            r"layer 0, forward: the input weights of the input gate are not those of the forget gate with the",
        ),
        (
            lambda: Recurrent(2, cell={"kind": "gru", "hidden_size": 5, "reset": "after"}),
            nn.GRU(2, 5),
            r"the candidate has a bias outside its reset gate, and the cell has none there; build it with outer_",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_changed(build, weights, message):
    network = build()
    kept = copy.deepcopy(network.state_dict())
    with pytest.raises(UsageError, match=message):
        load_torch(network, weights)
    for name, value in network.state_dict().items():
        assert torch.equal(value, kept[name])


def test_a_layer_without_bias_gives_zeros_to_one_with():
    oracle, layer = nn.LSTM(2, 5, bias=False), LSTM(2, 5)
    load_torch(layer, oracle)
    assert (layer.recurrent.cells[0].bias == 0).all()
