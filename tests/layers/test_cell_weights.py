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
    with pytest.raises(SettingsError, match=r"recurrent_init 'ones' is not known. Known: orthogonal, uniform."):
        LSTM(3, recurrent_init="ones")
