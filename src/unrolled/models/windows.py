"""A window slid over a sentence: what convolutions, n-grams and window baselines have in common."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def windows(x: Tensor, before: int, after: int) -> Tensor:
    """Each position of ``x`` [batch, time, size] with its neighbours, [batch, time, (before + 1 + after) · size].

    Neighbours outside the block are 0, so where padding is 0 a row does not depend on its own.
    """
    filled = functional.pad(x, (0, 0, before, after))
    time = x.shape[1]
    return torch.cat([filled[:, place : place + time] for place in range(before + 1 + after)], dim=2)


def around(width: int) -> tuple[int, int]:
    """How many neighbours before and after a position a window of ``width`` has; an even one has one more before."""
    return width // 2, (width - 1) // 2
