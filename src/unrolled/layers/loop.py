"""Stepping through one sequence, where each step's input depends on the step before."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells import Cell, State
from unrolled.layers.cells.base import Noise
from unrolled.layers.cells.checks import product_type
from unrolled.layers.dropout import Dropout, LockedDropout
from unrolled.layers.kernels.base import NO_EXTRAS, Extras
from unrolled.layers.kernels.choose import extras_of, has_inner_bias, whole_kernel
from unrolled.layers.kernels.deferred import Deferred, step_cell
from unrolled.layers.surroundings import followed


class Loop:
    """One pass of a unidirectional `Recurrent` over a sequence, step by step; make a new one for every sequence.

    Weights are cast once, locked and recurrent dropout are drawn once, and in training the weight gradients of all
    steps are one product. `project` the inputs of all steps at once where they are known.
    """

    def __init__(self, cells: list[Cell], dropout: Dropout, residual: bool, *, deferred: bool = True) -> None:
        self._held = [_Held(cell, above=index > 0, deferred=deferred) for index, cell in enumerate(cells)]
        self._cells = cells
        self._dropout = dropout
        self._residual = residual
        self._drawn: dict[int, Tensor] = {}

    def project(self, x: Tensor) -> Tensor:
        """The first layer's input product, [..., input] → [..., gates * hidden]."""
        return self._cells[0].project(x)

    def advance(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of all layers from a projected input [batch, gates * hidden]: output [batch, output] and state."""
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
            self._drawn[layer] = self._dropout.draw(x.shape[0], x.shape[1], x)
        return x * self._drawn[layer]


class _Held:
    """A cell's weights, held for the steps of one loop; ``above``: its inputs are known only step by step."""

    def __init__(self, cell: Cell, *, above: bool, deferred: bool) -> None:
        self.cell = cell
        self._above = above
        self._deferred = deferred
        self._ready = False
        self._input: Deferred | None = None
        self._hidden: Deferred | None = None
        self._bias: Tensor | None = None
        self._inner_bias: Tensor | None = None
        self._extras: Extras = NO_EXTRAS
        self._noise: Noise | None = None

    def project(self, x: Tensor) -> Tensor:
        """One step's input product, [batch, input] → [batch, gates * hidden]."""
        self._hold(x)
        if self._input is None or self._bias is None or self.cell.layer_norm:
            return self.cell.project(x)
        return self._input.product(x) + self._bias

    def advance(self, projected: Tensor, state: State) -> State:
        """One step from a projected input; the new state."""
        self._hold(projected)
        noise = self._draw(state[0])
        kernel = None if self._hidden is None else whole_kernel(self.cell, [len(projected)])
        if kernel is None or self._hidden is None:
            return self.cell.advance(projected, state, noise)
        kernel.noise = noise
        return step_cell(kernel, self._hidden, self._inner_bias, projected, state, self._extras)

    def _draw(self, h: Tensor) -> Noise:
        """The step's noise: recurrent dropout is drawn once, zoneout every time."""
        if self._noise is None:
            self._noise = self.cell.draw(h.shape[0], h)
            return self._noise
        return self._noise._replace(kept=self.cell.keep(h.shape[0], h))

    def _hold(self, like: Tensor) -> None:
        if self._ready:
            return
        self._ready = True
        if not self._deferred or not torch.is_grad_enabled() or followed(like) or whole_kernel(self.cell, [1]) is None:
            return
        dtype = product_type(like)
        bias, inner = self.cell.biases()
        self._bias = bias.to(dtype)
        self._inner_bias = inner.to(dtype) if has_inner_bias(self.cell) else None
        self._extras = extras_of(self.cell, dtype)
        self._hidden = Deferred(self.cell.hidden_weight, dtype)
        if self._above:
            self._input = Deferred(self.cell.input_weight, dtype)
