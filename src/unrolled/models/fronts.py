"""What an encoder reads of numbers: frames of a signal or of speech, an image, as one vector a position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers import DROPOUTS
from unrolled.models.augmenting import AUGMENTATIONS
from unrolled.models.contextual import Looked
from unrolled.models.ranges import Count, Share


class Front(nn.Module, ABC):
    """Numbers [batch, …] as vectors [batch, positions, output_size]. A row never depends on its neighbours."""

    output_size: int
    keeps = False
    """Whether it gives one position for each frame, in training too."""

    @abstractmethod
    def forward(self, given: Tensor, mask: Tensor) -> Looked:
        """``mask`` bool [batch, positions], True = real: the positions that come out."""


FRONTS: Registry[Front] = Registry("front")


@FRONTS.register("frames")
class FramesFront(Front):
    """x_t = V f_t + b of each frame f_t, float [batch, time, channels].

    ``size`` of x_t. ``noise``: the deviation of the Gaussian noise that training adds to every number of a scaled
    frame, ``augment`` what is masked and stretched then; ``dropout`` is that of x_t.
    """

    def __init__(
        self,
        channels: int,
        /,
        *,
        size: Count = 64,
        noise: Annotated[float, Ge(0)] = 0.0,
        augment: Annotated[Part | None, AUGMENTATIONS] = None,
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.augment = None if augment is None else AUGMENTATIONS.build(augment, where="augment")
        self.project = nn.Linear(channels, size)
        self.dropout = DROPOUTS.build({"kind": "plain", "rate": dropout}, where="dropout")
        self.noise = noise
        self.output_size = size
        self.keeps = self.augment is None or self.augment.keeps

    def forward(self, given: Tensor, mask: Tensor) -> Looked:
        if self.training and self.noise:
            given = given + self.noise * torch.randn_like(given)
        if self.augment is not None:
            given, mask = self.augment(given, mask)
        return Looked(self.dropout(self.project(given)), mask)
