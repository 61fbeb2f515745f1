"""Gated recurrent unit: one state that an update gate moves towards a candidate."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.layers.cells.base import CELLS, Cell, Initialisation, State
from unrolled.layers.kernels import steps


@CELLS.register("gru")
class GRU(Cell):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078).

    z = σ(W_z [h, x] + b_z)           how much of the new state comes in
    r = σ(W_r [h, x] + b_r)           how much of the past the candidate sees
    n = tanh(W x + U (r * h) + b)     the candidate, the reset gate ``before`` the product
    n = tanh(W x + c + r * (U h + b)) or ``after`` it, as cuDNN and torch.nn.GRU have it
    h' = (1 - z) * h + z * n

    State: (h,). PyTorch and ONNX write z for what is 1 - z here. ``outer_bias`` adds the c that no gate touches, which
    torch.nn, Keras and ONNX have with the reset gate after the product; without, c is 0.

    ``layer_norm`` (Ba et al. 2016): the rows of z and r are normalised together, the candidate's by themselves, in the
    input product and in the hidden one: LN(W_zr x) + LN(U_zr h) + b_zr, and LN(W x) + LN(U (r * h)) + b or
    LN(W x) + r * (LN(U h) + b). ``recurrent_dropout`` and ``zoneout``: see `Cell`; (1 - z) * h sees all of h.
    """

    gates = ("update", "reset", "candidate")
    formula = "3(mn + n² + n)"
    normed = (2, 1)

    def __init__(
        self,
        input_size: int,
        /,
        *,
        hidden_size: int = 128,
        reset: Literal["before", "after"] = "before",
        outer_bias: bool = False,
        layer_norm: bool = False,
        recurrent_dropout: float = 0.0,
        zoneout: float = 0.0,
        recurrent_init: Initialisation = "orthogonal",
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            recurrent_init,
            layer_norm=layer_norm,
            recurrent_dropout=recurrent_dropout,
            zoneout=zoneout,
        )
        if reset not in ("before", "after"):
            raise SettingsError(f"reset {reset!r} of the cell 'gru' is not known. Known: after, before.")
        self.reset = reset
        if outer_bias and reset == "before":
            raise SettingsError(
                "outer_bias of the cell 'gru' needs reset 'after': before the product the candidate has one bias, "
                "which no gate touches."
            )
        self.outer_bias = nn.Parameter(torch.zeros(hidden_size)) if outer_bias else None
        self.formula += (" + n" if outer_bias else "") + (" + 6n" if layer_norm else "")

    def biases(self) -> tuple[Tensor, Tensor]:
        if self.reset == "before":
            return super().biases()
        inside = self.bias[self.rows("candidate")]
        others = self.bias[: 2 * self.hidden_size]
        outside = torch.zeros_like(inside) if self.outer_bias is None else self.outer_bias
        return torch.cat((others, outside)), torch.cat((torch.zeros_like(others), inside))

    def move(self, projected: Tensor, state: State, seen: Tensor | None) -> State:
        (h,) = state
        n = self.hidden_size
        gates, own = slice(0, 2 * n), slice(2 * n, 3 * n)
        both, candidate = projected.split((2 * n, n), 1)
        total = self.add_past(both, h, seen, gates)
        if steps.plain(total, h) and h.shape == (len(total), n) and candidate.shape == h.shape:
            return (self._step(total, candidate, h, seen),)
        update, reset = total.sigmoid().chunk(2, 1)
        if self.reset == "before":
            candidate = self.add_past(candidate, reset * h.to(reset.dtype), seen, own)
        else:
            inside = self.bias[own].to(reset.dtype).expand_as(candidate)
            candidate = torch.addcmul(candidate, reset, self.add_past(inside, h, seen, own))
        return (torch.lerp(h, candidate.tanh().to(h.dtype), update.to(h.dtype)),)

    def _step(self, total: Tensor, candidate: Tensor, h: Tensor, seen: Tensor | None) -> Tensor:
        """`move` in a search, from the total of update and reset gate [batch, 2 * hidden] and the candidate's W x."""
        own = self.rows("candidate")
        if self.reset == "before":
            candidate = self.add_past(candidate, steps.gru_gates(total, h), seen, own)
        else:
            inside = self.add_past(self.bias[own].expand_as(candidate), h, seen, own)
            candidate = candidate + steps.gru_gates(total, inside)
        return steps.gru_update(total, candidate, h)
