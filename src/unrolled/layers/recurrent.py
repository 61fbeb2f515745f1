"""A cell unrolled over time: stacked, in one or two directions, over rows of different lengths."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Part
from unrolled.layers.cells import CELLS, Cell, State
from unrolled.layers.cells.checks import check_state, check_type, whole
from unrolled.layers.dropout import DROPOUTS, LockedDropout
from unrolled.layers.kernels.choose import Path, run
from unrolled.layers.kernels.layer import PACKED, Lies, joinable, run_layer
from unrolled.layers.kernels.order import Order, order_of
from unrolled.layers.kernels.pair import pairable, run_pair
from unrolled.layers.kernels.plain import over_block
from unrolled.layers.loop import Loop
from unrolled.layers.surroundings import followed, left_alone


class Sequence(NamedTuple):
    """A whole sequence run through."""

    output: Tensor  # [batch, time, directions * output], exactly 0 at padding
    state: State  # at each row's true end (the backward direction's: at its first symbol); see `Recurrent`


class Recurrent(nn.Module):
    """``layers`` of a cell over time; each layer reads the output sequence of the one below.

    ``bidirectional``: h_t = h_t^forward ⊕ h_t^backward, the backward one starting at each row's true end (Schuster &
    Paliwal 1997). ``dropout`` is between layers, ``plain`` or ``locked`` (one draw for all steps); ``residual`` adds
    a layer's input to its output from the second layer on (Wu et al. 2016, GNMT).

    A state is a flat tuple of tensors [batch, size]: layer by layer, in each the forward and then the backward
    direction, in each the cell's own tensors (``h`` first). ``initial``: it starts at zeros, or at vectors that are
    learned (from zeros on). What a row gets never depends on its neighbours or on its padding. ``path`` forces a way of
    running (see kernels/choose.py); None, the default, chooses the fastest. torch.export and torch.jit.trace follow a
    plain loop over the padded block, for one number of steps; torch.func and the meta device take it too.

    To go on where the last piece of the same rows ended (truncated backpropagation through time), give each piece
    what `carry` makes of the state before.
    """

    path: Path | None = None

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
        initial: Literal["zeros", "learned"] = "zeros",
    ) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("layers", layers)):
            if not whole(size):
                raise SettingsError(f"{name} of Recurrent is {size!r}; give a whole number of at least 1.")
        if initial not in ("zeros", "learned"):
            raise SettingsError(f"initial {initial!r} of a recurrent network is not known. Known: learned, zeros.")
        self.input_size = input_size
        self.layers = layers
        self.directions = 2 if bidirectional else 1
        self.residual = residual
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout})
        cells: list[Cell] = []
        for layer in range(layers):
            size = cells[-1].output_size * self.directions if layer else input_size
            cells.extend(CELLS.build(cell, size, where="cell") for _ in range(self.directions))
        self.cells = nn.ModuleList(cells)
        self.hidden_size = cells[0].hidden_size
        self.output_size = cells[0].output_size * self.directions
        self._width = len(cells[0].state_names)
        self.first: nn.ParameterList | None = None
        if initial == "learned":
            self.first = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in self.state_sizes)

    @property
    def _weight(self) -> Tensor:
        return cast(Cell, self.cells[0]).input_weight

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """Sizes of the state's tensors, each [batch, size]."""
        return cast(Cell, self.cells[0]).state_sizes * len(self.cells)

    def initial(self, batch: int, like: Tensor) -> State:
        """The first state of ``batch`` rows, zeros or learned, with the type and the device of ``like``."""
        if self.first is None:
            return tuple(like.new_zeros(batch, size) for size in self.state_sizes)
        return tuple(first.to(like).expand(batch, -1) for first in self.first)

    def carry(self, state: State, starts: Tensor | None = None) -> State:
        """The state with which the next piece of the same rows begins: cut off from the graph that made it.

        Rows where ``starts`` bool [batch] is True begin anew, at the first state: a new document starts there.
        UsageError for two directions, whose backward one knows no piece before.
        """
        if self.directions == 2:
            raise UsageError(
                "a bidirectional Recurrent cannot carry its state to the next piece: its backward direction comes from "
                "the other side. Set bidirectional: false."
            )
        rows = len(state[0]) if isinstance(state, tuple) and state else 0
        check_state(state, self.state_sizes, rows, "Recurrent", self._weight)
        kept = tuple(tensor.detach() for tensor in state)
        if starts is None:
            return kept
        if starts.dtype is not torch.bool or starts.shape != (rows,):
            raise UsageError(
                f"starts of Recurrent.carry is {starts.dtype} {list(starts.shape)}; it must be torch.bool [{rows}], "
                "True where a row begins a new document."
            )
        anew = starts.unsqueeze(1)
        return tuple(
            torch.where(anew, first, old) for first, old in zip(self.initial(rows, kept[0]), kept, strict=True)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None, state: State | None = None) -> Sequence:
        """Run ``x`` [batch, time, input] through; ``mask`` bool [batch, time], True = real, None = all real.

        Each row's real positions come first and are at least one; their numbers are finite (looked at on a processor
        only, where it costs a hundredth: elsewhere a loss that is no number tells). ``state`` None is the first state.
        UsageError for anything else.
        """
        if x.dim() != 3 or x.shape[2] != self.input_size or 0 in x.shape:
            raise UsageError(
                f"x of Recurrent has shape {list(x.shape)}; it must be [batch, time, {self.input_size}], "
                "with at least one row and one step."
            )
        check_type(x, self._weight)
        if state is not None:
            check_state(state, self.state_sizes, x.shape[0], "Recurrent", self._weight)
        if torch.compiler.is_exporting() or followed(x):
            return self._traced(x, mask, self.initial(x.shape[0], x) if state is None else state)
        return left_alone(self._run, x, mask, state)

    def _run(self, x: Tensor, mask: Tensor | None, state: State | None) -> Sequence:
        order = order_of(mask, x)
        if joinable(self._cells(0), x, order, self.path):  # whose layers pack by themselves
            return Sequence(*self._through(x, order, state, in_batch=True))
        packed = order.pack(x)
        if x.device.type == "cpu":
            order.check_finite(packed)
        output, ends = self.packed(packed, order, state)
        return Sequence(order.unpack(output), ends)

    def packed(self, x: Tensor, order: Order, state: State | None = None) -> tuple[Tensor, State]:
        """`forward` over rows that lie packed, ``x`` [Σ counts, input] as ``order`` has it; so does the output.

        States are in the order of the rows that ``order`` was made of. Nothing is checked.
        """
        return self._through(x, order, state, in_batch=False)

    def _through(self, x: Tensor, order: Order, state: State | None, *, in_batch: bool) -> tuple[Tensor, State]:
        """`packed`, or with ``in_batch`` from and to [batch, time, size]: where layers are joinable."""
        if state is None and self.first is not None:
            state = self.initial(order.batch, x)
        ends: list[Tensor] = []
        last = self.layers - 1
        for layer in range(self.layers):
            given = self._drop(x, order) if layer else x
            added = layer > 0 and self.residual  # to what lies packed
            lies = Lies(in_batch and layer == 0, in_batch and layer == last and not added)
            output, end = self._layer(layer, given, order, state, lies)
            x = output + x if added else output
            ends.extend(end)
        if in_batch and x.dim() == 2:
            x = order.unpack(x)
        return x, tuple(order.unsort(end) for end in ends)

    def _cells(self, layer: int) -> list[Cell]:
        """A layer's, one for each direction."""
        return [cast(Cell, cell) for cell in self.cells][layer * self.directions : (layer + 1) * self.directions]

    def _layer(
        self, layer: int, x: Tensor, order: Order, state: State | None, lies: Lies = PACKED
    ) -> tuple[Tensor, list[Tensor]]:
        """All directions of a layer over packed ``x``."""
        outputs: list[Tensor] = []
        ends: list[Tensor] = []
        cells = self._cells(layer)
        firsts: list[State | None] = [None for _ in cells]
        if state is not None:
            indices = range(layer * self.directions, (layer + 1) * self.directions)
            own = (state[index * self._width : (index + 1) * self._width] for index in indices)
            firsts = [tuple(order.sort(tensor) for tensor in first) for first in own]
        if lies.given or joinable(cells, x, order, self.path):
            return run_layer(cells, x, order, firsts, lies)
        if pairable(cells, x, order, self.path):
            return run_pair(cells, x, order, firsts)
        turn = (lambda rows: rows.index_select(0, order.turned)) if followed(x) else order.turn
        for direction, (cell, first) in enumerate(zip(cells, firsts, strict=True)):
            given = turn(x) if direction else x
            output, end = run(cell, given, order, first, self.path)
            outputs.append(turn(output) if direction else output)
            ends.extend(end)
        return torch.cat(outputs, 1) if len(outputs) == 2 else outputs[0], ends

    def _traced(self, x: Tensor, mask: Tensor | None, state: State) -> Sequence:
        """`forward` with no look at the numbers of the mask, as tracing needs it."""
        ends: list[Tensor] = []
        for layer in range(self.layers):
            given = self.dropout(x) if layer else x
            outputs: list[Tensor] = []
            for direction in range(self.directions):
                index = layer * self.directions + direction
                first = state[index * self._width : (index + 1) * self._width]
                output, end = over_block(cast(Cell, self.cells[index]), given, mask, first, backwards=direction == 1)
                outputs.append(output)
                ends.extend(end)
            output = torch.cat(outputs, 2)
            x = output + x if layer and self.residual else output
        return Sequence(x, tuple(ends))

    def _drop(self, packed: Tensor, order: Order) -> Tensor:
        if isinstance(self.dropout, LockedDropout) and self.dropout.active:
            return packed * order.spread(self.dropout.draw(order.batch, packed.shape[1], packed))
        return cast(Tensor, self.dropout(packed))

    def project(self, x: Tensor, beside: State = ()) -> Tensor:
        """The first layer's input product, [..., input] → [..., gates * hidden]: for all steps at once; see `Cell`."""
        return cast(Cell, self.cells[0]).project(x, beside)

    def advance(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of all layers from a projected input [batch, gates * hidden]: output [batch, output] and state.

        To train through many steps use `loop`, which is faster, and which what is drawn once a sequence needs
        (locked and recurrent dropout: UsageError).
        """
        for name, drawn in (
            ("locked dropout", self.dropout.active and isinstance(self.dropout, LockedDropout)),
            ("recurrent dropout", self.training and cast(Cell, self.cells[0]).recurrent_dropout > 0),
        ):
            if drawn:
                raise UsageError(f"{name} is one draw for a whole sequence; train step by step with Recurrent.loop().")
        if self.layers == 1 and not self.training:
            new = cast(Cell, self.cells[0]).advance(projected, state)
            return new[0], new
        return self.loop(deferred=False).advance(projected, state)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of all layers from ``x`` [batch, input]; UsageError for two directions or sizes that do not fit."""
        if x.dim() != 2 or x.shape[1] != self.input_size:
            raise UsageError(
                f"x of a step of Recurrent has shape {list(x.shape)}; it must be [batch, {self.input_size}]."
            )
        check_type(x, self._weight, "a step of Recurrent")
        check_state(state, self.state_sizes, x.shape[0], "Recurrent", self._weight)
        return self.advance(self.project(x), state)

    def loop(self, *, deferred: bool = True) -> Loop:
        """What steps through one sequence: see `Loop`. UsageError for two directions."""
        if self.directions == 2:
            raise UsageError(
                "a bidirectional Recurrent cannot step: its backward direction needs the whole sequence. "
                "Set bidirectional: false."
            )
        return Loop([cast(Cell, cell) for cell in self.cells], self.dropout, self.residual, deferred=deferred)
