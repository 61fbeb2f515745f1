"""The drop-in layers against torch.nn's own, for every combination of flags; their options, and what they refuse."""

import copy
import inspect
import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import rnn

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.settings import choices
from unrolled.layers import GRU, LSTM, Elman, Recurrent, cells, load_torch, to_torch

ROWS, TIME, INPUT, HIDDEN, PROJECTED = 3, 7, 2, 5, 4
KINDS = {
    "lstm": (LSTM, nn.LSTM, {}),
    "projected": (LSTM, nn.LSTM, {"proj_size": PROJECTED}),
    "gru": (GRU, nn.GRU, {}),
    "tanh": (Elman, nn.RNN, {"nonlinearity": "tanh"}),
    "relu": (Elman, nn.RNN, {"nonlinearity": "relu"}),
}
FLAGS = ("num_layers", "bias", "batch_first", "bidirectional")
COMBINATIONS = [dict(zip(FLAGS, values, strict=True)) for values in itertools.product((1, 2), *[(True, False)] * 3)]


def pair(name, flags):
    """Ours and torch's, with torch's numbers, in float64."""
    ours, theirs, options = KINDS[name]
    torch.manual_seed(3)
    oracle = theirs(INPUT, HIDDEN, **flags, **options, dtype=torch.float64)
    layer = ours(INPUT, HIDDEN, **flags, **options, dtype=torch.float64)
    load_torch(layer, oracle)
    return layer, oracle


def batch(form, batch_first):
    """An input of the given form, and the number of its rows (None: it has no batch axis)."""
    torch.manual_seed(5)
    if form == "alone":
        return torch.randn(TIME, INPUT, dtype=torch.float64), None
    x = torch.randn(ROWS, TIME, INPUT, dtype=torch.float64)
    if form == "padded":
        return (x if batch_first else x.transpose(0, 1).contiguous()), ROWS
    if form == "sorted":
        return rnn.pack_padded_sequence(x, torch.tensor([7, 4, 1]), batch_first=True), ROWS
    return rnn.pack_padded_sequence(x, torch.tensor([4, 1, 7]), batch_first=True, enforce_sorted=False), ROWS


def first_states(oracle, rows):
    count = oracle.num_layers * (1 + oracle.bidirectional)
    sizes = [oracle.proj_size or HIDDEN, HIDDEN] if isinstance(oracle, nn.LSTM) else [HIDDEN]
    shapes = [(count, size) if rows is None else (count, rows, size) for size in sizes]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def results(layer, x, states, seed=7):
    """What the call returns, and the gradients of the input and the states for a loss in which each number counts."""
    data = (x.data if isinstance(x, rnn.PackedSequence) else x).clone().requires_grad_()
    x = x._replace(data=data) if isinstance(x, rnn.PackedSequence) else data
    states = [state.detach().clone().requires_grad_() for state in states]
    layer.zero_grad()
    hx = (states[0] if len(states) == 1 else tuple(states)) if states else None
    output, ends = layer(x, hx)
    ends = (ends,) if isinstance(ends, torch.Tensor) else ends
    values = [output.data if isinstance(output, rnn.PackedSequence) else output, *ends]
    torch.manual_seed(seed)
    sum((value * torch.randn(value.shape, dtype=value.dtype)).sum() for value in values).backward()
    return output, values, [data.grad, *(state.grad for state in states)]


def weight_gradients(layer):
    """Our gradients as torch.nn keeps them: `to_torch` is linear and keeps lengths."""
    twin = copy.deepcopy(layer)
    for own, other in zip(layer.parameters(), twin.parameters(), strict=True):
        other.data.copy_(own.grad)
    return to_torch(twin)


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ["padded", "alone", "unsorted"])
@pytest.mark.parametrize("flags", COMBINATIONS, ids=lambda flags: "-".join(map(str, flags.values())))
@pytest.mark.parametrize("name", KINDS)
def test_takes_the_place_of_torch_nn_in_values_and_gradients(name, flags, form):
    layer, oracle = pair(name, flags)
    x, rows = batch(form, flags["batch_first"])
    for states in ([], first_states(oracle, rows)):
        output, values, gradients = results(layer, x, states)
        wanted, wanted_values, wanted_gradients = results(oracle, x, states)
        assert type(output) is type(wanted)
        if isinstance(wanted, rnn.PackedSequence):
            for given, expected in zip(output[1:], wanted[1:], strict=True):
                assert (given is None and expected is None) or torch.equal(given, expected)
        close(values, wanted_values)
        close(gradients, wanted_gradients)
        ours = weight_gradients(layer)
        assert set(ours) == set(oracle.state_dict())
        for key, weight in oracle.named_parameters():
            if not key.startswith("bias_hh"):
                close(ours[key], weight.grad)
            elif name == "gru":
                close(ours[key][2 * HIDDEN :], weight.grad[2 * HIDDEN :])


def test_rows_packed_in_their_order_stay_in_it():
    layer, oracle = pair("gru", {"num_layers": 2, "bidirectional": True})
    x, rows = batch("sorted", True)
    states = first_states(oracle, rows)
    output, values, gradients = results(layer, x, states)
    wanted, wanted_values, wanted_gradients = results(oracle, x, states)
    assert output.sorted_indices is None and wanted.sorted_indices is None
    assert torch.equal(output.batch_sizes, wanted.batch_sizes)
    close((values, gradients), (wanted_values, wanted_gradients))


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("name", KINDS)
@settings(deadline=None, max_examples=6)
@given(lengths=st.lists(st.integers(1, TIME), min_size=ROWS, max_size=ROWS), fill=st.sampled_from([0.0, 1e30]))
def test_lengths_and_mask_are_the_packed_result_without_packing(name, batch_first, lengths, fill):
    flags = {"num_layers": 2, "bidirectional": True, "batch_first": batch_first}
    layer, oracle = pair(name, flags)
    x, _ = batch("padded", True)
    real = torch.arange(TIME) < torch.tensor(lengths).unsqueeze(1)
    x[~real] = fill
    packed = rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    wanted, wanted_ends = oracle(packed)
    wanted, _ = rnn.pad_packed_sequence(wanted, batch_first=batch_first, total_length=TIME)
    if not batch_first:
        x, real = x.transpose(0, 1), real.t()
    for told in ({"lengths": lengths}, {"lengths": torch.tensor(lengths)}, {"mask": real}):
        output, ends = layer(x, **told)
        close(output, wanted)
        close(ends, wanted_ends)
        assert (output[~real] == 0).all()


def test_one_sequence_alone_takes_a_length_too():
    layer, _ = pair("lstm", {"bidirectional": True})
    x, _ = batch("alone", False)
    wanted, wanted_ends = layer(x[:4])
    for told in ({"lengths": [4]}, {"mask": torch.arange(TIME) < 4}):
        output, ends = layer(x, **told)
        close(output[:4], wanted)
        assert (output[4:] == 0).all()
        close(ends, wanted_ends)


@pytest.mark.parametrize("name", KINDS)
def test_a_state_dict_of_torch_nn_loads_into_the_model_that_replaced_it(name):
    class Model(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.net = kind
            self.out = nn.Linear(2, 1)

    layer, oracle = pair(name, {"num_layers": 2, "bidirectional": True})
    for weight in layer.parameters():
        weight.data.zero_()
    state = Model(oracle).double().state_dict()
    kept = dict(state)
    ours = Model(copy.deepcopy(layer)).double()
    ours.load_state_dict(state)
    assert state.keys() == kept.keys()
    x, _ = batch("padded", False)
    close(ours.net(x)[0], oracle(x)[0])
    again = Model(copy.deepcopy(layer)).double()
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again.net(x)[0], ours.net(x)[0])


@pytest.mark.parametrize(
    "ours, cell, torch_name", [(LSTM, cells.LSTM, "proj_size"), (GRU, cells.GRU, None), (Elman, cells.Elman, None)]
)
def test_the_arguments_are_torchs_and_then_the_options_of_cell_and_recurrence(ours, cell, torch_name):
    parameters = inspect.signature(ours).parameters.values()
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    torchs = {
        p.name: p.default
        for p in inspect.signature(nn.RNNBase).parameters.values()
        if p.name not in {"mode", "proj_size"} | {torch_name}
    }
    if ours is LSTM:
        names = list(inspect.signature(nn.RNNBase).parameters)[1:]
        assert list(positional) == names
    elif ours is Elman:
        assert list(positional) == [*list(torchs)[:3], "nonlinearity", *list(torchs)[3:]]
    else:
        assert list(positional) == list(torchs)
    assert {name: positional[name] for name in torchs} == torchs
    options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    own = {name: default for name, (_, default) in choices(cell).items()}
    around = {name: default for name, (_, default) in choices(Recurrent).items()}
    renamed = {"hidden_size", "projection_size", "activation", "outer_bias"}
    replaced = {"cell", "layers", "bidirectional", "dropout"}
    wanted = {name: value for name, value in own.items() if name not in renamed}
    wanted |= {name: value for name, value in around.items() if name not in replaced}
    assert options == wanted | ({"reset": "after"} if ours is GRU else {})


OPTIONS = [
    (LSTM, {"peephole": True}),
    (LSTM, {"peephole": "full", "coupled": True}),
    (LSTM, {"coupled": True, "proj_size": 3}),
    (LSTM, {"layer_norm": True, "recurrent_dropout": 0.2, "zoneout": 0.2}),
    (LSTM, {"forget_bias": 2.0, "bias": False, "recurrent_init": "uniform"}),
    (GRU, {"reset": "before"}),
    (GRU, {"reset": "before", "bias": False}),
    (GRU, {"layer_norm": True, "zoneout": 0.2}),
    (GRU, {"recurrent_dropout": 0.2, "recurrent_init": "uniform"}),
    (Elman, {"recurrent_init": "uniform", "nonlinearity": "relu"}),
    (Elman, {"dropout": 0.3, "dropout_kind": "locked", "initial": "learned"}),
    (LSTM, {"dropout": 0.3, "residual": True, "initial": "learned"}),
]


@pytest.mark.parametrize("kind, options", OPTIONS, ids=str)
def test_every_option_reaches_the_cell_and_trains(kind, options):
    torch.manual_seed(1)
    layer = kind(INPUT, HIDDEN, 2, bidirectional=True, **options)
    cell = layer.recurrent.cells[0]
    for name in {"coupled", "layer_norm", "recurrent_dropout", "zoneout", "reset"} & set(options):
        assert getattr(cell, name) == options[name]
    assert ("bias" in dict(cell.named_parameters())) == options.get("bias", True)
    before = [weight.clone() for weight in layer.parameters()]
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        output, _ = layer(torch.randn(TIME, ROWS, INPUT), lengths=[7, 4, 1])
        output.square().sum().backward()
        optimizer.step()
    assert all(not torch.equal(old, new) for old, new in zip(before, layer.parameters(), strict=True))


def test_without_bias_nothing_of_it_is_learnt_or_saved():
    layer = LSTM(INPUT, HIDDEN, bias=False)
    assert set(layer.state_dict()) == {"recurrent.cells.0.input_weight", "recurrent.cells.0.hidden_weight"}
    assert sum(weight.numel() for weight in layer.parameters()) == 4 * (INPUT * HIDDEN + HIDDEN * HIDDEN)
    assert layer.double().recurrent.cells[0].bias.dtype is torch.float64


def test_dropout_between_layers_is_for_training_alone():
    layer, oracle = pair("lstm", {"num_layers": 2, "dropout": 0.5})
    x, _ = batch("padded", False)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    close(layer.eval()(x), oracle.eval()(x))


def test_type_and_attributes_are_those_of_torch_nn():
    layer = LSTM(INPUT, HIDDEN, 2, True, True, 0.25, True, 3, "cpu", torch.float64)
    oracle = nn.LSTM(INPUT, HIDDEN, 2, True, True, 0.25, True, 3, "cpu", torch.float64)
    for name in (
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ):
        assert getattr(layer, name) == getattr(oracle, name)
    assert {weight.dtype for weight in layer.parameters()} == {torch.float64}
    layer.flatten_parameters()
    assert Elman(INPUT, HIDDEN, 1, "relu").nonlinearity == "relu"


def test_output_of_time_first_input_can_be_viewed_as_torchs_can():
    output, _ = LSTM(INPUT, HIDDEN)(torch.randn(TIME, ROWS, INPUT))
    assert output.view(TIME * ROWS, HIDDEN).shape == (TIME * ROWS, HIDDEN)


def test_a_layer_with_a_mask_can_be_exported():
    layer = GRU(INPUT, HIDDEN, batch_first=True, bidirectional=True).eval()
    x, mask = torch.randn(ROWS, TIME, INPUT), torch.arange(TIME) < torch.tensor([7, 4, 1]).unsqueeze(1)
    exported = torch.export.export(layer, (x,), {"mask": mask}).module()
    shorter = torch.arange(TIME) < torch.tensor([2, 7, 5]).unsqueeze(1)
    torch.testing.assert_close(exported(x, mask=shorter), layer(x, mask=shorter))


def test_a_drop_in_lstm_learns_in_a_plain_loop():
    torch.manual_seed(1)
    lstm, head = LSTM(4, 16, batch_first=True), nn.Linear(16, 4)
    optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.02)
    for _ in range(120):  # remember the first symbol
        ids = torch.randint(4, (32, 9))
        lengths = torch.randint(3, 10, (32,))
        _, (hidden, _) = lstm(nn.functional.one_hot(ids, 4).float(), lengths=lengths)
        loss = nn.functional.cross_entropy(head(hidden[-1]), ids[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


@pytest.mark.parametrize(
    "changed, message",
    [
        (
            {"input": torch.zeros(3)},
            r"input of LSTM has the shape \[3\]; it must be \[time, batch, 2\], or \[time, 2\]",
        ),
        ({"input": torch.zeros(7, 3, 4)}, r"input of LSTM has the shape \[7, 3, 4\]; it must be \[time, batch, 2\]"),
        ({"input": torch.zeros(7, 0, 2)}, r"shape \[7, 0, 2\]; it must be .* with at least one row and one step"),
        ({"input": torch.zeros(0, 2)}, r"shape \[0, 2\]; it must be .* with at least one row and one step"),
        ({"input": torch.zeros(7, 3, 2).long()}, r"input of LSTM is torch.int64; it must be torch.float32. Embed ids"),
        ({"input": torch.zeros(7, 3, 2).double()}, r"input of LSTM is torch.float64, its weights are torch.float32"),
        (
            {"hx": torch.zeros(1, 3, 5)},
            r"hx of LSTM must be two tensors, \(h_0, c_0\), not a Tensor of shape",
        ),
        ({"hx": (torch.zeros(1, 3, 5),)}, r"hx of LSTM must be two tensors, \(h_0, c_0\), not a tuple of 1"),
        (
            {"hx": (torch.zeros(1, 3, 5), torch.zeros(1, 2, 5))},
            r"c_0 of LSTM has the shape \[1, 2, 5\]; for this input it must be \[1, 3, 5\], \[layers · directions,",
        ),
        (
            {"input": torch.zeros(7, 2), "hx": (torch.zeros(1, 1, 5), torch.zeros(1, 5))},
            r"h_0 of LSTM has the shape \[1, 1, 5\]; .* must be \[1, 5\], \[layers · directions, size\]",
        ),
        ({"lengths": [7, 4]}, r"lengths is torch.int64 \[2\]; it must be 3 whole numbers, one for each row"),
        ({"lengths": [7.0, 4.0, 1.0]}, r"lengths is torch.float32 \[3\]; it must be 3 whole numbers"),
        ({"lengths": [7, 0, 1]}, r"lengths: row 1 is 0 long; in this input it has at least 1 and at most 7 steps"),
        ({"lengths": [7, 4, 8]}, r"lengths: row 2 is 8 long; in this input it has at least 1 and at most 7 steps"),
        (
            {"mask": torch.ones(3, 7).bool()},
            r"mask of LSTM is torch.bool \[3, 7\]; it must be torch.bool \[7, 3\], True",
        ),
        ({"mask": torch.ones(7, 3)}, r"mask of LSTM is torch.float32 \[7, 3\]; it must be torch.bool \[7, 3\], True"),
        ({"mask": torch.zeros(7, 3).bool()}, r"row 0 has no real position"),
        ({"mask": torch.ones(7, 3).bool(), "lengths": [7, 4, 1]}, r"mask and lengths were both given to LSTM"),
        (
            {"input": rnn.pack_sequence([torch.zeros(7, 2)]), "lengths": [7]},
            r"a PackedSequence tells LSTM its lengths; leave mask and lengths out",
        ),
        ({"input": rnn.pack_sequence([torch.zeros(7, 3)])}, r"input of LSTM has the shape \[7, 3\]"),
        ({"input": torch.full((7, 3, 2), float("nan"))}, r"holds nan at row 0, step 0"),
        (
            {"input": rnn.pack_sequence([torch.zeros(2, 2), torch.tensor([[0.0, 0], [0, 0], [0, torch.inf]])], False)},
            r"input holds inf at row 1, step 2; its numbers must be finite",
        ),
    ],
)
def test_wrong_input_is_named(changed, message):
    with pytest.raises(UsageError, match=message):
        LSTM(2, 5)(**{"input": torch.zeros(7, 3, 2), **changed})


def test_a_state_of_another_cell_is_refused():
    with pytest.raises(UsageError, match=r"hx of GRU must be one tensor, h_0, not a tuple of 2"):
        GRU(2, 5)(torch.zeros(7, 3, 2), (torch.zeros(1, 3, 5), torch.zeros(1, 3, 5)))
    with pytest.raises(UsageError, match=r"h_0 of Elman has the shape \[2, 3, 5\]; .* must be \[1, 3, 5\]"):
        Elman(2, 5)(torch.zeros(7, 3, 2), torch.zeros(2, 3, 5))


@pytest.mark.parametrize(
    "given, message",
    [
        (
            {"hx": torch.zeros(1, 3, 5, dtype=torch.float64)},
            r"h_0 of GRU is torch.float64, the weights are torch.float32",
        ),
        ({"hx": torch.zeros(1, 3, 5, dtype=torch.int64)}, r"h_0 of GRU is torch.int64, the weights are torch.float32"),
        ({"hx": torch.full((1, 3, 5), math.nan)}, r"h_0 of GRU holds nan at \[0, 0, 0\]; a state's numbers are finite"),
        ({"lengths": "55"}, r"lengths is '55'; it must be 3 whole numbers, one for each row"),
        ({"lengths": [7, 5, None]}, r"lengths is \[7, 5, None\]; it must be 3 whole numbers"),
        ({"mask": [[True] * 3] * 7}, r"mask of GRU must be a tensor of torch.bool, not a list of 7"),
    ],
)
def test_states_lengths_and_masks_of_other_kinds_are_refused(given, message):
    with pytest.raises(UsageError, match=message):
        GRU(2, 5)(torch.zeros(7, 3, 2), **given)


def test_a_state_of_another_type_is_taken_under_autocast():
    torch.manual_seed(0)
    layer, x, state = GRU(2, 5), torch.randn(7, 3, 2), torch.randn(1, 3, 5)
    with torch.autocast("cpu", torch.bfloat16):
        full, _ = layer(x, state)
        half, _ = layer(x, state.bfloat16())
    torch.testing.assert_close(half.float(), full.float(), atol=0.02, rtol=0.02)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: LSTM(2, 5, 2, 0.5), r"bias of LSTM is 0.5; it must be True or False"),
        (lambda: GRU(2, 5, batch_first=1), r"batch_first of GRU is 1; it must be True or False"),
        (lambda: GRU(2, 0), r"hidden_size of a cell is 0"),
        (lambda: LSTM(2, 5, 0), r"num_layers of LSTM is 0; it must be a whole number of at least 1"),
        (lambda: LSTM(2.5, 5), r"input_size of LSTM is 2.5; it must be a whole number of at least 1"),
        (lambda: LSTM(2, 0), r"hidden_size of a cell is 0"),
        (lambda: LSTM(2, 5, proj_size=5), r"proj_size of LSTM is 5; it must be 0 \(none\) or below hidden_size"),
        (lambda: LSTM(2, 5, 2, dropout=1.0), r"a dropout rate of 1.0 was given"),
        (lambda: Elman(2, 5, 1, "sigmoid"), r"nonlinearity of Elman is 'sigmoid'. Known: relu, tanh"),
        (lambda: LSTM(2, 5, peephole="some"), r"some"),
        (lambda: GRU(2, 5, reset="never"), r"never"),
        (lambda: LSTM(2, 5, dtype=torch.int64), r"dtype of LSTM is torch.int64; weights are of a floating-point type"),
        (lambda: GRU(2, 2.5), r"cell.hidden_size\] 2.5 was given; input should be a valid integer"),
    ],
)
def test_wrong_settings_are_named(build, message):
    with pytest.raises(SettingsError, match=message):
        build()


def test_dropout_of_one_layer_is_warned_about_as_torch_does():
    with pytest.warns(UserWarning, match="dropout of LSTM is between layers, and there is one: nothing is dropped"):
        LSTM(2, 5, dropout=0.5)
