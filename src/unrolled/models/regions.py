"""What an encoder and an attention read of an image: a row of vectors, one for each of its regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from torch import Tensor

from unrolled.base.registry import Part
from unrolled.layers.surroundings import traced
from unrolled.models.contextual import Looked
from unrolled.models.fronts import FRONTS, Front
from unrolled.models.grids import GRIDS
from unrolled.models.jitters import JITTERS
from unrolled.models.positions import POSITIONS


@FRONTS.register("image")
class ImageFront(Front):
    """a_(r,c) = grid((pixels - mean) / deviation)_(r,c) + [P_r, P_c]

    ``positions``: the code of a row of the grid and that of a column, side by side, so that an attention can tell
    places: the one-dimensional codes of texts, each of half the size. ``jitter`` changes images in training.

    ``mean`` and ``deviation`` of the training pixels, 0 to 255, come from `scale`; until then 127.5 each.
    """

    def __init__(
        self,
        channels: int,
        /,
        *,
        grid: Annotated[Part, GRIDS] = "convolutional",
        positions: Annotated[Part, POSITIONS] = "sinusoidal",
        jitter: Annotated[Part, JITTERS] = "none",
    ) -> None:
        super().__init__()
        self.grid = GRIDS.build(grid, channels, where="grid")
        size = self.grid.output_size
        self.rows = POSITIONS.build(positions, size // 2, where="positions")
        self.columns = POSITIONS.build(positions, size - size // 2, where="positions")
        self.jitter = JITTERS.build(jitter, where="jitter")
        self.output_size, self.stride = size, self.grid.stride
        self.mean: Tensor
        self.deviation: Tensor
        for name in ("mean", "deviation"):
            self.register_buffer(name, torch.full((channels,), 127.5), persistent=False)

    def scale(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        """Tell the moments of each channel over the training pixels."""
        self.mean = torch.tensor(mean, dtype=torch.float32, device=self.mean.device)
        self.deviation = torch.tensor(deviation, dtype=torch.float32, device=self.mean.device)

    def forward(self, given: Tensor, mask: Tensor) -> Looked:  # noqa: ARG002
        """Images ``given`` [batch, height, width, channels + 1], 0 to 255, the last channel 1 where a pixel is real.

        Vectors [batch, regions, size], row by row of each image's own grid, the real ones first, and which are real:
        what a reader says of an image's places before (``mask``) and the front sees for itself.
        """
        real = given[..., -1] > 0
        scaled = ((given[..., :-1] - self.mean) / self.deviation).movedim(3, 1)
        if self.training:
            scaled = self.jitter(scaled, real)
        seen, places = self.grid(scaled, real)
        return _in_rows(self._placed(seen).flatten(2).transpose(1, 2), places.flatten(1))

    def _placed(self, seen: Tensor) -> Tensor:
        """Vectors [batch, size, rows, columns] that know where they are."""
        height, width = seen.shape[2:]
        rows = self.rows.table(0, height, seen)[:, None].expand(-1, width, -1)
        columns = self.columns.table(0, width, seen)[None].expand(height, -1, -1)
        return seen + torch.cat((rows, columns), dim=2).movedim(2, 0)

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the grid of an image of so many pixels."""
        return -(-height // self.stride), -(-width // self.stride)


def _in_rows(vectors: Tensor, real: Tensor) -> Looked:
    """``vectors`` [batch, places, size] with the real places of each row moved to its front, in their order."""
    if traced(vectors) or bool(real.all()):
        return Looked(vectors, real)
    order = real.logical_not().to(torch.uint8).argsort(dim=1, stable=True)[:, : int(real.sum(dim=1).max())]
    mask = real.gather(1, order)
    found = vectors.gather(1, order.unsqueeze(2).expand(-1, -1, vectors.shape[2]))
    return Looked(found.masked_fill(~mask.unsqueeze(2), 0.0), mask)
