"""ONNX's layout: the arrays W, R, B and P of its operators LSTM, GRU and RNN, one node for each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from unrolled.base.errors import UsageError
from unrolled.layers.cells import GRU, LSTM, Cell, Elman
from unrolled.layers.weights.arrays import array, tensor
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

ONNX = Layout(
    "ONNX",
    {
        LSTM: ("input", "output", "forget", "candidate"),
        GRU: ("update", "reset", "candidate"),
        Elman: ("hidden",),
    },
    peepholes=("input", "output", "forget"),
)
OPERATORS: dict[type[Cell], str] = {LSTM: "LSTM", GRU: "GRU", Elman: "RNN"}


class OnnxLayer(NamedTuple):
    """One layer as an ONNX node has it; the first axis of the arrays is the direction, forward first.

    LSTM: the gates are i, o, f, c. GRU: z, r, h. RNN: i.
    """

    operator: str
    W: np.ndarray  # [directions, gates * hidden, input]
    R: np.ndarray  # [directions, gates * hidden, hidden]
    B: np.ndarray | None  # [directions, 2 * gates * hidden], the input biases before the hidden ones
    P: np.ndarray | None  # [directions, 3 * hidden], peepholes of i, o, f
    attributes: Mapping[str, Any]
    """What the node needs besides, for `onnx.helper.make_node`."""


def to_onnx(network: nn.Module) -> list[OnnxLayer]:
    """The weights of ``network`` as ONNX's LSTM, GRU or RNN has them, a node for each layer.

    Coupled gates are input_forget=1, where the input gate drives, so its weights are our forget gate's with the other
    sign. A residual sum and a learned first state (initial_h, initial_c) are for the graph to add. UsageError where
    ONNX has no such operator: full peepholes, projections, layer normalisation, zoneout.
    """
    recurrent = recurrent_of(network)
    found: list[OnnxLayer] = []
    every = list(places(recurrent))
    for layer in range(recurrent.layers):
        own = [place.cell for place in every if place.layer == layer]
        written = [write(cell, ONNX) for cell in own]
        biases = [
            torch.cat((one.input_bias, one.hidden_bias))
            for one in written
            if one.input_bias is not None and one.hidden_bias is not None
        ]
        peepholes = [one.peephole.flatten() for one in written if one.peephole is not None]
        found.append(
            OnnxLayer(
                OPERATORS[type(own[0])],
                array(torch.stack([one.input for one in written])),
                array(torch.stack([one.hidden for one in written])),
                array(torch.stack(biases)) if biases else None,
                array(torch.stack(peepholes)) if peepholes else None,
                _attributes(own[0], recurrent.directions),
            )
        )
    return found


def load_onnx(network: nn.Module, layers: Sequence[OnnxLayer]) -> None:
    """Put the arrays of ONNX nodes, one for each layer, into ``network``; the reverse of `to_onnx`.

    ``attributes`` are the node's, those at their defaults may be left out. With input_forget=1 the forget gate's arrays
    are not looked at, as ONNX does not. UsageError for shapes that do not fit, and for what ``network`` cannot compute:
    clip, other activations, the direction "reverse", attributes of another cell.
    """
    recurrent = recurrent_of(network)
    if len(layers) != recurrent.layers:
        raise UsageError(f"{len(layers)} ONNX layers were given; this network has {recurrent.layers}.")
    found: dict[str, Tensor] = {}
    for index, place in enumerate(places(recurrent)):
        given, where = layers[place.layer], f"weights of ONNX, {place}"
        _check_node(given, _attributes(place.cell, recurrent.directions), OPERATORS[type(place.cell)], where)
        unread = ("forget",) if given.attributes.get("input_forget") else ()
        direction = _direction(given, place, recurrent.directions)
        parameters = read(place.cell, ONNX, direction, where, unread)
        found.update({f"cells.{index}.{name}": value for name, value in parameters.items()})
    assign(recurrent, found)


def _direction(given: OnnxLayer, place: Place, directions: int) -> Direction:
    """The arrays of one direction of a node, of their right shapes."""
    cell = place.cell
    n, rows = cell.hidden_size, len(gates_of(cell, ONNX)) * cell.hidden_size
    shapes = {
        "W": (directions, rows, cell.input_size),
        "R": (directions, rows, n),
        "B": (directions, 2 * rows),
        "P": (directions, len(ONNX.peepholes) * n),
    }
    parts = {name: getattr(given, name) for name in shapes if getattr(given, name) is not None}
    for name in ("W", "R"):
        if name not in parts:
            raise UsageError(f"{name} of ONNX's layer {place.layer} is missing.")
    own = {
        name: expect(f"{name} of ONNX's layer {place.layer}", tensor(part), shapes[name])[place.direction]
        for name, part in parts.items()
    }
    input_bias, hidden_bias = own["B"].split(rows) if "B" in own else (None, None)
    return Direction(own["W"], own["R"], input_bias, hidden_bias, own["P"].view(-1, n) if "P" in own else None)


def _attributes(cell: Cell, directions: int) -> dict[str, Any]:
    """All attributes of the node that runs ``cell``, its weights' meaning hanging on them."""
    activations = ["Sigmoid", "Tanh", "Tanh"] if isinstance(cell, LSTM) else ["Sigmoid", "Tanh"]
    if isinstance(cell, Elman):
        activations = [cell.activation.capitalize()]
    found: dict[str, Any] = {
        "hidden_size": cell.hidden_size,
        "direction": "bidirectional" if directions == 2 else "forward",
        "activations": activations * directions,
    }
    if isinstance(cell, LSTM):
        found["input_forget"] = int(cell.coupled)
    if isinstance(cell, GRU):
        found["linear_before_reset"] = int(cell.reset == "after")
    return found


def _check_node(given: OnnxLayer, wanted: Mapping[str, Any], operator: str, where: str) -> None:
    """UsageError where the node computes something else than the cell, whatever its weights."""
    if given.operator != operator:
        raise UsageError(f"{where}: the operator is {given.operator!r}; for this network it must be '{operator}'.")
    for name, value in given.attributes.items():
        if name == "layout" or name in wanted:
            continue
        if name == "clip":
            raise UsageError(
                f"{where}: clip={value!r} cuts what goes into the activations, and no cell here does. Train or export "
                "the node without it."
            )
        raise UsageError(
            f"{where}: the attribute {name}={value!r} is not known here. Known: layout, {', '.join(sorted(wanted))}."
        )
    defaults = {
        **wanted,
        "direction": "forward",
        "activations": ["Tanh"] * len(wanted["activations"]) if operator == "RNN" else wanted["activations"],
        "input_forget": 0,
        "linear_before_reset": 0,
    }
    for name, value in wanted.items():
        came = _plain(given.attributes.get(name, defaults[name]))
        written_out = name == "input_forget" and value == 1  # coupled gates as two that mirror each other: `read` looks
        if came != value and not written_out:
            raise UsageError(f"{where}: {name} is {came!r}; this network computes {value!r}.")


def _plain(value: Any) -> Any:
    """An attribute with text where ONNX keeps bytes."""
    if isinstance(value, bytes):
        return value.decode()
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
