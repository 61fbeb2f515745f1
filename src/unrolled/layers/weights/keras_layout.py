"""Keras's layout: the arrays that a recurrent layer's ``get_weights`` gives and ``set_weights`` takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from unrolled.base.errors import UsageError
from unrolled.layers.cells import GRU, LSTM, Cell, Elman
from unrolled.layers.weights.arrays import array, tensor
from unrolled.layers.weights.gates import (
    Direction,
    Layout,
    assign,
    expect,
    gates_of,
    places,
    read,
    recurrent_of,
    write,
)

KERAS = Layout(
    "Keras",
    {
        LSTM: ("input", "forget", "candidate", "output"),
        GRU: ("update", "reset", "candidate"),
        Elman: ("hidden",),
    },
)


def to_keras(network: nn.Module) -> list[np.ndarray]:
    """The weights of ``network`` as Keras's LSTM, GRU or SimpleRNN has them, layer by layer, forward before backward.

    For each direction: kernel [input, gates · hidden], recurrent_kernel [hidden, gates · hidden] and, where there is
    one, bias [gates · hidden]; [2, gates · hidden] for a GRU with reset "after", which is Keras's reset_after=True. One
    layer's arrays are what ``set_weights`` of the layer takes, or of the Bidirectional around it; those of all layers
    what a model of nothing else takes. Keras's default activations are meant. UsageError where Keras has no such
    layer: peepholes, projections, layer normalisation, zoneout.
    """
    found: list[np.ndarray] = []
    for place in places(recurrent_of(network)):
        written = write(place.cell, KERAS)
        found += [array(written.input.t()), array(written.hidden.t())]
        if written.input_bias is not None and written.hidden_bias is not None:
            both = [written.input_bias, written.hidden_bias]
            found.append(array(torch.stack(both) if _two_biases(place.cell) else both[0]))
    return found


def load_keras(network: nn.Module, weights: Sequence[np.ndarray]) -> None:
    """Put the arrays of ``get_weights`` of Keras's layers into ``network``; the reverse of `to_keras`.

    UsageError for a number of arrays or for shapes that do not fit, and for what ``network`` cannot compute.
    """
    recurrent = recurrent_of(network)
    directions = len(recurrent.cells)
    each = len(weights) // directions
    if each not in (2, 3) or len(weights) % directions:
        raise UsageError(
            f"weights of Keras are {len(weights)} arrays; this network of {directions} directions in all takes "
            f"{3 * directions}, a kernel, a recurrent kernel and a bias each, or {2 * directions} without biases."
        )
    found = {}
    for index, place in enumerate(places(recurrent)):
        kernel, recurrent_kernel, *bias = (tensor(part) for part in weights[index * each : (index + 1) * each])
        cell, where = place.cell, f"of Keras's weights, {place},"
        rows = len(gates_of(cell, KERAS)) * cell.hidden_size
        biases: tuple[torch.Tensor, ...] = ()
        if bias:
            two = _two_biases(cell)
            hint = "" if not isinstance(cell, GRU) else f" (the cell's reset is '{cell.reset}': reset_after={two})"
            expect(f"bias {where}{hint}", bias[0], (2, rows) if two else (rows,))
            biases = tuple(bias[0]) if two else (bias[0],)
        given = Direction(
            expect(f"kernel {where}", kernel, (cell.input_size, rows)).t(),
            expect(f"recurrent_kernel {where}", recurrent_kernel, (cell.hidden_size, rows)).t(),
            *biases,
        )
        parameters = read(cell, KERAS, given, f"weights of Keras, {place}")
        found.update({f"cells.{index}.{name}": value for name, value in parameters.items()})
    assign(recurrent, found)


def _two_biases(cell: Cell) -> bool:
    """Whether Keras keeps two biases for this cell."""
    return isinstance(cell, GRU) and cell.reset == "after"
