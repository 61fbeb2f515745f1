"""Models that step their own weights, in the place of gradients and an optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from unrolled.base.errors import UsageError
from unrolled.base.protocol import Loss
from unrolled.train.corpus import Portion
from unrolled.train.devices import World

Update = Callable[[nn.Module, Any, float], Loss]
"""Steps the weights on a batch in place, at a rate; the loss before."""


def refuse_many(update: Update | None, world: World) -> None:
    """UsageError where several processes would step each its own weights."""
    if update is not None and world.size > 1:
        raise UsageError(
            f"{world.size} processes were started, and the weights of this model are stepped in place, by the "
            "threads of one. Leave --devices out, and give it threads: OMP_NUM_THREADS=2."
        )


def step(update: Update, model: nn.Module, rate: float, portions: Sequence[Portion]) -> tuple[float, int]:
    """(mean loss, symbols) of some batches, one after the other."""
    model.train()
    found = [update(model, portion.load(), rate) for portion in portions]
    count = sum(one.count for one in found)
    return sum(float(one.total) for one in found) / max(count, 1), count
