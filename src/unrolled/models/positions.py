"""Where a symbol stands, added to what it is: for networks that read all positions at once."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from unrolled.base.registry import Registry
from unrolled.models.ranges import Count


class Positions(nn.Module, ABC):
    """Vectors x [batch, time, size] → x_t + P_t."""

    @abstractmethod
    def table(self, first: int, count: int, like: Tensor) -> Tensor:
        """P [count, size] of the positions ``first``, ``first`` + 1, …, counted from 0."""

    def forward(self, x: Tensor, first: int = 0, places: Tensor | None = None) -> Tensor:
        """``first`` is the position of x's first symbol; ``places`` int64 [batch, time], at most ``time``, are those of
        all, where they do not follow each other."""
        if places is not None:
            return x + self.table(0, x.shape[1] + 1, x)[places]
        return x + self.table(first, x.shape[1], x)


POSITIONS: Registry[Positions] = Registry("position code")


@POSITIONS.register("none")
class NoPositions(Positions):
    """P = 0: a symbol does not know where it stands."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.size = size

    def table(self, _first: int, count: int, like: Tensor) -> Tensor:
        return like.new_zeros(count, self.size)


@POSITIONS.register("sinusoidal")
class Sinusoidal(Positions):
    """P_t,2i = sin(t / 10000^(2i/size)),  P_t,2i+1 = cos(t / 10000^(2i/size))   (Vaswani et al. 2017, §3.5)."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.size = size

    def table(self, first: int, count: int, like: Tensor) -> Tensor:
        exact = torch.promote_types(like.dtype, torch.float32)
        times = torch.arange(first, first + count, device=like.device, dtype=exact)
        pairs = torch.arange(0, self.size, 2, device=like.device, dtype=exact)
        angles = times.unsqueeze(1) * 10_000.0 ** (-pairs / self.size)
        return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)[:, : self.size].to(like.dtype)


@POSITIONS.register("learned")
class Learned(Positions):
    """P_t is a learned vector (Gehring et al. 2017, arXiv:1705.03122, §3.1).

    There are ``longest`` of them; later positions share the last, so that no text is too long to be read.
    """

    def __init__(self, size: int, /, *, longest: Count = 512) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.normal_(torch.empty(longest, size), std=0.1))

    def table(self, first: int, count: int, like: Tensor) -> Tensor:
        times = torch.arange(first, first + count, device=like.device)
        return self.weight[times.clamp(max=len(self.weight) - 1)]
