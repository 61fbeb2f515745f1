"""Dropout kinds: which numbers are dropped together."""

from __future__ import annotations

import abc

from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Registry
from unrolled.layers.draws import dropout, kept

DROPOUTS: Registry[Dropout]


class Dropout(nn.Module, abc.ABC):
    """Zeroes numbers with probability ``rate`` in training and scales the others by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise SettingsError(f"a dropout rate of {rate} was given; it must be at least 0 and below 1.")
        self.rate = rate

    @property
    def active(self) -> bool:
        """Whether anything is dropped: in training, at a rate above 0."""
        return self.training and self.rate > 0

    def draw(self, rows: int, size: int, like: Tensor) -> Tensor:
        """A factor of each number of ``rows`` vectors [rows, size]: 0 or 1 / (1 - rate)."""
        return kept((rows, size), 1 - self.rate, like, 1 / (1 - self.rate))

    @abc.abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """``x`` [batch, time, size] with numbers dropped; unchanged in evaluation."""

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


DROPOUTS = Registry("dropout")


@DROPOUTS.register("plain")
class PlainDropout(Dropout):
    """Every number is drawn for itself (Srivastava et al. 2014)."""

    def __init__(self, *, rate: float = 0.0) -> None:
        super().__init__(rate)

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate, self.training)


@DROPOUTS.register("locked")
class LockedDropout(Dropout):
    """One draw for all time steps of a row (Gal & Ghahramani 2016, arXiv:1512.05287)."""

    def __init__(self, *, rate: float = 0.0) -> None:
        super().__init__(rate)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.draw(x.shape[0], x.shape[2], x).unsqueeze(1) if self.active else x
