"""A pyramid of recurrent layers: each reads two positions of the one below as one, so the time halves."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.registry import Part
from unrolled.layers import CELLS, DROPOUTS, Recurrent, State
from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder
from unrolled.models.layout import Layout, by_layer
from unrolled.models.ranges import Count, Share


@ENCODERS.register("pyramidal")
class PyramidalEncoder(Encoder):
    """h^l_i = BiRNN^l(h^l_{i-1}, [h^{l-1}_{2i}, h^{l-1}_{2i+1}])   (Chan et al. 2016, arXiv:1508.01211, §3.1).

    A plain layer in two directions, then ``layers`` that halve the time, inside the true lengths; the last pair of a
    row of odd length has its second half empty. So a memory position stands for 2^layers symbols, and the weights a
    model returns are spread over them again. Made for long inputs, as frames of speech.
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 1,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__(embedding_size)
        self.lowest = Recurrent(embedding_size, cell=cell, bidirectional=True)
        size = self.lowest.output_size
        self.halving = nn.ModuleList(Recurrent(2 * size, cell=cell, bidirectional=True) for _ in range(layers))
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout")
        self.output_size = size
        self.layout: Layout = sum((by_layer(layer.state_sizes, 1) for layer in self._stack()), ())
        self.reduction = 2**layers

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        output, ends = self.lowest(embedded, mask)
        state: State = ends
        for layer in cast("list[Recurrent]", self.halving):
            output, mask = halve(self.dropout(output), mask)
            output, ends = layer(output, mask)
            state = (*state, *ends)
        width = len(ends) // 2
        return Encoded(output, mask, state, torch.cat((ends[0], ends[width]), dim=-1))

    def _stack(self) -> list[Recurrent]:
        return [self.lowest, *cast("list[Recurrent]", self.halving)]


def halve(sequence: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of positions of ``sequence`` [batch, time, size] as one, [batch, ⌈time / 2⌉, 2 · size], and their mask."""
    odd = sequence.shape[1] % 2
    filled = functional.pad(sequence, (0, 0, 0, odd))
    return filled.unflatten(1, (-1, 2)).flatten(2), mask[:, ::2]
