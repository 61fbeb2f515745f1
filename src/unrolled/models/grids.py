"""From pixels to a coarser grid of vectors by convolutions, whatever padding and neighbours an image has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from math import prod
from typing import Annotated, Literal, cast

import torch
from annotated_types import MinLen
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Registry
from unrolled.layers.surroundings import traced
from unrolled.models.ranges import Count

Norm = Literal["group", "batch", "none"]


class Grid(nn.Module, ABC):
    """Pixels [batch, channels, height, width] → vectors [batch, size, rows, columns], 0 at padding, and which are real.

    A place stands for ``stride`` pixels a side: place (r, c) for those from (r · stride, c · stride) on.
    """

    output_size: int
    stride: int

    @abstractmethod
    def forward(self, pixels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """``mask`` bool [batch, height, width], True = real: a rectangle from the first row and column on."""


GRIDS: Registry[Grid] = Registry("grid")


@GRIDS.register("convolutional")
class Convolutional(Grid):
    """Stages of plain convolutions: x ← relu(norm(W * x)), ``convolutions`` times, then a coarser grid.

    ``sizes`` are the channels of the stages and ``strides`` by how much each makes the grid coarser (null: 2 each), by
    the largest of every square (``reduce: max``) or by a convolution that steps over (``stride``). ``width`` of the
    windows, one for all stages or one a stage, is odd: what a place has seen of the image grows by (width - 1) · the
    stride so far with each convolution, and where that is wider than a thing, attention may stand beside it. ``norm``:
    over groups of channels of an image (Wu & He 2018, arXiv:1803.08494), which does not depend on the batch, over the
    ``batch`` (Ioffe & Szegedy 2015, arXiv:1502.03167), or none. Padding is 0 before every window and counts in no norm,
    so that a padded image gives what it gives alone.
    """

    def __init__(
        self,
        channels: int,
        /,
        *,
        sizes: Annotated[list[Count], MinLen(1)] = [32, 64, 128],  # noqa: B006
        strides: list[Count] | None = None,
        convolutions: Count = 1,
        width: Count | list[Count] = 3,
        reduce: Literal["max", "stride"] = "max",
        norm: Norm = "group",
    ) -> None:
        super().__init__()
        steps = [2] * len(sizes) if strides is None else strides
        if len(steps) != len(sizes):
            raise SettingsError(f"[strides] {len(steps)} were given for {len(sizes)} stages (sizes). Give one a stage.")
        widths = [width] * len(sizes) if isinstance(width, int) else width
        if len(widths) != len(sizes):
            raise SettingsError(f"[width] {len(widths)} were given for {len(sizes)} stages (sizes). Give one a stage.")
        if even := [one for one in widths if one % 2 == 0]:
            raise SettingsError(f"[width] {even[0]} was given; windows have a middle, so it must be odd.")
        self.stages = nn.ModuleList(
            _Stage(before, after, step, convolutions, wide, reduce, norm)
            for (before, after), step, wide in zip(pairwise([channels, *sizes]), steps, widths, strict=True)
        )
        self.output_size, self.stride = sizes[-1], prod(steps)

    def forward(self, pixels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        whole = not traced(pixels) and bool(mask.all())
        x = pixels if whole else pixels.masked_fill(~mask.unsqueeze(1), 0.0)
        for stage in cast("list[_Stage]", self.stages):
            x, mask = stage(x, mask, whole)
        return x, mask


class _Stage(nn.Module):
    """One stage of `Convolutional`."""

    def __init__(
        self, before: int, after: int, step: int, convolutions: int, width: int, reduce: str, norm: Norm
    ) -> None:
        super().__init__()
        self.step, self.pools = step, reduce == "max" and step > 1
        self.layers = nn.ModuleList(
            nn.Conv2d(
                before if number == 0 else after,
                after,
                width,
                stride=step if number == 0 and not self.pools else 1,
                padding=width // 2,
                bias=norm == "none",
            )
            for number in range(convolutions)
        )
        self.norms = nn.ModuleList(_NORMS[norm](after) for _ in range(convolutions))
        for layer in cast("list[nn.Conv2d]", self.layers):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: Tensor, mask: Tensor, whole: bool) -> tuple[Tensor, Tensor]:
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            if number == 0 and not self.pools:
                mask = _coarser(mask, self.step)
            x = norm(layer(x), mask, whole).relu()
            if not whole:
                x = x.masked_fill(~mask.unsqueeze(1), 0.0)
        if self.pools:  # nothing is below 0, so padding is never the largest
            x, mask = functional.max_pool2d(x, self.step, ceil_mode=True), _coarser(mask, self.step)
        return x, mask


def _coarser(mask: Tensor, step: int) -> Tensor:
    """Places of which a pixel at least is real."""
    return mask[:, ::step, ::step]


class NoNorm(nn.Module):
    """x as it is."""

    def __init__(self, _size: int, /) -> None:
        super().__init__()

    def forward(self, x: Tensor, _mask: Tensor, _whole: bool) -> Tensor:
        return x


class GroupNorm(nn.Module):
    """(x - mean) / deviation of each image's real places, by groups of up to 8 channels, then scaled and moved."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        groups = next(count for count in range(max(1, size // 8), 0, -1) if size % count == 0)
        self.norm = nn.GroupNorm(groups, size)

    def forward(self, x: Tensor, mask: Tensor, whole: bool) -> Tensor:
        """``mask`` [batch, rows, columns]; ``whole``: all of it is real."""
        if whole:
            normal: Tensor = self.norm(x)
            return normal
        groups, real = self.norm.num_groups, mask[:, None, None]
        split = x.unflatten(1, (groups, -1))
        count = mask.sum(dim=(1, 2))[:, None, None, None, None] * split.shape[2]
        exact = split.float() if split.dtype.itemsize < 4 else split
        mean = exact.masked_fill(~real, 0.0).sum(dim=(2, 3, 4), keepdim=True) / count
        centred = (exact - mean).masked_fill(~real, 0.0)
        variance = centred.square().sum(dim=(2, 3, 4), keepdim=True) / count
        found = (centred * torch.rsqrt(variance + self.norm.eps)).flatten(1, 2)
        return (found * self.norm.weight[:, None, None] + self.norm.bias[:, None, None]).to(x.dtype)


class BatchNorm(nn.Module):
    """(x - mean) / deviation over the real places of all images of the batch; of those of training where none is."""

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(size)

    def forward(self, x: Tensor, mask: Tensor, whole: bool) -> Tensor:
        """``mask`` [batch, rows, columns]; ``whole``: all of it is real."""
        if whole or not self.training:
            if self.training and x.numel() == x.shape[1]:  # one place has no deviation
                return self._known(x)
            normal: Tensor = self.norm(x)
            return normal
        last = x.movedim(1, 3)
        real = last[mask]
        if len(real) == 1:
            return self._known(x)
        return (
            last.new_zeros(last.shape)
            .masked_scatter(mask.unsqueeze(3), self.norm(real[:, :, None, None]))
            .movedim(3, 1)
        )

    def _known(self, x: Tensor) -> Tensor:
        norm = self.norm
        return functional.batch_norm(
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps
        )


_NORMS: dict[Norm, type[NoNorm] | type[GroupNorm] | type[BatchNorm]] = {
    "none": NoNorm,
    "group": GroupNorm,
    "batch": BatchNorm,
}
