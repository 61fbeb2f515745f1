"""Stepping through one sequence, where each step's input depends on the step before."""

from __future__ import annotations

from torch import Tensor

from unrolled.layers.cells import Cell, State
from unrolled.layers.dropout import Dropout, LockedDropout
from unrolled.layers.kernels.choose import Held


class Loop:
    """One pass of a unidirectional `Recurrent` over a sequence, step by step; make a new one for every sequence.

    Weights are cast once, locked dropout is drawn once, and in training the weight gradients of all steps are one
    product. `project` the inputs of all steps at once where they are known.
    """

    def __init__(self, cells: list[Cell], dropout: Dropout, residual: bool, *, deferred: bool = True) -> None:
        self._held = [Held(cell, above=index > 0, deferred=deferred) for index, cell in enumerate(cells)]
        self._cells = cells
        self._dropout = dropout
        self._residual = residual
        self._drawn: dict[int, Tensor] = {}

    def project(self, x: Tensor) -> Tensor:
        """The first layer's input product, [..., input] → [..., gates * hidden]."""
        return self._cells[0].project(x)

    def advance(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of all layers from a projected input [batch, gates * hidden]: output [batch, hidden] and state."""
        new: list[Tensor] = []
        output = projected
        width = len(state) // len(self._held)
        for layer, held in enumerate(self._held):
            below = output
            given = held.project(self._drop(layer, output)) if layer else projected
            end = held.advance(given, state[layer * width : (layer + 1) * width])
            output = end[0] + below if layer and self._residual else end[0]
            new.extend(end)
        return output, tuple(new)

    def _drop(self, layer: int, x: Tensor) -> Tensor:
        if not self._dropout.active:
            return x
        if not isinstance(self._dropout, LockedDropout):
            return self._dropout(x)
        if layer not in self._drawn:
            self._drawn[layer] = self._dropout.draw(len(x), x.shape[1], x)
        return x * self._drawn[layer]
