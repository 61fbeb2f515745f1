"""Layers, directions, dropout and residual around a cell, and what is refused."""

import pytest
import torch

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers import CELLS, Recurrent

CELL = {"kind": "gru", "hidden_size": 5}


def network(**options):
    torch.manual_seed(3)
    return Recurrent(2, cell=CELL, **options).double()


def rows(*lengths):
    torch.manual_seed(5)
    x = torch.randn(len(lengths), 7, 2, dtype=torch.float64)
    return x, torch.arange(7) < torch.tensor(lengths).unsqueeze(1)


def test_the_state_is_read_at_the_true_ends_layer_by_layer_and_direction_by_direction():
    built = network(layers=2, bidirectional=True)
    x, mask = rows(7, 4, 1)
    output, state = built(x, mask)
    assert built.state_sizes == (5, 5, 5, 5)
    assert built.output_size == 10
    last = torch.stack([output[row, length - 1, :5] for row, length in enumerate((7, 4, 1))])
    torch.testing.assert_close(state[2], last)
    torch.testing.assert_close(state[3], output[:, 0, 5:])


def test_the_backward_direction_is_the_cell_run_from_the_true_end():
    built = network(bidirectional=True)
    x, mask = rows(7, 4, 1)
    output, _ = built(x, mask)
    cell = built.cells[1]
    state = cell.initial(1, x)
    for t in (3, 2, 1, 0):
        state = cell(x[1:2, t], state)
        torch.testing.assert_close(output[1, t, 5:], state[0][0])


def test_a_layer_reads_the_output_of_the_one_below_and_residual_adds_it():
    plain, added = network(layers=2), network(layers=2, residual=True)
    x, mask = rows(7, 4, 1)
    lower = Recurrent(2, cell=CELL).double()
    upper = Recurrent(5, cell=CELL).double()
    lower.cells[0].load_state_dict(plain.cells[0].state_dict())
    upper.cells[0].load_state_dict(plain.cells[1].state_dict())
    below = lower(x, mask).output
    above = upper(below, mask).output
    torch.testing.assert_close(plain(x, mask).output, above)
    torch.testing.assert_close(added(x, mask).output, above + below)


def test_no_mask_is_a_mask_of_ones():
    built = network()
    x, mask = rows(7, 7, 7)
    torch.testing.assert_close(built(x).output, built(x, mask).output)


def test_rows_may_all_be_shorter_than_the_padding():
    built = network(bidirectional=True)
    x, mask = rows(3, 2, 1)
    output, _ = built(x, mask)
    torch.testing.assert_close(output[:, :3], built(x[:, :3], mask[:, :3]).output)
    assert (output[:, 3:] == 0).all()


@pytest.mark.parametrize("kind, alike", [("plain", False), ("locked", True)])
def test_dropout_is_between_layers_and_locked_dropout_is_the_same_at_all_steps(kind, alike):
    built = network(layers=2, dropout=0.5, dropout_kind=kind)
    built.path = "whole"  # which calls on the cell for its input product
    seen = []
    project = built.cells[1].project
    built.cells[1].project = lambda packed: seen.append(packed) or project(packed)
    x, mask = rows(7, 4)
    built(x, mask)
    built.eval()
    built(x, mask)
    trained, evaluated = seen
    dropped = trained == 0
    assert 0 < dropped.sum() < dropped.numel()
    torch.testing.assert_close(trained[~dropped], 2 * evaluated[~dropped])
    first, second = (torch.stack([step[row] for step in dropped.split([2, 2, 2, 2, 1, 1, 1])[:4]]) for row in (0, 1))
    assert (torch.equal(first, first[:1].expand_as(first)), torch.equal(second, second[:1].expand_as(second))) == (
        alike,
        alike,
    )
    assert not torch.equal(first, second)


def test_dropout_changes_nothing_in_evaluation():
    dropped, plain = network(layers=2, dropout=0.5), network(layers=2)
    x, mask = rows(7, 4, 1)
    dropped.eval()
    assert torch.equal(dropped(x, mask).output, plain(x, mask).output)


def test_locked_dropout_is_drawn_once_a_loop():
    built = network(layers=2, dropout=0.5, dropout_kind="locked")
    for cell in built.cells:
        cell.hidden_weight.data.zero_()
        cell.bias.data.fill_(0.3)
    x = torch.ones(3, 2, dtype=torch.float64)
    state = built.initial(3, x)
    loop = built.loop()
    one, _ = loop.advance(loop.project(x), state)
    two, _ = loop.advance(loop.project(x), state)
    assert torch.equal(one, two)
    assert not torch.equal(built.loop().advance(loop.project(x), state)[0], one)
    with pytest.raises(UsageError, match=r"locked dropout is one draw for a whole sequence; .* Recurrent.loop\(\)"):
        built.step(x, state)
    built.eval()
    assert built.step(x, state)[0].shape == (3, 5)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"x": torch.zeros(3, 7)}, r"x of Recurrent has shape \[3, 7\]; it must be \[batch, time, 2\]"),
        ({"x": torch.zeros(3, 7, 4)}, r"x of Recurrent has shape \[3, 7, 4\]; it must be \[batch, time, 2\]"),
        ({"x": torch.zeros(0, 7, 2)}, r"shape \[0, 7, 2\]; it must be .* with at least one row and one step"),
        ({"x": torch.zeros(3, 0, 2)}, r"shape \[3, 0, 2\]; it must be .* with at least one row and one step"),
        ({"mask": torch.ones(3, 7)}, r"mask of Recurrent is torch.float32 \[3, 7\]; it must be torch.bool \[3, 7\]"),
        (
            {"mask": torch.ones(3, 6).bool()},
            r"mask of Recurrent is torch.bool \[3, 6\]; it must be torch.bool \[3, 7\]",
        ),
        (
            {"mask": torch.tensor([[1] * 7, [0] * 7, [1] * 7]).bool()},
            "mask of Recurrent: row 1 has no real position; every row needs one. Leave empty rows out.",
        ),
        (
            {"mask": torch.tensor([[1] * 7, [1] * 7, [0, 1, 1, 0, 1, 0, 0]]).bool()},
            r"mask of Recurrent: row 2 is 0110100 \(1 = real\); real positions must come first, padding last.",
        ),
        (
            {"state": (torch.zeros(2, 5),)},
            r"state of Recurrent has the shapes \[\[2, 5\]\]; it must have \[\[3, 5\]\]. Take it from `initial`",
        ),
        ({"state": (torch.zeros(3, 5),) * 2}, r"state of Recurrent has the shapes .*; it must have \[\[3, 5\]\]"),
        ({"state": torch.zeros(3, 5)}, r"state of Recurrent must be a tuple of tensors .*, not Tensor"),
    ],
)
def test_wrong_input_is_named(given, message):
    built = Recurrent(2, cell=CELL)
    with pytest.raises(UsageError, match=message):
        built(**{"x": torch.zeros(3, 7, 2), **given})


def test_wrong_steps_are_named():
    built = Recurrent(2, cell=CELL)
    state = built.initial(3, torch.zeros(1))
    with pytest.raises(UsageError, match=r"x of a step of Recurrent has shape \[3, 4\]; it must be \[batch, 2\]"):
        built.step(torch.zeros(3, 4), state)
    with pytest.raises(UsageError, match=r"state of Recurrent has the shapes \[\[3, 5\]\]; it must have \[\[4, 5\]\]"):
        built.step(torch.zeros(4, 2), state)
    with pytest.raises(UsageError, match=r"a bidirectional Recurrent cannot step: .* Set bidirectional: false."):
        Recurrent(2, bidirectional=True).loop()


def test_a_learned_first_state_starts_at_zeros_and_is_trained():
    built, plain = network(layers=2, bidirectional=True, initial="learned"), network(layers=2, bidirectional=True)
    x, mask = rows(7, 4, 1)
    assert [tuple(first.shape) for first in built.first] == [(5,)] * 4
    torch.testing.assert_close(built(x, mask).output, plain(x, mask).output)
    built(x, mask).output.sum().backward()
    assert all(first.grad.abs().min() > 0 for first in built.first)
    with torch.no_grad():
        for number, first in enumerate(built.first):
            first.fill_(number + 1.0)
    assert [tensor[0, 0].item() for tensor in built.initial(3, x)] == [1.0, 2.0, 3.0, 4.0]
    torch.testing.assert_close(built(x, mask).output, plain(x, mask, built.initial(3, x)).output)
    assert {name for name in built.state_dict() if name.startswith("first")} == {f"first.{n}" for n in range(4)}


def test_a_carried_state_is_cut_off_and_begins_anew_where_a_document_starts():
    built = network(layers=2, initial="learned")
    x, _ = rows(7, 7, 7)
    with torch.no_grad():
        built.first[1].fill_(0.5)
    _, state = built(x)
    carried = built.carry(state)
    assert all(torch.equal(one, other) for one, other in zip(carried, state, strict=True))
    assert not any(tensor.requires_grad for tensor in carried)
    anew = built.carry(state, torch.tensor([False, True, False]))
    assert torch.equal(anew[1][1], built.first[1])
    assert torch.equal(anew[0][[0, 2]], state[0][[0, 2]])
    (grad,) = torch.autograd.grad(built(x, None, anew).output.sum(), built.first[1])
    assert grad.abs().sum() > 0  # the rows that begin anew still teach their first state
    pieces, moving = [], None
    for piece in x.split((2, 3, 2), 1):
        output, ends = built(piece, None, moving)
        pieces.append(output)
        moving = built.carry(ends)
    torch.testing.assert_close(torch.cat(pieces, 1), built(x).output)


def test_what_cannot_be_carried_is_named():
    built = network()
    x, _ = rows(7, 7, 7)
    _, state = built(x)
    with pytest.raises(UsageError, match=r"starts of Recurrent.carry is torch.bool \[2\]; it must be torch.bool \[3\]"):
        built.carry(state, torch.zeros(2, dtype=torch.bool))
    with pytest.raises(UsageError, match=r"state of Recurrent has the shapes .*; it must have \[\[3, 5\]\]"):
        built.carry((*state, *state))
    with pytest.raises(UsageError, match=r"bidirectional Recurrent cannot carry its state .* Set bidirectional: false"):
        network(bidirectional=True).carry((*state, *state))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_named_with_its_place(number):
    built = Recurrent(2, cell=CELL)
    x, mask = torch.zeros(3, 7, 2), torch.arange(7) < torch.tensor([[7], [2], [4]])
    x[2, 3, 1] = number
    with pytest.raises(UsageError, match=rf"x of Recurrent holds {number} at row 2, step 3, which is a real position"):
        built(x, mask)
    mask[2, 3] = False
    assert built(x, mask).output.isfinite().all()
    assert Recurrent(2, cell={**CELL, "reset": "after"})(torch.full((1, 2, 2), 3e38)).output.shape == (1, 2, 5)


def test_a_type_that_does_not_fit_is_named(monkeypatch):
    built = Recurrent(2, cell=CELL)
    with pytest.raises(UsageError, match=r"x of Recurrent is torch.int64, its weights are torch.float32. Convert one"):
        built(torch.zeros(3, 7, 2, dtype=torch.long))
    with pytest.raises(UsageError, match=r"x of Recurrent is torch.float16, its weights are torch.float32"):
        built(torch.zeros(3, 7, 2).half())
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_fp16_supported", lambda: False)
    with pytest.raises(UsageError, match=r"torch.float16, which this processor does not have. Use torch.bfloat16"):
        built.half()(torch.zeros(3, 7, 2).half())


def test_recurrent_dropout_is_drawn_once_a_loop_and_zoneout_at_every_step():
    torch.manual_seed(3)
    cell = {"kind": "gru", "hidden_size": 40, "recurrent_dropout": 0.5, "zoneout": 0.5}
    built = Recurrent(2, cell=cell)
    held = built.loop()._held[0]
    h = torch.zeros(3, 40)
    one, two = held._draw(h), held._draw(h)
    assert one.seen is two.seen
    assert 0 < (one.seen == 0).sum() < 120
    assert set(one.seen.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(one.kept[0], two.kept[0])
    assert set(one.kept[0].unique().tolist()) == {0.0, 1.0}
    with pytest.raises(UsageError, match=r"recurrent dropout is one draw for a whole sequence; .* Recurrent.loop\(\)"):
        built.step(torch.zeros(3, 2), (h,))
    built.eval()
    assert built.step(torch.zeros(3, 2), (h,))[0].shape == (3, 40)


def test_zoneout_is_as_frequent_in_training_as_evaluation_expects():
    torch.manual_seed(3)
    plain = Recurrent(2, cell={"kind": "lstm", "hidden_size": 5})
    zoned = Recurrent(2, cell={"kind": "lstm", "hidden_size": 5, "zoneout": 0.25})
    zoned.load_state_dict(plain.state_dict())
    x = torch.randn(1, 1, 2)
    first = (torch.randn(1, 5), torch.randn(1, 5))
    new = plain(x, None, first).state
    with torch.no_grad():
        draws = zoned(x.expand(4000, 1, 2), None, tuple(t.expand(4000, 5) for t in first)).state
    wanted = [0.25 * old + 0.75 * fresh for old, fresh in zip(first, new, strict=True)]
    torch.testing.assert_close([draw.mean(0, keepdim=True) for draw in draws], wanted, rtol=0, atol=0.05)
    torch.testing.assert_close(list(zoned.eval()(x, None, first).state), wanted)


def test_wrong_settings_are_named():
    with pytest.raises(SettingsError, match=r"initial 'ones' of a recurrent network is not known. Known: learned"):
        Recurrent(2, initial="ones")
    with pytest.raises(SettingsError, match=r"layers of Recurrent is 0; give a whole number of at least 1"):
        Recurrent(2, layers=0)
    with pytest.raises(SettingsError, match=r"a dropout rate of 1.0 was given; it must be at least 0 and below 1"):
        Recurrent(2, dropout=1.0)
    with pytest.raises(SettingsError, match=r"no cell is called 'lstn'. Did you mean 'lstm'"):
        Recurrent(2, cell="lstn")
    with pytest.raises(
        SettingsError, match=r"no setting of the cell 'gru' is called 'hidden'. Did you mean 'hidden_size'"
    ):
        Recurrent(2, cell={"kind": "gru", "hidden": 5})
    with pytest.raises(SettingsError, match=r"hidden_size of a cell is 0; give a whole number of at least 1"):
        CELLS.build({"kind": "lstm", "hidden_size": 0}, 2)
    with pytest.raises(SettingsError, match=r"input_size of a cell is 0"):
        CELLS.build("lstm", 0)
    with pytest.raises(SettingsError, match=r"input_size of Recurrent is None; give a whole number of at least 1"):
        Recurrent(None)
    with pytest.raises(SettingsError, match=r"\[cell\] no cell is called 'lstn'"):
        Recurrent(2, cell="lstn")


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda net, x, s: net(x.double(), None, s), r"x of Recurrent is torch.float64, its weights are torch.float32"),
        (lambda net, x, s: net(x, [[True]], s), r"mask of Recurrent must be a tensor of torch.bool, not a list"),
        (lambda net, x, s: net(x, None, (s[0].double(), s[1])), r"state of Recurrent: tensor 0 is torch.float64, the"),
        (
            lambda net, x, s: net(x, None, (s[0], s[1] / 0)),
            r"tensor 1 holds nan at \[0, 0\]; a state's numbers are finite",
        ),
        (lambda net, x, s: net.step(x[:, 0].double(), s), r"x of a step of Recurrent is torch.float64, its weights"),
        (lambda net, x, s: net.cells[0](x[:, 0].double(), s), r"x of the cell LSTM is torch.float64, its weights are"),
        (lambda net, x, s: net.cells[0](x[:, 0], (s[0], s[1].long())), r"the cell LSTM: tensor 1 is torch.int64, the"),
    ],
)
def test_inputs_and_states_of_other_types_are_refused(use, message):
    net = Recurrent(2, cell={"kind": "lstm", "hidden_size": 5})
    x = torch.zeros(3, 7, 2)
    with pytest.raises(UsageError, match=message):
        use(net, x, net.initial(3, x))


@pytest.mark.parametrize("kind", ["lstm", "gru", "elman"])
@pytest.mark.parametrize("steps", [1, 7])
def test_a_state_of_one_row_that_lies_as_a_column(kind, steps):
    """Its rows are one number apart, which a library of products takes for a mistake."""
    net = Recurrent(3, cell={"kind": kind, "hidden_size": 20})
    x, columns = torch.randn(1, steps, 3), [torch.randn(20, 1) for _ in net.state_sizes]
    weights = [torch.randn(20, 1).t() for _ in net.state_sizes]

    def results(path):
        net.path = path
        state = tuple(column.clone().requires_grad_() for column in columns)
        found = net(x, state=tuple(part.t() for part in state))
        total = sum((end * weight).sum() for end, weight in zip(found.state, weights, strict=True))
        return [found.output, *torch.autograd.grad(total, (*state, *net.parameters()))]

    for ours, plain in zip(results(None), results("plain"), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "cell",
    [
        {"kind": "gru", "reset": "after", "layer_norm": True, "outer_bias": True},
        {"kind": "lstm", "layer_norm": True, "peephole": "diagonal"},
    ],
)
def test_going_back_twice_gives_the_same_gradients_and_padding_gets_none(cell):
    torch.manual_seed(3)
    built = Recurrent(2, cell={**cell, "hidden_size": 5}, bidirectional=True).double()
    x, mask = rows(4, 7, 1)
    x[~mask] = float("nan")
    wanted = (x.requires_grad_(), *built.parameters())
    output = built(x, mask).output
    torch.manual_seed(7)
    given = torch.randn_like(output)
    once = torch.autograd.grad(output, wanted, given, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(output, wanted, given), once, rtol=0, atol=0)
    assert (once[0][~mask] == 0).all() and (output[~mask] == 0).all()
    assert all(gradient.isfinite().all() and gradient.any() for gradient in once)


def test_an_output_may_be_written_to():
    x, mask = rows(7, 4, 1)
    output = network(bidirectional=True)(x, mask).output
    torch.testing.assert_close(output.clone().mul(2), output.mul_(2))
