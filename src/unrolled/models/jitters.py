"""Images moved, bent and disturbed a little, anew each time: what training sees beside the images as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import radians
from typing import Annotated

import torch
from annotated_types import Ge, Interval
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.registry import Registry

Amount = Annotated[float, Ge(0)]


class Jitter(nn.Module, ABC):
    """Scaled pixels [batch, channels, height, width] → the same, changed. Called in training only."""

    @abstractmethod
    def forward(self, pixels: Tensor, mask: Tensor) -> Tensor:
        """``mask`` bool [batch, height, width], True = real; what padding becomes does not matter."""


JITTERS: Registry[Jitter] = Registry("jitter")


@JITTERS.register("none")
class NoJitter(Jitter):
    """Images as they are."""

    def forward(self, pixels: Tensor, _mask: Tensor) -> Tensor:
        return pixels


@JITTERS.register("affine")
class Affine(Jitter):
    """Each image is read at A (p - c) + c + t for its pixels p and middle c, and noise is added.

    Each number is drawn evenly from -1 to 1 times its setting: ``shift`` t in pixels; of A the ``stretch`` of each axis
    as a share, the ``slant`` of the rows against each other in pixels a pixel, and the ``turn`` in degrees. ``noise``
    is the deviation of a Gaussian that is added to every scaled number. Beyond its border an image goes on as its
    border.
    """

    def __init__(
        self,
        *,
        shift: Amount = 0.0,
        stretch: Annotated[float, Interval(ge=0, lt=1)] = 0.0,
        slant: Amount = 0.0,
        turn: Annotated[float, Interval(ge=0, le=180)] = 0.0,
        noise: Amount = 0.0,
    ) -> None:
        super().__init__()
        self.shift, self.stretch, self.slant, self.turn, self.noise = shift, stretch, slant, turn, noise

    def forward(self, pixels: Tensor, mask: Tensor) -> Tensor:
        if any((self.shift, self.stretch, self.slant, self.turn)):
            pixels = moved(pixels, mask, *self._drawn(len(pixels), pixels.device))
        return pixels + self.noise * torch.randn_like(pixels) if self.noise else pixels

    def _drawn(self, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """A [rows, 2, 2] and t [rows, 2] of each image, x before y."""
        draws = 2 * torch.rand(rows, 6, device=device) - 1
        angle = radians(self.turn) * draws[:, 0]
        cos, sin = angle.cos(), angle.sin()
        turned = torch.stack((cos, -sin, sin, cos), dim=1).unflatten(1, (2, 2))
        wide, high = (1 + self.stretch * draws[:, 1:3]).unbind(1)
        bent = torch.stack((wide, self.slant * draws[:, 3], torch.zeros_like(wide), high), dim=1).unflatten(1, (2, 2))
        return turned @ bent, self.shift * draws[:, 4:]


def moved(pixels: Tensor, mask: Tensor, matrix: Tensor, shift: Tensor) -> Tensor:
    """Pixels read at ``matrix`` [batch, 2, 2] (p - c) + c + ``shift`` [batch, 2], x before y, linear between pixels."""
    height, width = pixels.shape[2:]
    kind = pixels.dtype if pixels.dtype.itemsize >= 4 else torch.float32
    sizes = torch.stack((mask[:, 0].sum(dim=1), mask[:, :, 0].sum(dim=1)), dim=1).to(kind)  # of each image: x, y
    middle = ((sizes - 1) / 2)[:, None, None]
    y, x = torch.meshgrid(
        torch.arange(height, device=pixels.device, dtype=kind),
        torch.arange(width, device=pixels.device, dtype=kind),
        indexing="ij",
    )
    from_middle = torch.stack((x, y), dim=2) - middle
    read = torch.einsum("bij,bhwj->bhwi", matrix.to(kind), from_middle) + middle + shift.to(kind)[:, None, None]
    read = torch.minimum(read.clamp(min=0), (sizes - 1)[:, None, None])
    scale = torch.tensor([max(width - 1, 1), max(height - 1, 1)], device=pixels.device, dtype=kind)
    found = functional.grid_sample(pixels.to(kind), 2 * read / scale - 1, align_corners=True)
    return found.to(pixels.dtype)
