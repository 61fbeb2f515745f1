"""An encoder turns embedded symbols into one vector a position, and says where the sentence left its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers import CELLS, Recurrent, State
from unrolled.models.layout import Layout, by_layer
from unrolled.models.ranges import Count, Share


class Encoded(NamedTuple):
    """A batch of encoded sentences."""

    output: Tensor  # [batch, source, memory]; exactly 0 on padding
    mask: Tensor  # bool [batch, source], True = real
    state: State  # where the sentence ended, laid out as the encoder's `layout`
    summary: Tensor  # [batch, memory]; the whole sentence in one vector, Cho's c


class Encoder(nn.Module, ABC):
    """Embedded symbols [batch, source, embedding] → Encoded. A row never depends on its neighbours or its padding."""

    output_size: int
    layout: Layout

    @abstractmethod
    def forward(self, embedded: Tensor, mask: Tensor) -> Encoded:
        """``mask`` bool [batch, source], True = real, real positions first."""


ENCODERS: Registry[Encoder] = Registry("encoder")


@ENCODERS.register("rnn")
class RecurrentEncoder(Encoder):
    """Stacked recurrent layers in one or two directions: h_j = h_j^forward ⊕ h_j^backward.

    ``reverse`` reads the source from its end, inside its true length (Sutskever et al. 2014, arXiv:1409.3215, §3.3).
    The summary is the last state of each direction's top layer, so the backward one's stands at the first symbol.
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 1,
        bidirectional: bool = True,
        residual: bool = False,
        reverse: bool = False,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        self.reverse = reverse
        self.recurrent = Recurrent(
            embedding_size,
            cell=cell,
            layers=layers,
            bidirectional=bidirectional,
            residual=residual,
            dropout=dropout,
            dropout_kind=dropout_kind,
        )
        self.output_size = self.recurrent.output_size
        self.layout = by_layer(self.recurrent.state_sizes, layers)
        self._outputs = tuple(len(self.layout[-1]) // (2 if bidirectional else 1) * k for k in range(1 + bidirectional))

    def forward(self, embedded: Tensor, mask: Tensor) -> Encoded:
        if self.reverse:
            embedded = reverse(embedded, mask)
        output, state = self.recurrent(embedded, mask)
        if self.reverse:
            output = reverse(output, mask)
        top = state[-len(self.layout[-1]) :]
        return Encoded(output, mask, state, torch.cat([top[place] for place in self._outputs], dim=-1))


def reverse(sequence: Tensor, mask: Tensor) -> Tensor:
    """``sequence`` [batch, time, size] read backwards inside the true lengths; padding stays where it is."""
    time = torch.arange(mask.shape[1], device=mask.device)
    last = mask.sum(dim=1, keepdim=True) - 1
    places = torch.where(mask, last - time, time)
    return sequence.gather(1, places.unsqueeze(-1).expand_as(sequence))
