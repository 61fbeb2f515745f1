"""The recurrence as written on paper: the reference that every kernel must equal, the path of cells without one."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells.base import SILENCE, Cell, Noise, State
from unrolled.layers.kernels.order import Order


def plain(cell: Cell, x: Tensor, order: Order, state: State, noise: Noise = SILENCE) -> tuple[Tensor, State]:
    """Packed outputs [Σ counts, output] of packed ``x`` [Σ counts, input], and each sorted row's last state."""
    outputs: list[Tensor] = []
    finished: list[State] = []
    products = cell.project(x)
    for projected, after, now in zip(
        products.split(order.counts), [*order.counts[1:], 0], noise_of_steps(noise, order.counts), strict=True
    ):
        state = cell.advance(projected, tuple(tensor[: len(projected)] for tensor in state), now)
        outputs.append(state[0])
        finished.append(tuple(tensor[after:] for tensor in state))
    ends = tuple(torch.cat(parts[::-1]) for parts in zip(*finished, strict=True))
    return torch.cat(outputs).to(products.dtype), ends


def noise_of_steps(noise: Noise, counts: list[int]) -> list[Noise]:
    """The noise of each step, whose ``counts`` rows are the first ones."""
    kept = zip(*(tensor.split(counts) for tensor in noise.kept), strict=True) if noise.kept else [()] * len(counts)
    seen = [None if noise.seen is None else noise.seen[:count] for count in counts]
    return [Noise(factor, now) for factor, now in zip(seen, kept, strict=True)]
