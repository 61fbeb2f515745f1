"""Training frames changed a little each time they are read, so that a model learns what stays the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn

from unrolled.base.registry import Registry
from unrolled.models.ranges import Share

Amount = Annotated[int, Ge(0)]


class Augmentation(nn.Module, ABC):
    """Frames [batch, time, channels] and their mask → others, of the same rows; in evaluation the same ones."""

    keeps = True
    """Whether the frames stay as many as they were."""

    def forward(self, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.change(frames, mask) if self.training else (frames, mask)

    @abstractmethod
    def change(self, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`forward` in training. ``mask`` bool [batch, time], True = real, real frames first, one at least."""


AUGMENTATIONS: Registry[Augmentation] = Registry("augmentation")


@AUGMENTATIONS.register("specaugment")
class SpecAugment(Augmentation):
    """Masks over time and over channels (Park et al. 2019, arXiv:1904.08779, §2), and another tempo.

    Each row has ``time_masks`` stretches of 0 to ``time_width`` frames, none longer than ``time_share`` of the row,
    and ``channel_masks`` ranges of 0 to ``channel_width`` channels, set to 0, which is the mean of scaled frames.
    ``tempo``: each row is read faster or slower by a factor drawn from 1 - tempo to 1 + tempo, its frames interpolated
    (Ko et al. 2015 do it with samples, which moves the pitch too).
    """

    def __init__(
        self,
        *,
        time_masks: Amount = 2,
        time_width: Amount = 20,
        time_share: Share = 0.2,
        channel_masks: Amount = 2,
        channel_width: Amount = 8,
        tempo: Share = 0.0,
    ) -> None:
        super().__init__()
        self.time_masks, self.time_width, self.time_share = time_masks, time_width, time_share
        self.channel_masks, self.channel_width = channel_masks, channel_width
        self.tempo = tempo
        self.keeps = not tempo

    def change(self, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if self.tempo:
            factor = 1 + self.tempo * (2 * torch.rand(len(frames), device=frames.device) - 1)
            frames, mask = at_tempo(frames, mask, factor)
        lengths = mask.sum(dim=1)
        longest = (self.time_share * lengths).long().clamp(max=self.time_width)
        for _ in range(self.time_masks):
            frames = frames.masked_fill(_stretch(lengths, longest, frames.shape[1]).unsqueeze(2), 0.0)
        channels = torch.full_like(lengths, frames.shape[2])
        widest = channels.clamp(max=self.channel_width)
        for _ in range(self.channel_masks):
            frames = frames.masked_fill(_stretch(channels, widest, frames.shape[2]).unsqueeze(1), 0.0)
        return frames.masked_fill(~mask.unsqueeze(2), 0.0), mask


def _stretch(lengths: Tensor, most: Tensor, size: int) -> Tensor:
    """Of each row a stretch inside its length, of 0 to ``most`` places: bool [batch, size]. Both int64 [batch]."""
    first, second = torch.rand(2, len(lengths), device=lengths.device)
    width = (first * (most + 1)).long().minimum(most)
    start = (second * (lengths - width + 1)).long().minimum(lengths - width)
    place = torch.arange(size, device=lengths.device)
    return (place >= start.unsqueeze(1)) & (place < (start + width).unsqueeze(1))


def at_tempo(frames: Tensor, mask: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """Frame t of a row is what stood at t · factor, between two frames in proportion; ``factor`` [batch] above 0.

    A row of n frames then has n / factor, rounded, one at least.
    """
    lengths = mask.sum(dim=1)
    found = (lengths / factor).round().long().clamp(min=1)
    place = torch.arange(int(found.max()), device=frames.device)
    last = (lengths - 1).unsqueeze(1)
    at = (place * factor.unsqueeze(1)).minimum(last)
    low = at.floor().long()
    share = (at - low).unsqueeze(2).to(frames.dtype)
    rows = torch.arange(len(frames), device=frames.device).unsqueeze(1)
    between = torch.lerp(frames[rows, low], frames[rows, (low + 1).minimum(last)], share)
    kept = place < found.unsqueeze(1)
    return between.masked_fill(~kept.unsqueeze(2), 0.0), kept
