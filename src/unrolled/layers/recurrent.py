"""A cell unrolled over time: stacked, in one or two directions, over rows of different lengths."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Part
from unrolled.layers.cells import CELLS, Cell, State
from unrolled.layers.cells.base import check_state
from unrolled.layers.dropout import DROPOUTS


class Sequence(NamedTuple):
    """A whole sequence run through."""

    output: Tensor  # [batch, time, directions * hidden], exactly 0 at padding
    state: State  # at each row's true end (the backward direction's: at its first symbol); see `Recurrent`


class Recurrent(nn.Module):
    """``layers`` of a cell over time; each layer reads the output sequence of the one below.

    ``bidirectional``: h_t = h_t^forward ⊕ h_t^backward, the backward one starting at each row's true end (Schuster &
    Paliwal 1997). ``dropout`` is between layers, ``plain`` or ``locked`` (one draw for all steps); ``residual`` adds
    a layer's input to its output from the second layer on (Wu et al. 2016, GNMT).

    A state is a flat tuple of tensors [batch, hidden]: layer by layer, in each the forward and then the backward
    direction, in each the cell's own tensors (``h`` first). What a row gets never depends on its neighbours or on
    its padding.
    """

    def __init__(
        self,
        input_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
        residual: bool = False,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise SettingsError(f"layers {layers} was given; a recurrent network has at least 1.")
        self.input_size = input_size
        self.layers = layers
        self.directions = 2 if bidirectional else 1
        self.residual = residual
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout})
        self.cells = nn.ModuleList()
        size = input_size
        for _ in range(layers):
            built = [CELLS.build(cell, size) for _ in range(self.directions)]
            self.cells.extend(built)
            size = built[0].hidden_size * self.directions
        self.hidden_size = size // self.directions
        self.output_size = size

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """Sizes of the state's tensors, each [batch, size]."""
        return tuple(size for cell in self.cells for size in cell.state_sizes)

    def initial(self, batch: int, like: Tensor) -> State:
        """Zeros for ``batch`` rows, with the type and the device of ``like``."""
        return tuple(tensor for cell in self.cells for tensor in cell.initial(batch, like))

    def forward(self, x: Tensor, mask: Tensor | None = None, state: State | None = None) -> Sequence:
        """Run ``x`` [batch, time, input] through; ``mask`` bool [batch, time], True = real, None = all real.

        Each row's real positions come first and are at least one. UsageError for anything else.
        """
        if x.dim() != 3 or x.shape[2] != self.input_size or 0 in x.shape:
            raise UsageError(
                f"x of Recurrent has shape {list(x.shape)}; it must be [batch, time, {self.input_size}], "
                "with at least one row and one step."
            )
        if mask is None:
            mask = x.new_ones(x.shape[:2], dtype=torch.bool)
        lengths = _lengths(mask, x)
        if state is None:
            state = self.initial(x.shape[0], x)
        check_state(state, self.state_sizes, x.shape[0], "Recurrent")
        x = x.masked_fill(~mask.unsqueeze(2), 0.0)
        ends: list[Tensor] = []
        for layer in range(self.layers):
            below = x
            if layer:
                x = self.dropout(x)
            parts = []
            for direction in range(self.directions):
                cell, own = self._cell(layer, direction), self._slice(layer, direction)
                output, end = _scan(cell, x, mask, lengths, state[own], backward=direction == 1)
                parts.append(output)
                ends.extend(end)
            x = torch.cat(parts, 2) if self.directions == 2 else parts[0]
            if layer and self.residual:
                x = x + below
        return Sequence(x, tuple(ends))

    def project(self, x: Tensor) -> Tensor:
        """The first layer's input product, [..., input] → [..., gates * hidden]: for all steps at once."""
        return self._cell(0, 0).project(x)

    def advance(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of all layers from a projected input [batch, gates * hidden]: the output [batch, hidden], the state."""
        new: list[Tensor] = []
        output = projected
        for layer in range(self.layers):
            cell, own = self._cell(layer, 0), self._slice(layer, 0)
            if layer:
                below = output
                projected = cell.project(self.dropout(output.unsqueeze(1)).squeeze(1))
            end = cell.advance(projected, state[own])
            new.extend(end)
            output = end[0] + below if layer and self.residual else end[0]
        return output, tuple(new)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of all layers from ``x`` [batch, input]; UsageError for two directions or sizes that do not fit."""
        if self.directions == 2:
            raise UsageError("a bidirectional Recurrent cannot step: its backward direction needs the whole sequence.")
        if x.dim() != 2 or x.shape[1] != self.input_size:
            raise UsageError(f"x of a step has shape {list(x.shape)}; it must be [batch, {self.input_size}].")
        check_state(state, self.state_sizes, x.shape[0], "Recurrent")
        return self.advance(self.project(x), state)

    def _cell(self, layer: int, direction: int) -> Cell:
        return self.cells[layer * self.directions + direction]  # type: ignore[return-value]

    def _slice(self, layer: int, direction: int) -> slice:
        width = len(self._cell(0, 0).state_names)
        start = (layer * self.directions + direction) * width
        return slice(start, start + width)


def _lengths(mask: Tensor, x: Tensor) -> Tensor:
    """Real symbols of each row; UsageError where ``mask`` is not a prefix mask of ``x`` or a row has none."""
    if mask.dtype is not torch.bool or mask.shape != x.shape[:2]:
        raise UsageError(
            f"mask of Recurrent is {mask.dtype} {list(mask.shape)}; it must be torch.bool {list(x.shape[:2])}, True = real."
        )
    lengths = mask.sum(1)
    prefix = torch.arange(mask.shape[1], device=mask.device) < lengths.unsqueeze(1)
    empty, broken = (lengths == 0), (mask != prefix).any(1)
    if bool((empty | broken).any()):
        row = int((empty | broken).nonzero()[0])
        if bool(empty[row]):
            raise UsageError(
                f"mask of Recurrent: row {row} has no real position; every row needs at least one. Leave it out."
            )
        raise UsageError(
            f"mask of Recurrent: row {row} is {''.join('01'[int(real)] for real in mask[row][:40])}…; "
            "real positions must come first, padding last."
        )
    return lengths


def _scan(
    cell: Cell, x: Tensor, mask: Tensor, lengths: Tensor, state: State, *, backward: bool
) -> tuple[Tensor, State]:
    """One layer in one direction, step by step: outputs [batch, time, hidden], 0 at padding, and the last real state."""
    time = torch.arange(mask.shape[1], device=x.device).expand_as(mask)
    order = torch.where(mask, lengths.unsqueeze(1) - 1 - time, time) if backward else time
    projected = cell.project(x).gather(1, order.unsqueeze(2).expand(-1, -1, len(cell.gates) * cell.hidden_size))
    outputs = []
    for t in range(mask.shape[1]):
        real = mask[:, t : t + 1]
        new = cell.advance(projected[:, t], state)
        state = tuple(torch.where(real, after, before) for after, before in zip(new, state, strict=True))
        outputs.append(new[0] * real)
    output = torch.stack(outputs, 1)
    return output.gather(1, order.unsqueeze(2).expand_as(output)), state
