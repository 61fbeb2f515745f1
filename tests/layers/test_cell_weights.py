"""How cells start, what they hold, and what one step refuses."""

import pytest
import torch

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers.cells import CELLS, GRU, LSTM, Elman


@pytest.mark.parametrize("kind", list(CELLS))
def test_recurrent_weights_start_orthogonal_gate_by_gate(kind):
    cell = CELLS.build({"kind": kind, "hidden_size": 5}, 3)
    for gate in cell.gates:
        block = cell.hidden_weight[cell.rows(gate)]
        torch.testing.assert_close(block @ block.T, torch.eye(5), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", list(CELLS))
def test_uniform_start_is_within_one_over_root_hidden(kind):
    torch.manual_seed(1)
    cell = CELLS.build({"kind": kind, "hidden_size": 49, "recurrent_init": "uniform"}, 3)
    assert 0.9 / 7 < cell.hidden_weight.abs().max() <= 1 / 7


def test_the_forget_bias_starts_at_its_setting_and_other_biases_at_zero():
    bias = LSTM(3, hidden_size=5).bias
    assert bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 10
    assert LSTM(3, hidden_size=5, forget_bias=2.5).bias[5:10].tolist() == [2.5] * 5
    assert GRU(3, hidden_size=5).bias.tolist() == [0.0] * 15


def test_one_step_of_each_cell_by_its_equations():
    torch.manual_seed(2)
    x, h, c = torch.randn(2, 3), torch.randn(2, 5), torch.randn(2, 5)

    def parts(cell):
        for weight in cell.parameters():
            torch.nn.init.normal_(weight)
        return {
            gate: (cell.input_weight[rows], cell.hidden_weight[rows], cell.bias[rows])
            for gate, rows in ((gate, cell.rows(gate)) for gate in cell.gates)
        }

    def total(weights, of_h=h):
        w, u, b = weights
        return x @ w.T + of_h @ u.T + b

    elman = Elman(3, hidden_size=5, activation="relu")
    wanted = total(parts(elman)["hidden"]).clamp(min=0)
    torch.testing.assert_close(elman(x, (h,))[0], wanted)

    lstm = LSTM(3, hidden_size=5)
    gates = {gate: total(weights) for gate, weights in parts(lstm).items()}
    memory = gates["forget"].sigmoid() * c + gates["input"].sigmoid() * gates["candidate"].tanh()
    torch.testing.assert_close(lstm(x, (h, c)), (gates["output"].sigmoid() * memory.tanh(), memory))

    gru = GRU(3, hidden_size=5)
    weights = parts(gru)
    z, r = total(weights["update"]).sigmoid(), total(weights["reset"]).sigmoid()
    n = total(weights["candidate"], r * h).tanh()
    torch.testing.assert_close(gru(x, (h,))[0], (1 - z) * h + z * n)

    after = GRU(3, hidden_size=5, reset="after")
    after.load_state_dict(gru.state_dict())
    w, u, b = weights["candidate"]
    n = (x @ w.T + r * (h @ u.T + b)).tanh()
    torch.testing.assert_close(after(x, (h,))[0], (1 - z) * h + z * n)


def test_one_step_of_each_option_by_its_equations():
    torch.manual_seed(2)
    x, h, c, h_full = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 5), torch.randn(2, 5)

    def norm(given, gain, shift=0.0):
        return gain * (given - given.mean(1, True)) / (given.var(1, correction=0, keepdim=True) + 1e-5).sqrt() + shift

    options = {"projection_size": 4, "layer_norm": True, "coupled": True, "peephole": True, "zoneout": 0.25}
    lstm = LSTM(3, hidden_size=5, **options).eval()
    for weight in lstm.parameters():
        torch.nn.init.normal_(weight)
    assert (lstm.gates, lstm.state_sizes) == (("forget", "candidate", "output"), (4, 5))
    total = norm(x @ lstm.input_weight.T, lstm.input_gain) + norm(h @ lstm.hidden_weight.T, lstm.hidden_gain)
    keep, candidate, show = (total + lstm.bias).chunk(3, 1)
    of_keep, of_show = lstm.peephole_weight
    keep = (keep + of_keep * c).sigmoid()
    memory = keep * c + (1 - keep) * candidate.tanh()
    read = (show + of_show * memory).sigmoid() * norm(memory, lstm.memory_gain, lstm.memory_shift).tanh()
    new = read @ lstm.projection_weight.T
    torch.testing.assert_close(lstm(x, (h, c)), (0.25 * h + 0.75 * new, 0.25 * c + 0.75 * memory))

    full = LSTM(3, hidden_size=5, peephole="full")
    for weight in full.parameters():
        torch.nn.init.normal_(weight)
    write, keep, candidate, show = (x @ full.input_weight.T + h_full @ full.hidden_weight.T + full.bias).chunk(4, 1)
    of_write, of_keep, of_show = full.peephole_weight.chunk(3)
    memory = (keep + c @ of_keep.T).sigmoid() * c + (write + c @ of_write.T).sigmoid() * candidate.tanh()
    wanted = ((show + memory @ of_show.T).sigmoid() * memory.tanh(), memory)
    torch.testing.assert_close(full(x, (h_full, c)), wanted)

    for reset in ("before", "after"):
        gru = GRU(3, hidden_size=5, reset=reset, layer_norm=True, outer_bias=reset == "after")
        for weight in gru.parameters():
            torch.nn.init.normal_(weight)
        (w, own_w), (u, own_u) = gru.input_weight.split((10, 5)), gru.hidden_weight.split((10, 5))
        (g, own_g), (k, own_k) = gru.input_gain.split((10, 5)), gru.hidden_gain.split((10, 5))
        z, r = (norm(x @ w.T, g) + norm(h_full @ u.T, k) + gru.bias[:10]).sigmoid().chunk(2, 1)
        given = norm(x @ own_w.T, own_g)
        if reset == "before":
            n = (given + norm((r * h_full) @ own_u.T, own_k) + gru.bias[10:]).tanh()
        else:
            n = (given + gru.outer_bias + r * (norm(h_full @ own_u.T, own_k) + gru.bias[10:])).tanh()
        torch.testing.assert_close(gru(x, (h_full,))[0], (1 - z) * h_full + z * n)


def test_true_is_the_diagonal_peephole_and_false_is_none():
    assert LSTM(3, hidden_size=5, peephole=True).peephole == "diagonal"
    assert LSTM(3, hidden_size=5, peephole=False).peephole_weight is None
    assert CELLS.build({"kind": "lstm", "hidden_size": 5, "peephole": True}, 3).peephole_weight.shape == (3, 5)


def test_a_step_that_nobody_draws_for_is_refused_in_training():
    cell, x = GRU(3, hidden_size=5, zoneout=0.1), torch.zeros(2, 3)
    state = cell.initial(2, x)
    with pytest.raises(UsageError, match=r"recurrent dropout and zoneout of the cell GRU are drawn by who runs"):
        cell(x, state)
    assert cell(x, state, cell.draw(2, x))[0].shape == (2, 5)
    assert cell.eval()(x, state)[0].shape == (2, 5)


@pytest.mark.parametrize("kind", list(CELLS))
def test_wrong_input_of_one_step_is_named(kind):
    cell = CELLS.build({"kind": kind, "hidden_size": 5}, 3)
    state = cell.initial(2, torch.zeros(1))
    with pytest.raises(UsageError, match=r"x of the cell \w+ has shape \[2, 4\]; it must be \[batch, 3\]"):
        cell(torch.zeros(2, 4), state)
    with pytest.raises(UsageError, match=r"state of the cell \w+ has the shapes .*; it must have \[\[7, 5\]"):
        cell(torch.zeros(7, 3), state)
    with pytest.raises(UsageError, match=r"state of the cell \w+ has the shapes .*\[2, 5\], \[2, 6\]\]; it must have"):
        cell(torch.zeros(2, 3), (*state, torch.zeros(2, 6)))


def test_wrong_settings_of_a_cell_are_named():
    with pytest.raises(SettingsError, match=r"activation 'sin' of the cell 'elman' is not known. Known: relu, tanh."):
        Elman(3, activation="sin")
    with pytest.raises(SettingsError, match=r"reset 'never' of the cell 'gru' is not known. Known: after, before."):
        GRU(3, reset="never")
    with pytest.raises(SettingsError, match=r"peephole 'half' of the cell 'lstm' is not known. Known: diagonal"):
        LSTM(3, peephole="half")
    with pytest.raises(SettingsError, match=r"projection_size of the cell 'lstm' is 0; give at least 1, or leav"):
        LSTM(3, projection_size=0)
    with pytest.raises(SettingsError, match=r"zoneout of a cell is 1.0; it must be at least 0 and below 1"):
        LSTM(3, zoneout=1.0)
    with pytest.raises(SettingsError, match=r"recurrent_dropout of a cell is -0.1; it must be at least 0 and below 1"):
        GRU(3, recurrent_dropout=-0.1)
    with pytest.raises(SettingsError, match=r"outer_bias of the cell 'gru' needs reset 'after'"):
        GRU(3, outer_bias=True)
    with pytest.raises(SettingsError, match=r"recurrent_init 'ones' is not known. Known: orthogonal, uniform."):
        LSTM(3, recurrent_init="ones")
