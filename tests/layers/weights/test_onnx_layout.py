"""Weights to ONNX's operators and back, with ONNX Runtime running a graph of one node as the oracle."""

import copy

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import nn

from unrolled.base.errors import UsageError
from unrolled.layers import GRU, LSTM, Elman, OnnxLayer, load_onnx, to_onnx

ROWS, TIME, INPUT, HIDDEN = 3, 7, 2, 5
LENGTHS = [4, 7, 1]
CASES = {
    "lstm": (LSTM, {}),
    "lstm-no-bias": (LSTM, {"bias": False}),
    "peephole": (LSTM, {"peephole": True}),
    "coupled": (LSTM, {"coupled": True}),
    "coupled-peephole": (LSTM, {"coupled": True, "peephole": True}),
    "gru-before": (GRU, {"reset": "before"}),
    "gru-after": (GRU, {"reset": "after"}),
    "gru-no-bias": (GRU, {"bias": False}),
    "tanh": (Elman, {}),
    "relu": (Elman, {"nonlinearity": "relu"}),
}


def built(name, seed=3, **flags):
    kind, options = CASES[name]
    torch.manual_seed(seed)
    layer = kind(INPUT, HIDDEN, **options, **flags)
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.4)
    return layer


def graph(layer, x, lengths, first):
    """One node with these weights: inputs that it does not have are left empty."""
    states = ["initial_h", "initial_c"][: len(first)]
    arrays = {"W": layer.W, "R": layer.R, "B": layer.B, "sequence_lens": lengths}
    arrays |= dict(zip(states, first, strict=True))
    order = ["W", "R", "B", "sequence_lens", *states]
    if layer.P is not None:
        arrays["P"] = layer.P
        order.append("P")
    given = {name: value for name, value in arrays.items() if value is not None}
    outputs = ["Y", "Y_h", "Y_c"][: 1 + len(first)]
    inputs = ["X", *(name if name in given else "" for name in order)]
    node = helper.make_node(layer.operator, inputs, outputs, **layer.attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    built_graph = helper.make_graph(
        [node],
        "oracle",
        [helper.make_tensor_value_info("X", kind, None)],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in given.items()],
    )
    return helper.make_model(built_graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def run(layer, x, lengths, first):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = graph(layer, x, np.array(lengths, np.int32), first)
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"X": x})


def example(layer, dtype=torch.float32):
    torch.manual_seed(5)
    directions = layer.recurrent.directions
    first = [torch.randn(directions, ROWS, HIDDEN, dtype=dtype) for _ in layer.states]
    return torch.randn(TIME, ROWS, INPUT, dtype=dtype), first


def equal(layer, onnx_layer):
    """Our layer and ONNX Runtime's node give the same."""
    x, first = example(layer)
    y, *last = run(onnx_layer, x.numpy(), LENGTHS, [tensor.numpy() for tensor in first])
    with torch.no_grad():
        output, ends = layer(x, first[0] if len(first) == 1 else tuple(first), lengths=LENGTHS)
    ends = (ends,) if isinstance(ends, torch.Tensor) else ends
    wanted = torch.from_numpy(y).transpose(1, 2).reshape(TIME, ROWS, -1)
    torch.testing.assert_close(output, wanted, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(list(ends), [torch.from_numpy(end) for end in last], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("name", CASES)
def test_onnx_runtime_computes_the_same_and_the_way_back_is_exact(name, bidirectional):
    layer, other = built(name, bidirectional=bidirectional), built(name, 4, bidirectional=bidirectional)
    (written,) = to_onnx(layer)
    equal(layer, written)
    load_onnx(other, [written])
    for one, two in zip(layer.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("name", CASES)
def test_any_arrays_of_a_node_are_taken_over(name):
    layer = built(name, bidirectional=True)
    (shapes,) = to_onnx(layer)
    draw = np.random.default_rng(7)
    arrays = [
        None if part is None else draw.normal(0, 0.4, part.shape).astype(np.float32)
        for part in (shapes.W, shapes.R, shapes.B, shapes.P)
    ]
    node = OnnxLayer(shapes.operator, *arrays, shapes.attributes)
    load_onnx(layer, [node])
    equal(layer, node)


@pytest.mark.parametrize("name", ["lstm", "peephole", "gru-before", "gru-after", "tanh"])
def test_equals_the_reference_of_the_standard_in_float64(name):
    layer = built(name).double()
    (written,) = to_onnx(layer)
    assert written.W.dtype == np.float64
    x, first = example(layer, torch.float64)
    bare = written._replace(attributes={k: v for k, v in written.attributes.items() if k != "activations"})
    model = graph(bare, x.numpy(), None, [tensor.numpy() for tensor in first])
    y, *last = ReferenceEvaluator(model).run(None, {"X": x.numpy()})
    output, ends = layer(x, first[0] if len(first) == 1 else tuple(first))
    torch.testing.assert_close(output, torch.from_numpy(y)[:, 0], rtol=1e-10, atol=1e-10)
    ends = ends if isinstance(ends, torch.Tensor) else ends[0]
    torch.testing.assert_close(ends, torch.from_numpy(last[0]), rtol=1e-10, atol=1e-10)


def test_layers_are_nodes_in_their_order():
    layer, other = built("gru-after", num_layers=2), built("gru-after", 4, num_layers=2)
    first, second = to_onnx(layer)
    assert (first.W.shape, second.W.shape) == ((1, 15, 2), (1, 15, 5))
    load_onnx(other, [first, second])
    x, _ = example(layer)
    assert torch.equal(layer(x)[0], other(x)[0])


def test_coupled_gates_written_out_are_an_lstm_that_is_not():
    coupled, plain = built("coupled-peephole"), built("peephole", 4)
    (written,) = to_onnx(coupled)
    attributes = {**written.attributes, "input_forget": 0}
    load_onnx(plain, [written._replace(attributes=attributes)])
    x, _ = example(plain)
    torch.testing.assert_close(plain(x), coupled(x), rtol=1e-5, atol=1e-6)
    load_onnx(coupled, [written._replace(attributes=attributes)])


def test_a_node_read_from_a_model_has_its_names_in_bytes():
    layer = built("relu")
    (written,) = to_onnx(layer)
    model = graph(written, np.zeros((TIME, ROWS, INPUT), np.float32), None, [])
    read = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in model.graph.node[0].attribute}
    assert read["direction"] == b"forward"
    load_onnx(layer, [written._replace(attributes=read)])


@pytest.mark.parametrize(
    "name, changes, message",
    [
        (
            "lstm",
            {"W": np.zeros((1, 20, 3), np.float32)},
            r"W of ONNX's layer 0 has the shape \[1, 20, 3\]; .* \[1, 20, 2\]",
        ),
        ("lstm", {"B": np.zeros((1, 20), np.float32)}, r"B of ONNX's layer 0 has the shape \[1, 20\]; .* \[1, 40\]"),
        ("lstm", {"R": None}, r"R of ONNX's layer 0 is missing"),
        (
            "lstm",
            {"P": np.ones((1, 15), np.float32)},
            r"there are peepholes and the cell has none; build it with peephole",
        ),
        (
            "lstm",
            {"W": np.zeros((1, 20, 2), complex)},
            r"weights must be arrays of real numbers; one of type complex128",
        ),
        ("lstm", {"operator": "GRU"}, r"the operator is 'GRU'; for this network it must be 'LSTM'"),
        (
            "lstm",
            {"attributes": {"clip": 3.0}},
            r"clip=3.0 cuts what goes into the activations, and no cell here does. Train or export",
        ),
        (
            "lstm",
            {"attributes": {"activation_alpha": [0.1]}},
            r"the attribute activation_alpha=\[0.1\] is not known here. Known: layout, activations",
        ),
        ("lstm", {"attributes": {"direction": "reverse"}}, r"direction is 'reverse'; this network computes 'forward'"),
        ("lstm", {"attributes": {"input_forget": 1}}, r"input_forget is 1; this network computes 0"),
        ("lstm", {"attributes": {"hidden_size": 7}}, r"hidden_size is 7; this network computes 5"),
        ("lstm", {"attributes": {"activations": ["HardSigmoid", "Tanh", "Tanh"]}}, r"activations is \['HardSigmoid'"),
        ("gru-after", {"attributes": {}}, r"linear_before_reset is 0; this network computes 1"),
        ("relu", {"attributes": {}}, r"activations is \['Tanh'\]; this network computes \['Relu'\]"),
    ],
)
def test_what_the_network_cannot_compute_is_named_and_nothing_is_changed(name, changes, message):
    layer = built(name)
    kept = copy.deepcopy(layer.state_dict())
    (written,) = to_onnx(layer)
    with pytest.raises(UsageError, match=message):
        load_onnx(layer, [written._replace(**changes)])
    with pytest.raises(UsageError, match=r"2 ONNX layers were given; this network has 1"):
        load_onnx(layer, [written, written])
    for key, value in layer.state_dict().items():
        assert torch.equal(value, kept[key])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"proj_size": 3}, r"the cell LSTM cannot go to or come from ONNX, which has no projections"),
        ({"peephole": "full"}, r"which has no full peepholes"),
        ({"layer_norm": True}, r"which has no layer normalisation inside a cell"),
        ({"zoneout": 0.1}, r"which has no zoneout"),
    ],
)
def test_what_onnx_has_not_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        to_onnx(LSTM(2, 5, **options))
