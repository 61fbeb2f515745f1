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


def test_wrong_settings_are_named():
    with pytest.raises(SettingsError, match=r"layers 0 was given; a recurrent network has at least 1"):
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
