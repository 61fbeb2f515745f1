"""The recurrences that take the place of `torch.nn.LSTM`, `GRU` and `RNN`, as they stand in anybody's code."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers.cells.base import Initialisation
from unrolled.layers.cells.lstm import Peephole
from unrolled.layers.torch_like import Initial, Lengths, OneState, TorchLike, TorchOptions, described


class LSTM(TorchLike):
    """Long short-term memory in the place of `torch.nn.LSTM`; equations and options: `unrolled.layers.cells.LSTM`.

    output, (h_n, c_n) = lstm(input, (h_0, c_0))

    The positional arguments are torch's. The keyword ones are the cell's (``peephole`` "diagonal" or True, "full";
    ``coupled``; ``layer_norm``; ``recurrent_dropout``; ``zoneout``; ``forget_bias``, which needs ``bias``) and the
    recurrence's (``dropout_kind``, ``residual``, ``initial``). ``proj_size`` 0 is none. Each gate has one bias where
    torch adds two, which is the same function; weights start as the cell's do.

    Oracles: torch.nn.LSTM, ONNX Runtime's LSTM with peepholes and input_forget, Keras's LSTM.
    """

    states = ("h_0", "c_0")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        peephole: Peephole = "none",
        coupled: bool = False,
        layer_norm: bool = False,
        recurrent_dropout: float = 0.0,
        zoneout: float = 0.0,
        forget_bias: float = 1.0,
        recurrent_init: Initialisation = "orthogonal",
        dropout_kind: Literal["plain", "locked"] = "plain",
        residual: bool = False,
        initial: Initial = "zeros",
    ) -> None:
        if proj_size and not 0 < proj_size < hidden_size:
            raise SettingsError(f"proj_size of LSTM is {proj_size}; it must be 0 (none) or below hidden_size.")
        cell = {
            "kind": "lstm",
            "hidden_size": hidden_size,
            "projection_size": proj_size or None,
            "peephole": peephole,
            "coupled": coupled,
            "layer_norm": layer_norm,
            "recurrent_dropout": recurrent_dropout,
            "zoneout": zoneout,
            "forget_bias": forget_bias,
            "recurrent_init": recurrent_init,
        }
        options = TorchOptions(num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(input_size, cell, options, dropout_kind=dropout_kind, residual=residual, initial=initial)
        self.proj_size = proj_size

    def forward(
        self,
        input: Tensor | PackedSequence,  # noqa: A002
        hx: tuple[Tensor, Tensor] | None = None,
        *,
        mask: Tensor | None = None,
        lengths: Lengths | None = None,
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, Tensor]]:
        """Output [time, batch, directions · output] and (h_n, c_n), in the layouts of `TorchLike`.

        ``hx``: (h_0, c_0); None is zeros. On padded input give ``lengths`` [batch], or a bool ``mask`` laid out as the
        input, True = real, real positions first; it is the packed result without packing. UsageError for what does not
        fit.
        """
        state = None
        if hx is not None:
            if not isinstance(hx, tuple | list) or len(hx) != 2 or not all(isinstance(part, Tensor) for part in hx):
                raise UsageError(f"hx of LSTM must be two tensors, (h_0, c_0), not {described(hx)}.")
            state = list(hx)
        output, (hidden, memory) = self._run(input, state, mask, lengths)
        return output, (hidden, memory)


class GRU(OneState):
    """Gated recurrent unit in the place of `torch.nn.GRU`; equations and options: `unrolled.layers.cells.GRU`.

    output, h_n = gru(input, h_0)

    The positional arguments are torch's. The keyword ones are the cell's (``layer_norm``, ``recurrent_dropout``,
    ``zoneout``) and the recurrence's (``dropout_kind``, ``residual``, ``initial``). ``reset`` is "after" here, the
    form of torch.nn.GRU with its second bias of the candidate; "before" is the form of the paper (Cho et al. 2014), and
    what the cell is everywhere else in this library. The other gates have one bias where torch adds two.

    Oracles: torch.nn.GRU, ONNX Runtime's GRU and Keras's, both forms.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        reset: Literal["before", "after"] = "after",
        layer_norm: bool = False,
        recurrent_dropout: float = 0.0,
        zoneout: float = 0.0,
        recurrent_init: Initialisation = "orthogonal",
        dropout_kind: Literal["plain", "locked"] = "plain",
        residual: bool = False,
        initial: Initial = "zeros",
    ) -> None:
        cell = {
            "kind": "gru",
            "hidden_size": hidden_size,
            "reset": reset,
            "outer_bias": reset == "after" and bias is True,
            "layer_norm": layer_norm,
            "recurrent_dropout": recurrent_dropout,
            "zoneout": zoneout,
            "recurrent_init": recurrent_init,
        }
        options = TorchOptions(num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(input_size, cell, options, dropout_kind=dropout_kind, residual=residual, initial=initial)


class Elman(OneState):
    """Simple recurrent network in the place of `torch.nn.RNN`; equations: `unrolled.layers.cells.Elman`.

    output, h_n = elman(input, h_0)

    The positional arguments are torch's. The keyword ones are the recurrence's (``dropout_kind``, ``residual``,
    ``initial``). It has one bias where torch adds two.

    Oracles: torch.nn.RNN, ONNX Runtime's RNN, Keras's SimpleRNN.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        recurrent_init: Initialisation = "orthogonal",
        dropout_kind: Literal["plain", "locked"] = "plain",
        residual: bool = False,
        initial: Initial = "zeros",
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise SettingsError(f"nonlinearity of Elman is {nonlinearity!r}. Known: relu, tanh.")
        cell = {
            "kind": "elman",
            "hidden_size": hidden_size,
            "activation": nonlinearity,
            "recurrent_init": recurrent_init,
        }
        options = TorchOptions(num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(input_size, cell, options, dropout_kind=dropout_kind, residual=residual, initial=initial)
        self.nonlinearity = nonlinearity
