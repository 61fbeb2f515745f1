"""GNMT's order: the lowest layer asks, and what it reads goes into every layer."""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS
from unrolled.models.decoders.base import DECODERS
from unrolled.models.decoders.lowest import LowestAsks
from unrolled.models.ranges import Count, ResidualFrom, Share


@DECODERS.register("gnmt")
class Gnmt(LowestAsks):
    """The decoder of Wu et al. 2016 (arXiv:1609.08144, §3), with s^l the output of layer l and h_j the memory.

    α_i = softmax_j score(s¹_{i-1}, h_j);  c_i = Σ_j α_ij h_j      the lowest layer's last output asks (eq. 4)
    s¹_i = cell([y_{i-1}, c_i])
    s^l_i = cell([s^{l-1}_i, c_i])  (+ s^{l-1}_i)                  with the sum from layer ``residual`` on (§3.1)

    Only the lowest layer waits for the attention: the others run over the whole target in one call each. The output
    is the top layer's. ``residual``: true from the second layer on, or a number; the paper has 3.
    """

    context_above = True

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 4,
        residual: ResidualFrom = True,
        attention: Annotated[Part, ATTENTIONS] = "additive",
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__(
            embedding_size,
            memory_size,
            cell=cell,
            layers=layers,
            residual=residual,
            attention=attention,
            dropout={"kind": dropout_kind, "rate": dropout},
        )
        self.output_size = self.hidden_size

    def read(self, output: Tensor, _context: Tensor, _embedded: Tensor) -> Tensor:
        return output
