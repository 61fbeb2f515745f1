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


def over_block(cell: Cell, x: Tensor, mask: Tensor | None, state: State, *, backwards: bool) -> tuple[Tensor, State]:
    """The recurrence over a padded block ``x`` [batch, time, input], where the state stands still at padding.

    Slower than `plain`, but nothing in it depends on the numbers of ``mask`` bool [batch, time]. Outputs
    [batch, time, output], 0 at padding, and the last state, ``backwards`` the first symbol's.
    """
    projected = cell.project(x).unbind(1)
    outputs = list(projected)
    drawn = cell.draw(x.shape[0], x)
    for step in reversed(range(len(projected))) if backwards else range(len(projected)):
        new = cell.advance(projected[step], state, drawn._replace(kept=cell.keep(x.shape[0], x)))
        outputs[step] = new[0].to(projected[step].dtype)
        if mask is not None:
            real = mask[:, step].unsqueeze(1)
            outputs[step] = torch.where(real, outputs[step], 0)
            new = tuple(torch.where(real, fresh, old) for fresh, old in zip(new, state, strict=True))
        state = new
    return torch.stack(outputs, 1), state


def noise_of_steps(noise: Noise, counts: list[int]) -> list[Noise]:
    """The noise of each step, whose ``counts`` rows are the first ones."""
    kept = zip(*(tensor.split(counts) for tensor in noise.kept), strict=True) if noise.kept else [()] * len(counts)
    seen = [None if noise.seen is None else noise.seen[:count] for count in counts]
    return [Noise(factor, now) for factor, now in zip(seen, kept, strict=True)]
