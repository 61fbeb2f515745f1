"""The simple recurrent network: the new state is a squashed sum of input and old state."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.layers.cells.base import CELLS, Cell, Initialisation, State
from unrolled.layers.kernels import steps


@CELLS.register("elman")
class Elman(Cell):
    """Simple recurrent network (Elman 1990, "Finding structure in time").

    h' = g(U h + W x + b)             g = tanh or relu

    State: (h,). It has no gates, and none of the gated cells' options.
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

    def move(self, projected: Tensor, state: State, seen: Tensor | None) -> State:
        total = self.add_past(projected, state[0], seen, self.rows("hidden"))
        return (steps.tanh(total) if self.activation == "tanh" else total.relu(),)
