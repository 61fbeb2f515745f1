"""An encoder turns embedded symbols into one vector a position, and says where the sentence left its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.errors import UsageError
from unrolled.base.registry import Registry
from unrolled.layers import State
from unrolled.layers.surroundings import autocast_on, traced
from unrolled.models.layout import Layout


class Encoded(NamedTuple):
    """A batch of encoded sentences."""

    output: Tensor  # [batch, memory positions, memory]; exactly 0 on padding
    mask: Tensor  # bool [batch, memory positions], True = real
    state: State  # where the sentence ended, laid out as the encoder's `layout`
    summary: Tensor  # [batch, memory]; the whole sentence in one vector, Cho's c


class Encoder(nn.Module, ABC):
    """Embedded symbols [batch, source, embedding] → Encoded. A row never depends on its neighbours or its padding.

    An encoder that has no recurrent state gives its mean vector as the state of one layer, so that every bridge and
    every decoder works with it.
    """

    output_size: int
    layout: Layout
    reduction: int = 1
    """How many source positions, from the first on, one position of the memory stands for."""

    def __init__(self, embedding_size: int) -> None:
        super().__init__()
        self.embedding_size = embedding_size

    def forward(self, embedded: Tensor, mask: Tensor, places: Tensor | None = None) -> Encoded:
        """``mask`` bool [batch, source], True = real, real positions first. ``places`` int64 [batch, source], at most
        the position + 1: where each symbol stands in its text, if not simply one after the other from 0 on.

        UsageError for other shapes and types, and for a row without a real position.
        """
        size, name = self.embedding_size, type(self).__name__
        if embedded.dim() != 3 or embedded.shape[2] != size or 0 in embedded.shape:
            raise UsageError(
                f"embedded of {name} has shape {list(embedded.shape)}; it must be [batch, source, {size}], with at "
                "least one row and one position."
            )
        if mask.dtype is not torch.bool or mask.shape != embedded.shape[:2]:
            raise UsageError(
                f"mask of {name} is {mask.dtype} {list(mask.shape)}; it must be torch.bool {list(embedded.shape[:2])}, "
                "True = real."
            )
        own = next(chain(self.parameters(), self.buffers())).dtype
        if embedded.dtype is not own and not autocast_on(embedded):
            raise UsageError(f"embedded of {name} is {embedded.dtype}, its weights are {own}; make them alike.")
        return self.encode(embedded, mask) if places is None else self.encode_at(embedded, mask, places)

    @abstractmethod
    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        """`forward` of what has been looked at."""

    def encode_at(self, embedded: Tensor, mask: Tensor, places: Tensor) -> Encoded:  # noqa: ARG002
        """`encode` of symbols that stand at ``places``; one that reads them in order need not know these."""
        return self.encode(embedded, mask)


ENCODERS: Registry[Encoder] = Registry("encoder")


def averaged(output: Tensor, mask: Tensor) -> Encoded:
    """``output`` [batch, source, memory], padding set to 0, with its mean over real positions as state and summary."""
    lengths = mask.sum(dim=1, keepdim=True)
    if not traced(output):  # who traces may not look at a mask's numbers
        empty = (lengths == 0).nonzero()[:, 0].tolist()
        if empty:
            raise UsageError(f"the source of row {empty[0]} has no real position; leave empty rows out.")
    output = output.masked_fill(~mask.unsqueeze(2), 0.0)
    mean = output.sum(dim=1) / lengths
    return Encoded(output, mask, (mean,), mean)
