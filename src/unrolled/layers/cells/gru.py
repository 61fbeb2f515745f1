"""Gated recurrent unit: one state that an update gate moves towards a candidate."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers.cells.base import CELLS, Cell, Initialisation, State


@CELLS.register("gru")
class GRU(Cell):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078).

    z = σ(W_z [h, x] + b_z)           how much of the new state comes in
    r = σ(W_r [h, x] + b_r)           how much of the past the candidate sees
    n = tanh(W x + U (r * h) + b)     the candidate, the reset gate ``before`` the product
    n = tanh(W x + r * (U h + b))     or ``after`` it, as cuDNN and torch.nn.GRU have it
    h' = (1 - z) * h + z * n

    State: (h,). PyTorch and ONNX write z for what is 1 - z here.
    """

    gates = ("update", "reset", "candidate")
    formula = "3(mn + n² + n)"

    def __init__(
        self,
        input_size: int,
        /,
        *,
        hidden_size: int = 128,
        reset: Literal["before", "after"] = "before",
        recurrent_init: Initialisation = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size, recurrent_init)
        if reset not in ("before", "after"):
            raise SettingsError(f"reset {reset!r} of the cell 'gru' is not known. Known: after, before.")
        self.reset = reset

    def biases(self) -> tuple[Tensor, Tensor]:
        if self.reset == "before":
            return super().biases()
        inside = self.bias[self.rows("candidate")]
        others = self.bias[: 2 * self.hidden_size]
        return torch.cat((others, torch.zeros_like(inside))), torch.cat((torch.zeros_like(others), inside))

    def project(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.input_weight, self.biases()[0])

    def advance(self, projected: Tensor, state: State) -> State:
        (h,) = state
        n = self.hidden_size
        both, candidate = projected.split((2 * n, n), 1)
        gates_weight, candidate_weight = self.hidden_weight.t().split((2 * n, n), 1)
        seen = h.to(projected.dtype)
        update, reset = torch.addmm(both, seen, gates_weight).sigmoid().chunk(2, 1)
        if self.reset == "before":
            candidate = torch.addmm(candidate, reset * seen, candidate_weight)
        else:
            past = torch.addmm(self.bias[2 * n :], seen, candidate_weight)
            candidate = torch.addcmul(candidate, reset, past)
        return (torch.lerp(h, candidate.tanh().to(h.dtype), update.to(h.dtype)),)
