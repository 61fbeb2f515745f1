"""torch.nn's layout: a state dict of nn.LSTM, nn.GRU or nn.RNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from unrolled.base.errors import UsageError
from unrolled.layers.cells import GRU, LSTM, Cell, Elman
from unrolled.layers.recurrent import Recurrent
from unrolled.layers.weights.gates import (
    Direction,
    Layout,
    Place,
    assign,
    expect,
    gates_of,
    places,
    read,
    recurrent_of,
    write,
)

TORCH = Layout(
    "torch.nn",
    {
        LSTM: ("input", "forget", "candidate", "output"),
        GRU: ("reset", "update", "candidate"),
        Elman: ("hidden",),
    },
    projections=True,
)
FIELDS = {
    "weight_ih": "input",
    "weight_hh": "hidden",
    "bias_ih": "input_bias",
    "bias_hh": "hidden_bias",
    "weight_hr": "projection",
}


def to_torch(network: nn.Module) -> dict[str, Tensor]:
    """The weights of ``network`` as the state dict of the nn.LSTM, nn.GRU or nn.RNN that computes the same.

    Each gate's one bias becomes ``bias_ih``, beside a ``bias_hh`` of zeros; a GRU's candidate has the inner one in
    ``bias_hh``. Coupled gates are written out, the input gate as the mirrored forget gate. A learned first state is
    no weight there: hand it over as h_0. UsageError where torch.nn has no such layer: peepholes, layer normalisation,
    zoneout, residual layers, a GRU with the reset gate before the product.
    """
    recurrent = recurrent_of(network)
    found: dict[str, Tensor] = {}
    for place in places(recurrent):
        _refuse(recurrent, place.cell)
        written = write(place.cell, TORCH)
        arrays = {name: getattr(written, field) for name, field in FIELDS.items()}
        found.update({_name(name, place): array for name, array in arrays.items() if array is not None})
    return found


def load_torch(network: nn.Module, weights: Mapping[str, Tensor] | nn.RNNBase) -> None:
    """Put the weights of a layer of torch.nn, itself or its state dict, into ``network``; the reverse of `to_torch`.

    UsageError for names or shapes that do not fit, and for what ``network`` cannot compute.
    """
    recurrent = recurrent_of(network)
    assign(recurrent, _translated(recurrent, weights.state_dict() if isinstance(weights, nn.RNNBase) else weights))


def rename_torch(recurrent: Recurrent, state: dict[str, Any], theirs: str, ours: str) -> None:
    """Where ``state`` holds a layer of torch.nn under the prefix ``theirs``, put ours under ``ours`` instead."""
    if f"{theirs}weight_ih_l0" not in state:
        return
    kinds = tuple(f"{theirs}{name}_l" for name in FIELDS)
    names = [name for name in state if name.startswith(kinds)]
    found = _translated(recurrent, {name.removeprefix(theirs): state.pop(name) for name in names})
    state.update({f"{ours}{name}": value for name, value in found.items()})


def _translated(recurrent: Recurrent, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict of torch.nn as parameters of ``recurrent``."""
    left = dict(weights)
    found: dict[str, Tensor] = {}
    for index, place in enumerate(places(recurrent)):
        _refuse(recurrent, place.cell)
        parameters = read(place.cell, TORCH, _direction(left, place), f"weights of torch.nn, {place}")
        found.update({f"cells.{index}.{name}": value for name, value in parameters.items()})
    if left:
        raise UsageError(f"weights of torch.nn that this network has no place for: {', '.join(left)}.")
    return found


def _direction(left: dict[str, Tensor], place: Place) -> Direction:
    """The arrays of one direction, taken out of ``left``, of their right shapes."""
    cell = place.cell
    rows = len(gates_of(cell, TORCH)) * cell.hidden_size
    shapes: dict[str, tuple[int, ...]] = {
        "weight_ih": (rows, cell.input_size),
        "weight_hh": (rows, cell.output_size),
        "bias_ih": (rows,),
        "bias_hh": (rows,),
    }
    needed = ["weight_ih", "weight_hh"]
    if isinstance(cell, LSTM) and cell.projection_weight is not None:
        shapes["weight_hr"] = (cell.output_size, cell.hidden_size)
        needed.append("weight_hr")
    for kind in needed:
        if _name(kind, place) not in left:
            raise UsageError(f"weights of torch.nn lack {_name(kind, place)}, which this network needs.")
    own = {
        kind: expect(_name(kind, place), left.pop(_name(kind, place)), shape)
        for kind, shape in shapes.items()
        if _name(kind, place) in left
    }
    return Direction(
        own["weight_ih"],
        own["weight_hh"],
        own.get("bias_ih"),
        own.get("bias_hh"),
        projection=own.get("weight_hr"),
    )


def _refuse(recurrent: Recurrent, cell: Cell) -> None:
    if recurrent.residual:
        raise UsageError("a residual network cannot go to or come from torch.nn, which adds no input to an output.")
    if isinstance(cell, GRU) and cell.reset == "before":
        raise UsageError(
            "a GRU with reset 'before' cannot go to or come from torch.nn, whose reset gate is after the product; "
            "build it with reset='after'."
        )


def _name(kind: str, place: Place) -> str:
    return f"{kind}_l{place.layer}{'_reverse' if place.direction else ''}"
