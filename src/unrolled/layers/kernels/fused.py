"""The libraries' own fused recurrences: oneDNN's LSTM over a padded block, cuDNN's kernels over packed rows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers.cells import GRU, LSTM, Cell, Elman, State
from unrolled.layers.kernels.order import Order

_ALIGNED = 16  # input columns are filled up to a multiple of this; odd widths are three times as slow in bfloat16
_STILL = 1e9  # σ(±1e9) is exactly 1 and 0 in every type


def fusable(cell: Cell) -> bool:
    """Whether cuDNN has this cell: LSTM, Elman, and the GRU with its reset gate after the product."""
    return cell.bare and (type(cell) in (LSTM, Elman) or (type(cell) is GRU and cell.reset == "after"))


def fused_packed(cell: Cell, x: Tensor, order: Order, state: State, dtype: torch.dtype) -> tuple[Tensor, State]:
    """Packed ``x`` [Σ counts, input] in one call; what torch.nn runs for a PackedSequence, without its sorting."""
    weights = [weight.to(dtype) for weight in _torch_weights(cell)]
    counts = torch.tensor(order.counts)
    first = [tensor.to(dtype).unsqueeze(0) for tensor in state]
    options = (weights, True, 1, 0.0, cell.training, False)
    if isinstance(cell, LSTM):
        output, *ends = torch.lstm(x.to(dtype), counts, first, *options)
    elif isinstance(cell, GRU):
        output, *ends = torch.gru(x.to(dtype), counts, first[0], *options)
    else:
        run = torch.rnn_tanh if isinstance(cell, Elman) and cell.activation == "tanh" else torch.rnn_relu
        output, *ends = run(x.to(dtype), counts, first[0], *options)
    return output, tuple(end.squeeze(0) for end in ends)


def fused_padded(cell: LSTM, x: Tensor, order: Order, state: State, dtype: torch.dtype) -> tuple[Tensor, State]:
    """Packed ``x`` laid out as a padded block, which oneDNN runs two to four times as fast as a packed one.

    A row's last C must survive the padding behind it. One more input column is 1 there, and its weights drive the
    forget gate to 1 and the input gate to 0 exactly: C stands still, with derivative 1, and nothing else has any.
    """
    input_weight, *others = (weight.to(dtype) for weight in _torch_weights(cell))
    block = order.pad(x.to(dtype))
    if not order.even:
        still = input_weight.new_zeros(len(input_weight), _ALIGNED - cell.input_size % _ALIGNED)
        still[cell.rows("input"), 0], still[cell.rows("forget"), 0] = -_STILL, _STILL
        input_weight = torch.cat((input_weight, still), 1)
        flag = functional.pad(order.padding().to(dtype).unsqueeze(2), (0, still.shape[1] - 1))
        block = torch.cat((block, flag), 2)
    first = [tensor.to(dtype).unsqueeze(0) for tensor in state]
    output, _, memory = torch.lstm(block, first, [input_weight, *others], True, 1, 0.0, True, False, False)
    packed = order.unpad(output)
    return packed, (order.last(packed), memory.squeeze(0))


def _torch_weights(cell: Cell) -> list[Tensor]:
    """The cell's weights as torch.nn has them: input, hidden, and a bias for each; gates in its order."""
    weights = [cell.input_weight, cell.hidden_weight, *cell.biases()]
    if not isinstance(cell, GRU):
        return weights
    update, reset, candidate = (cell.rows(gate) for gate in ("update", "reset", "candidate"))
    return [torch.cat((weight[reset], -weight[update], weight[candidate])) for weight in weights]
