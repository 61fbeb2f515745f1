"""The simple recurrent network: the new state is a squashed sum of input and old state."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.layers.cells.base import CELLS, Cell, Initialisation, State


@CELLS.register("elman")
class Elman(Cell):
    """Simple recurrent network (Elman 1990, "Finding structure in time").

    h' = g(U h + W x + b)             g = tanh or relu

    State: (h,).
    """

    gates = ("hidden",)
    formula = "mn + n² + n"

    def __init__(
        self,
        input_size: int,
        /,
        *,
        hidden_size: int = 128,
        activation: Literal["tanh", "relu"] = "tanh",
        recurrent_init: Initialisation = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size, recurrent_init)
        if activation not in ("tanh", "relu"):
            raise SettingsError(f"activation {activation!r} of the cell 'elman' is not known. Known: relu, tanh.")
        self.activation = activation

    def advance(self, projected: Tensor, state: State) -> State:
        (h,) = state
        total = torch.addmm(projected, h.to(projected.dtype), self.hidden_weight.t())
        return (total.tanh() if self.activation == "tanh" else total.relu(),)
