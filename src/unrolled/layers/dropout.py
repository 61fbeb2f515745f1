"""Dropout kinds: which numbers are dropped together."""

from __future__ import annotations

import abc

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Registry

DROPOUTS: Registry[Dropout]


class Dropout(nn.Module, abc.ABC):
    """Zeroes numbers with probability ``rate`` in training and scales the others by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise SettingsError(f"a dropout rate of {rate} was given; it must be at least 0 and below 1.")
        self.rate = rate

    @abc.abstractmethod
    def shape(self, x: Tensor) -> tuple[int, ...]:
        """Shape of the mask for ``x``; axes of size 1 share their draws."""

    def draw(self, x: Tensor) -> Tensor:
        """A mask for ``x`` to multiply with, its numbers 0 or 1 / (1 - rate)."""
        return torch.empty(self.shape(x), dtype=x.dtype, device=x.device).bernoulli_(1 - self.rate).div_(1 - self.rate)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` [batch, time, size] with numbers dropped; unchanged in evaluation."""
        return x * self.draw(x) if self.training and self.rate else x

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


DROPOUTS = Registry("dropout")


@DROPOUTS.register("plain")
class PlainDropout(Dropout):
    """Every number is drawn for itself (Srivastava et al. 2014)."""

    def __init__(self, *, rate: float = 0.0) -> None:
        super().__init__(rate)

    def shape(self, x: Tensor) -> tuple[int, ...]:
        return tuple(x.shape)


@DROPOUTS.register("locked")
class LockedDropout(Dropout):
    """One draw for all time steps of a row (Gal & Ghahramani 2016, arXiv:1512.05287)."""

    def __init__(self, *, rate: float = 0.0) -> None:
        super().__init__(rate)

    def shape(self, x: Tensor) -> tuple[int, ...]:
        return (*x.shape[:-2], 1, x.shape[-1])
