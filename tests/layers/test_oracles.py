"""The cells against implementations that nobody here wrote: torch.nn with packed rows, and ONNX Runtime's operators."""

import copy

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn.utils import rnn

from unrolled.layers import Recurrent

ROWS, TIME, INPUT, HIDDEN = 3, 7, 2, 5

LIKE_TORCH = {
    "lstm": ({"kind": "lstm"}, nn.LSTM, {}),
    "projected lstm": ({"kind": "lstm", "projection_size": 3}, nn.LSTM, {"proj_size": 3}),
    "gru": ({"kind": "gru", "reset": "after", "outer_bias": True}, nn.GRU, {}),
    "tanh": ({"kind": "elman"}, nn.RNN, {"nonlinearity": "tanh"}),
    "relu": ({"kind": "elman", "activation": "relu"}, nn.RNN, {"nonlinearity": "relu"}),
}
OURS = ["plain", "whole", "compiled"]
PATHS = {"lstm": [*OURS, "padded", "packed"], "projected lstm": OURS}
CASES = [(name, path) for name in LIKE_TORCH for path in PATHS.get(name, [*OURS, "packed"])]


def gates(weight):
    """Weights of our GRU, whose z is PyTorch's and ONNX's 1 - z, as (update, reset, candidate) of theirs."""
    update, reset, candidate = weight.chunk(3)
    return -update, reset, candidate


def pair(name, dtype, layers=2):
    """Our network and torch's with the same numbers; for every torch parameter the way to ours."""
    cell, theirs, options = LIKE_TORCH[name]
    torch.manual_seed(3)
    ours = Recurrent(INPUT, cell={**cell, "hidden_size": HIDDEN}, layers=layers, bidirectional=True).to(dtype)
    oracle = theirs(INPUT, HIDDEN, layers, bidirectional=True, batch_first=True, **options).to(dtype)
    for weight in ours.parameters():
        nn.init.normal_(weight, std=0.3)
    for (layer, direction), built in zip(np.ndindex(layers, 2), ours.cells, strict=True):
        end = f"_l{layer}{'_reverse' if direction else ''}"
        weights = [built.input_weight, built.hidden_weight, *built.biases()]
        kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        if "proj_size" in options:
            weights, kinds = [*weights, built.projection_weight], [*kinds, "weight_hr"]
        for kind, weight in zip(kinds, weights, strict=True):
            if name == "gru":
                update, reset, candidate = gates(weight)
                weight = torch.cat((reset, update, candidate))
            getattr(oracle, kind + end).data.copy_(weight)
    return ours, oracle


def ours_from_torch(name, oracle, kind, layer, direction):
    """Gradient of a torch parameter, in our order of gates."""
    grad = getattr(oracle, f"{kind}_l{layer}{'_reverse' if direction else ''}").grad
    if name != "gru":
        return grad
    reset, update, candidate = grad.chunk(3)
    return torch.cat((-update, reset, candidate))


def close(given, wanted, dtype):
    """No number differs by more than 1e-6 (float64: 1e-10) of the tensor's largest, or of 1."""
    limit = 1e-6 if dtype is torch.float32 else 1e-10
    if isinstance(given, torch.Tensor):
        given, wanted = [given], [wanted]
    for one, other in zip(given, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=limit * max(1.0, float(other.detach().abs().max())))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name, path", CASES)
@settings(deadline=None, max_examples=6)
@given(lengths=st.lists(st.integers(1, TIME), min_size=ROWS, max_size=ROWS), seed=st.integers(0, 99))
def test_equals_torch_with_packed_rows_in_values_and_gradients(name, path, dtype, lengths, seed):
    ours, oracle = pair(name, dtype)
    ours.path = path
    ours.zero_grad()
    oracle.zero_grad()
    torch.manual_seed(seed)
    x = torch.randn(ROWS, TIME, INPUT, dtype=dtype)
    mask = torch.arange(TIME) < torch.tensor(lengths).unsqueeze(1)
    first = tuple(torch.randn(4, ROWS, size, dtype=dtype) for size in ours.cells[0].state_sizes)
    part = torch.randn(ROWS, TIME, ours.output_size, dtype=dtype) / 4  # gradients stay near 1, the limit's unit
    end_parts = [torch.randn_like(tensor) / 4 for tensor in first]

    x_torch, states = x.clone().requires_grad_(), [tensor.clone().requires_grad_() for tensor in first]
    packed = rnn.pack_padded_sequence(x_torch, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    output, last = oracle(packed, tuple(states) if len(states) == 2 else states[0])
    output, _ = rnn.pad_packed_sequence(output, batch_first=True, total_length=TIME)
    last = last if len(states) == 2 else (last,)
    ((output * part).sum() + sum((a * b).sum() for a, b in zip(last, end_parts, strict=True))).backward()

    x_ours, flat = x.clone().requires_grad_(), [tensor.clone().requires_grad_() for tensor in first]
    state = tuple(tensor[index] for index in range(4) for tensor in flat)
    result = ours(x_ours, mask, state)
    ends = [torch.stack(result.state[i :: len(flat)]) for i in range(len(flat))]
    ((result.output * part).sum() + sum((a * b).sum() for a, b in zip(ends, end_parts, strict=True))).backward()

    close(result.output, output, dtype)
    close(ends, list(last), dtype)
    close(x_ours.grad, x_torch.grad, dtype)
    close([tensor.grad for tensor in flat], [tensor.grad for tensor in states], dtype)
    for index, cell in enumerate(ours.cells):
        place = divmod(index, 2)
        close(cell.input_weight.grad, ours_from_torch(name, oracle, "weight_ih", *place), dtype)
        close(cell.hidden_weight.grad, ours_from_torch(name, oracle, "weight_hh", *place), dtype)
        bias = ours_from_torch(name, oracle, "bias_ih", *place)
        if name == "gru":
            inside = ours_from_torch(name, oracle, "bias_hh", *place)
            close(cell.outer_bias.grad, bias[2 * HIDDEN :], dtype)
            bias = torch.cat((bias[: 2 * HIDDEN], inside[2 * HIDDEN :]))
        if name == "projected lstm":
            close(cell.projection_weight.grad, ours_from_torch(name, oracle, "weight_hr", *place), dtype)
        close(cell.bias.grad, bias, dtype)


ONNX = {
    "lstm": ({"kind": "lstm"}, "LSTM", {}),
    "peephole": ({"kind": "lstm", "peephole": "diagonal"}, "LSTM", {}),
    "coupled": ({"kind": "lstm", "coupled": True}, "LSTM", {"input_forget": 1}),
    "coupled peephole": ({"kind": "lstm", "coupled": True, "peephole": "diagonal"}, "LSTM", {"input_forget": 1}),
    "gru-before": ({"kind": "gru", "reset": "before"}, "GRU", {"linear_before_reset": 0}),
    "gru-after": ({"kind": "gru", "reset": "after", "outer_bias": True}, "GRU", {"linear_before_reset": 1}),
    "tanh": ({"kind": "elman"}, "RNN", {"activations": ["Tanh", "Tanh"]}),
    "relu": ({"kind": "elman", "activation": "relu"}, "RNN", {"activations": ["Relu", "Relu"]}),
}


def onnx_weights(operator, cell):
    """W, R and B of one direction, and P of an LSTM, in ONNX's order of gates: LSTM i o f c, GRU z r h.

    Coupled, our forget gate drives and its input gate: σ(-a) = 1 - σ(a), so that one has the other's numbers negated.
    """
    parts = []
    for weight in (cell.input_weight, cell.hidden_weight, *cell.biases()):
        if operator == "LSTM":
            *write, keep, candidate, show = weight.chunk(len(cell.gates))
            weight = torch.cat((*(write or [-keep]), show, keep, candidate))
        elif operator == "GRU":
            weight = torch.cat(gates(weight))
        parts.append(weight.detach().numpy())
    if operator != "LSTM":
        return parts[0], parts[1], np.concatenate(parts[2:])
    blind = torch.zeros(len(cell.gates) - 1, HIDDEN)
    *write, keep, show = blind if cell.peephole_weight is None else cell.peephole_weight.detach()
    return parts[0], parts[1], np.concatenate(parts[2:]), torch.cat((*(write or [-keep]), show, keep)).numpy()


def run_onnx(operator, attributes, cells, x, lengths, first):
    """The operator's outputs Y, Y_h (and Y_c) over rows of these lengths."""
    weights = [np.stack(part) for part in zip(*(onnx_weights(operator, cell) for cell in cells), strict=True)]
    names = ["X", "W", "R", "B", "sequence_lens", "initial_h"] + ["initial_c", "P"] * (operator == "LSTM")
    given_arrays = dict(zip(names, [x, *weights[:3], lengths, *first, *weights[3:]], strict=True))
    outputs = ["Y", "Y_h", "Y_c"][: 2 + (operator == "LSTM")]
    node = helper.make_node(operator, names, outputs, hidden_size=HIDDEN, direction="bidirectional", **attributes)
    graph = helper.make_graph(
        [node],
        "oracle",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(given_arrays[name], name) for name in names[1:]],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"X": x})


@pytest.mark.parametrize("name", ONNX)
@settings(deadline=None, max_examples=6)
@given(lengths=st.lists(st.integers(1, TIME), min_size=ROWS, max_size=ROWS), seed=st.integers(0, 99))
def test_equals_the_onnx_operator(name, lengths, seed):
    """Ours in float64: what is left of the difference is what float32 and the operator's own tanh leave."""
    cell, operator, attributes = ONNX[name]
    torch.manual_seed(seed)
    ours = Recurrent(INPUT, cell={**cell, "hidden_size": HIDDEN}, bidirectional=True)
    for weight in ours.parameters():
        nn.init.normal_(weight, std=0.3)
    x = torch.randn(ROWS, TIME, INPUT)
    mask = torch.arange(TIME) < torch.tensor(lengths).unsqueeze(1)
    tensors = len(ours.cells[0].state_names)
    first = [torch.randn(2, ROWS, HIDDEN) for _ in range(tensors)]
    flat = tuple(tensor[direction].double() for direction in range(2) for tensor in first)
    with torch.no_grad():
        output, ends = copy.deepcopy(ours).double()(x.double(), mask, flat)
    y, *last = run_onnx(
        operator,
        attributes,
        ours.cells,
        x.transpose(0, 1).numpy(),
        np.array(lengths, dtype=np.int32),
        [tensor.numpy() for tensor in first],
    )
    wanted = torch.from_numpy(y).permute(2, 0, 1, 3).reshape(ROWS, TIME, 2 * HIDDEN)
    torch.testing.assert_close(output, wanted.double(), rtol=0, atol=1e-6)
    for index, tensor in enumerate(last):
        own = torch.stack(ends[index::tensors])
        torch.testing.assert_close(own, torch.from_numpy(tensor).double(), rtol=1e-6, atol=1e-6)
