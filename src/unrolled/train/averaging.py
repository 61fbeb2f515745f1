"""Averages of the weights over time, which are validated and kept instead of the last ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Annotated

import torch
from annotated_types import Ge, Interval
from torch import Tensor

from unrolled.base.registry import Registry

Weights = Mapping[str, Tensor]


COUNT = "#updates"
"""The key of a number among tensors that are named after weights."""


class Average(ABC):
    """Watches the weights of a run. Holds a fixed number of copies of them, whatever the length of the run."""

    @abstractmethod
    def updated(self, weights: Weights) -> None:
        """After every update."""

    @abstractmethod
    def validating(self, weights: Weights) -> None:
        """Before every validation."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor] | None:
        """The average now; None where it is the weights themselves."""

    def state(self) -> dict[str, Tensor]:
        """What the average remembers, for a checkpoint."""
        return {}

    def restore(self, state: Weights) -> None:  # noqa: B027
        """Take up ``state()`` of a checkpoint."""


AVERAGES: Registry[Average] = Registry("average")


@AVERAGES.register("none")
class NoAverage(Average):
    """The weights as they are."""

    def updated(self, weights: Weights) -> None:
        pass

    def validating(self, weights: Weights) -> None:
        pass

    def weights(self) -> dict[str, Tensor] | None:
        return None


@AVERAGES.register("last")
class LastAverage(Average):
    """The mean of the weights at the last ``validations`` validations (checkpoint averaging: Junczys-Dowmunt 2016,
    arXiv:1605.04800). Holds that many copies."""

    def __init__(self, *, validations: Annotated[int, Ge(1)] = 4) -> None:
        self.copies: deque[dict[str, Tensor]] = deque(maxlen=validations)

    def updated(self, weights: Weights) -> None:
        pass

    def validating(self, weights: Weights) -> None:
        self.copies.append({name: tensor.detach().clone() for name, tensor in weights.items()})

    def weights(self) -> dict[str, Tensor] | None:
        if not self.copies:
            return None
        return {name: _mean([copy[name] for copy in self.copies]) for name in self.copies[0]}

    def state(self) -> dict[str, Tensor]:
        return {f"{place}.{name}": tensor for place, copy in enumerate(self.copies) for name, tensor in copy.items()}

    def restore(self, state: Weights) -> None:
        copies: dict[int, dict[str, Tensor]] = {}
        for key, tensor in state.items():
            place, _, name = key.partition(".")
            copies.setdefault(int(place), {})[name] = tensor
        self.copies.clear()
        self.copies.extend(copies[place] for place in sorted(copies))


@AVERAGES.register("exponential")
class ExponentialAverage(Average):
    """An exponential moving average over updates (Polyak and Juditsky 1992), one copy.

    average ← average + (1 - d) (weights - average),  d = min(decay, (1 + n) / (10 + n)) after n updates, so that the
    untrained weights are soon forgotten. Taken every ``every`` updates with d to that power: what a pass over memory
    costs is then not felt.
    """

    def __init__(
        self, *, decay: Annotated[float, Interval(gt=0, lt=1)] = 0.998, every: Annotated[int, Ge(1)] = 4
    ) -> None:
        self.decay = decay
        self.every = every
        self.count = 0
        self.average: dict[str, Tensor] = {}

    @torch.no_grad()
    def updated(self, weights: Weights) -> None:
        self.count += 1
        if not self.average:
            self.average = {name: tensor.detach().clone() for name, tensor in weights.items()}
        elif self.count % self.every == 0:
            decay = min(self.decay, (1 + self.count) / (10 + self.count)) ** self.every
            for name, tensor in weights.items():
                if tensor.is_floating_point():
                    self.average[name].lerp_(tensor.detach(), 1 - decay)
                else:
                    self.average[name].copy_(tensor)

    def validating(self, weights: Weights) -> None:
        pass

    def weights(self) -> dict[str, Tensor] | None:
        return self.average or None

    def state(self) -> dict[str, Tensor]:
        return {**self.average, COUNT: torch.tensor(self.count)} if self.average else {}

    def restore(self, state: Weights) -> None:
        self.average = {name: tensor for name, tensor in state.items() if name != COUNT}
        self.count = int(state[COUNT]) if state else 0


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    if not tensors[0].is_floating_point():
        return tensors[-1]
    return torch.stack(list(tensors)).mean(0)
