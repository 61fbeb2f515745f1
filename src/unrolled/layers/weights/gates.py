"""Weights gate by gate: which rows of a cell are which rows of another library's layer, and with which sign."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from unrolled.base.errors import UsageError
from unrolled.layers.cells import GRU, LSTM, Cell
from unrolled.layers.recurrent import Recurrent


class Layout(NamedTuple):
    """How another library orders its weights."""

    library: str
    gates: Mapping[type[Cell], tuple[str, ...]]
    """Our names of the gates, in the order of its rows."""

    peepholes: tuple[str, ...] = ()
    """The gates of its peephole vectors in their order; none where it has no peepholes."""

    projections: bool = False


class Direction(NamedTuple):
    """One direction of one layer as the others keep it, its gates in their order."""

    input: Tensor  # [gates * hidden, input]
    hidden: Tensor  # [gates * hidden, output]
    input_bias: Tensor | None = None  # [gates * hidden]
    hidden_bias: Tensor | None = None  # [gates * hidden]
    peephole: Tensor | None = None  # [gates, hidden]
    projection: Tensor | None = None  # [output, hidden]


class Place(NamedTuple):
    """A cell of a recurrence, and where it stands."""

    layer: int
    direction: int
    cell: Cell

    def __str__(self) -> str:
        return f"layer {self.layer}, {'backward' if self.direction else 'forward'}"


def recurrent_of(network: nn.Module) -> Recurrent:
    """The `Recurrent` that ``network`` is or wraps."""
    inner = network if isinstance(network, Recurrent) else getattr(network, "recurrent", None)
    if not isinstance(inner, Recurrent):
        raise UsageError(f"a {type(network).__name__} was given; give a Recurrent, LSTM, GRU or Elman of this library.")
    return inner


def places(network: Recurrent) -> Iterator[Place]:
    """The cells, layer by layer, in each the forward direction first."""
    for index, cell in enumerate(network.cells):
        yield Place(*divmod(index, network.directions), cast(Cell, cell))


def gates_of(cell: Cell, layout: Layout) -> tuple[str, ...]:
    """The layout's order of gates for ``cell``; UsageError where its library has no layer that computes the same."""
    reasons = {
        "has no such layer": type(cell) not in layout.gates,
        "has no layer normalisation inside a cell": cell.layer_norm,
        "has no zoneout": cell.zoneout > 0,
    }
    if isinstance(cell, LSTM):
        reasons["has no full peepholes"] = cell.peephole == "full"
        reasons["has no peepholes"] = cell.peephole != "none" and not layout.peepholes
        reasons["has no projections"] = cell.projection_weight is not None and not layout.projections
    for reason, met in reasons.items():
        if met:
            raise UsageError(
                f"the cell {type(cell).__name__} cannot go to or come from {layout.library}, which {reason}."
            )
    return layout.gates[type(cell)]


def write(cell: Cell, layout: Layout) -> Direction:
    """The weights of ``cell`` as ``layout`` has them: copies, without gradients."""
    gates = gates_of(cell, layout)

    def arranged(weight: Tensor) -> Tensor:
        return torch.cat([sign * weight[cell.rows(gate)] for gate, sign in _sources(cell, gates)])

    with torch.no_grad():
        biases = [arranged(bias) for bias in cell.biases()] if has_bias(cell) else [None, None]
        written = Direction(arranged(cell.input_weight), arranged(cell.hidden_weight), *biases)
        if not isinstance(cell, LSTM):
            return written
        vectors, projection = cell.peephole_weight, cell.projection_weight
        if vectors is not None:
            own = dict(zip(_seeing(cell), vectors, strict=True))
            sources = _sources(cell, layout.peepholes)
            written = written._replace(peephole=torch.stack([sign * own[gate] for gate, sign in sources]))
        return written if projection is None else written._replace(projection=projection.clone())


def read(cell: Cell, layout: Layout, given: Direction, where: str, unread: Collection[str] = ()) -> dict[str, Tensor]:
    """The parameters of ``cell`` by name that compute what ``given`` does in the other library.

    ``unread`` gates are not looked at there. UsageError where no parameters can: a bias for a cell without one, gates
    that are not coupled for a cell whose gates are.
    """
    gates = gates_of(cell, layout)
    blocks = _Blocks(cell, gates, where, unread)
    found = {
        "input_weight": blocks.read("input weights", given.input, cell.hidden_size),
        "hidden_weight": blocks.read("hidden weights", given.hidden, cell.hidden_size),
        **_read_biases(cell, given, blocks),
    }
    if isinstance(cell, LSTM) and cell.projection_weight is not None and given.projection is not None:
        found["projection_weight"] = given.projection
    if isinstance(cell, LSTM) and cell.peephole_weight is not None:
        vectors = _Blocks(cell, layout.peepholes, where, unread)
        peephole = torch.zeros_like(cell.peephole_weight)
        if given.peephole is not None:
            peephole = vectors.read("peepholes", given.peephole, 1, order=_seeing(cell))
        found["peephole_weight"] = peephole
    elif given.peephole is not None and given.peephole.count_nonzero():
        raise UsageError(f"{where}: there are peepholes and the cell has none; build it with peephole='diagonal'.")
    return found


def has_bias(cell: Cell) -> bool:
    """Whether the cell learns a bias."""
    return isinstance(cell.bias, nn.Parameter)


def expect(name: str, array: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``array`` where it has the ``shape``; UsageError with its ``name`` where not."""
    if tuple(array.shape) != shape:
        raise UsageError(f"{name} has the shape {list(array.shape)}; for this network it must be {list(shape)}.")
    return array


def assign(network: Recurrent, found: Mapping[str, Tensor]) -> None:
    """Put parameters in their places; those that are not in ``found`` (a learned first state) stay."""
    own = dict(network.named_parameters())
    with torch.no_grad():
        for name, value in found.items():
            own[name].copy_(value)


class _Blocks(NamedTuple):
    """The blocks of rows of another library's arrays, a gate each."""

    cell: Cell
    gates: tuple[str, ...]
    where: str
    unread: Collection[str]

    def read(self, what: str, array: Tensor, rows: int, order: tuple[str, ...] | None = None) -> Tensor:
        """``array`` in our order of gates (or in ``order``), ``rows`` rows a gate."""
        found: dict[str, Tensor] = {}
        for name, (gate, sign), block in zip(
            self.gates, _sources(self.cell, self.gates), array.split(rows), strict=True
        ):
            if name in self.unread:
                continue
            if gate in found and not torch.equal(found[gate], sign * block):
                raise UsageError(
                    f"{self.where}: the {what} of the input gate are not those of the forget gate with the other sign, "
                    "so the gates are not coupled; build the LSTM with coupled=False."
                )
            found[gate] = sign * block
        return torch.cat([found[gate] for gate in order or self.cell.gates])


def _read_biases(cell: Cell, given: Direction, blocks: _Blocks) -> dict[str, Tensor]:
    """The one bias of each gate of ours: the sum of theirs, but for a candidate with a reset gate between the two."""
    zeros = torch.zeros_like(cell.bias.data)
    theirs = (given.input_bias, given.hidden_bias)
    outside, inside = (torch.zeros(len(given.input)).to(zeros) if bias is None else bias for bias in theirs)
    if not has_bias(cell):
        if outside.count_nonzero() or inside.count_nonzero():
            raise UsageError(f"{blocks.where}: there is a bias and the cell has none; build it with bias=True.")
        return {}
    total = blocks.read("biases", outside + inside, cell.hidden_size)
    if not isinstance(cell, GRU) or cell.reset == "before":
        return {"bias": total}
    rows = cell.rows("candidate")
    total[rows] = blocks.read("biases", inside, cell.hidden_size)[rows]
    free = blocks.read("biases", outside, cell.hidden_size)[rows]
    if cell.outer_bias is not None:
        return {"bias": total, "outer_bias": free}
    if free.count_nonzero():
        raise UsageError(
            f"{blocks.where}: the candidate has a bias outside its reset gate, and the cell has none there; "
            "build it with outer_bias=True."
        )
    return {"bias": total}


def _sources(cell: Cell, gates: tuple[str, ...]) -> list[tuple[str, int]]:
    """For each gate of theirs our gate, and the sign of its sum.

    The others' z of a GRU is our 1 - z = σ(-sum); so is the input gate of coupled ones, 1 - f.
    """
    mirrored = {"update": "update"}
    if "input" not in cell.gates:
        mirrored["input"] = "forget"
    return [(mirrored[gate], -1) if gate in mirrored else (gate, 1) for gate in gates]


def _seeing(cell: Cell) -> tuple[str, ...]:
    """The gates of an LSTM that have peepholes, in the order of ``peephole_weight``."""
    return tuple(gate for gate in cell.gates if gate != "candidate")
