"""The recurrence as written on paper: the reference that every kernel must equal, the path of cells without one."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells.base import Cell, State
from unrolled.layers.kernels.order import Order


def plain(cell: Cell, x: Tensor, order: Order, state: State) -> tuple[Tensor, State]:
    """Packed outputs [Σ counts, hidden] of packed ``x`` [Σ counts, input], and each sorted row's last state."""
    outputs: list[Tensor] = []
    finished: list[State] = []
    products = cell.project(x)
    for projected, after in zip(products.split(order.counts), [*order.counts[1:], 0], strict=True):
        state = cell.advance(projected, tuple(tensor[: len(projected)] for tensor in state))
        outputs.append(state[0])
        finished.append(tuple(tensor[after:] for tensor in state))
    ends = tuple(torch.cat(parts[::-1]) for parts in zip(*finished, strict=True))
    return torch.cat(outputs).to(products.dtype), ends
