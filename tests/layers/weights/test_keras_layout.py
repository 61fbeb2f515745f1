"""Weights to Keras's layers and back, with Keras on its torch backend as the oracle, values and gradients."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from unrolled.base.errors import UsageError
from unrolled.layers import GRU, LSTM, Elman, load_keras, to_keras

ROWS, TIME, INPUT, HIDDEN = 3, 4, 2, 5
LENGTHS = [2, 4, 1]
CASES = {
    "lstm": (LSTM, {}, "LSTM", {}),
    "lstm-no-bias": (LSTM, {"bias": False}, "LSTM", {"use_bias": False}),
    "gru-before": (GRU, {"reset": "before"}, "GRU", {"reset_after": False}),
    "gru-after": (GRU, {}, "GRU", {"reset_after": True}),
    "gru-no-bias": (GRU, {"bias": False}, "GRU", {"use_bias": False}),
    "tanh": (Elman, {}, "SimpleRNN", {}),
    "relu": (Elman, {"nonlinearity": "relu"}, "SimpleRNN", {"activation": "relu"}),
}


def pair(keras, name, bidirectional, dtype=torch.float64):
    """Our layer and Keras's, built and with random weights of its own."""
    kind, options, theirs, their_options = CASES[name]
    layer = kind(INPUT, HIDDEN, batch_first=True, bidirectional=bidirectional, dtype=dtype, **options)
    name_of_type = str(dtype).removeprefix("torch.")
    oracle = getattr(keras.layers, theirs)(
        HIDDEN, return_sequences=True, return_state=True, dtype=name_of_type, **their_options
    )
    if bidirectional:
        oracle = keras.layers.Bidirectional(oracle, dtype=name_of_type)
    oracle.build((None, TIME, INPUT))
    draw = np.random.default_rng(3)
    oracle.set_weights([draw.normal(0, 0.4, array.shape) for array in oracle.get_weights()])
    return layer, oracle


def example(layer, dtype=torch.float64):
    torch.manual_seed(5)
    x = torch.randn(ROWS, TIME, INPUT, dtype=dtype)
    return x, [torch.randn(layer.recurrent.directions, ROWS, HIDDEN, dtype=dtype) for _ in layer.states]


def run_keras(oracle, x, first):
    """Keras's output and states as ours lie."""
    mask = torch.arange(TIME) < torch.tensor(LENGTHS).unsqueeze(1)
    flat = [state[direction] for direction in range(len(first[0])) for state in first]
    output, *ends = oracle(x, mask=mask, initial_state=flat)
    return output * mask.unsqueeze(2), [torch.stack(ends[index :: len(first)]) for index in range(len(first))]


def run_ours(layer, x, first):
    output, ends = layer(x, first[0] if len(first) == 1 else tuple(first), lengths=LENGTHS)
    return output, [ends] if isinstance(ends, torch.Tensor) else list(ends)


def gradients(runner, network, x, first):
    x, first = x.clone().requires_grad_(), [state.clone().requires_grad_() for state in first]
    output, ends = runner(network, x, first)
    values = [output, *ends]
    torch.manual_seed(7)
    sum((value * torch.randn(value.shape, dtype=value.dtype)).sum() for value in values).backward()
    return values, [x.grad, *(state.grad for state in first)]


@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("name", CASES)
def test_equals_keras_in_values_and_gradients_whichever_way_the_weights_go(keras, name, bidirectional):
    layer, oracle = pair(keras, name, bidirectional)
    load_keras(layer, oracle.get_weights())
    x, first = example(layer)
    wanted = gradients(run_keras, oracle, x, first)
    torch.testing.assert_close(gradients(run_ours, layer, x, first), wanted, rtol=1e-10, atol=1e-10)
    twin = copy.deepcopy(layer)
    for own, other in zip(layer.parameters(), twin.parameters(), strict=True):
        other.data.copy_(own.grad)
    for own, variable in zip(to_keras(twin), oracle.trainable_variables, strict=True):
        grad = variable.value.grad
        if variable.name == "bias" and grad.dim() == 2:  # what we have once has both biases' gradient
            own = np.stack((own[0], np.concatenate((own[0, : 2 * HIDDEN], own[1, 2 * HIDDEN :]))))
        torch.testing.assert_close(torch.from_numpy(own), grad, rtol=1e-10, atol=1e-10)

    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.4)
    oracle.set_weights(to_keras(layer))
    torch.testing.assert_close(run_ours(layer, x, first), run_keras(oracle, x, first), rtol=1e-10, atol=1e-10)
    other, _ = pair(keras, name, bidirectional)
    load_keras(other, oracle.get_weights())
    for one, two in zip(layer.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("name", CASES)
def test_equals_keras_in_float32(keras, name):
    layer, oracle = pair(keras, name, True, torch.float32)
    load_keras(layer, oracle.get_weights())
    x, first = example(layer, torch.float32)
    torch.testing.assert_close(run_ours(layer, x, first), run_keras(oracle, x, first), rtol=1e-6, atol=1e-6)


def test_a_stack_is_the_arrays_of_its_layers_in_order(keras):
    layer = LSTM(INPUT, HIDDEN, 2, batch_first=True, bidirectional=True, dtype=torch.float64)
    model = keras.Sequential(
        [
            keras.layers.Bidirectional(
                keras.layers.LSTM(HIDDEN, return_sequences=True, dtype="float64"), dtype="float64"
            )
            for _ in range(2)
        ]
    )
    model.build((None, TIME, INPUT))
    load_keras(layer, model.get_weights())
    x, _ = example(layer)
    with torch.no_grad():
        torch.testing.assert_close(layer(x)[0], model(x), rtol=1e-10, atol=1e-10)


def test_coupled_gates_are_written_out(keras):
    coupled, (_, oracle) = (
        LSTM(INPUT, HIDDEN, batch_first=True, coupled=True, dtype=torch.float64),
        pair(keras, "lstm", False),
    )
    oracle.set_weights(to_keras(coupled))
    x, first = example(coupled)
    torch.testing.assert_close(run_ours(coupled, x, first), run_keras(oracle, x, first), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "build, arrays, message",
    [
        (
            lambda: LSTM(2, 5),
            [(2, 20)],
            r"weights of Keras are 1 arrays; this network of 1 directions in all takes 3, a",
        ),
        (
            lambda: LSTM(2, 5),
            [(3, 20), (5, 20), (20,)],
            r"kernel of Keras's .* layer 0, forward, has the shape \[3,",
        ),
        (lambda: LSTM(2, 5), [(2, 20), (4, 20), (20,)], r"recurrent_kernel of Keras's weights, layer 0, forward, has"),
        (
            lambda: GRU(2, 5, reset="before"),
            [(2, 15), (5, 15), (2, 15)],
            r"bias of .* \(the cell's reset is 'before': reset_after=False\) has the shape \[2, 15\]; .* be \[15\]",
        ),
        (
            lambda: GRU(2, 5),
            [(2, 15), (5, 15), (15,)],
            r"reset_after=True\) has the shape \[15\]; .* must be \[2, 15\]",
        ),
        (lambda: LSTM(2, 5, bias=False), [(2, 20), (5, 20), (20,)], r"there is a bias and the cell has none"),
        (lambda: LSTM(2, 5, proj_size=3), [(2, 20), (5, 20), (20,)], r"come from Keras, which has no projections"),
        (lambda: LSTM(2, 5, peephole=True), [(2, 20), (5, 20), (20,)], r"come from Keras, which has no peepholes"),
    ],
)
def test_what_does_not_fit_is_named(build, arrays, message):
    with pytest.raises(UsageError, match=message):
        load_keras(build(), [np.ones(shape, np.float32) for shape in arrays])
