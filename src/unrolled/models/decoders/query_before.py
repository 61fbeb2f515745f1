"""Bahdanau's order: look first, then move. The last state asks, and the context goes into the cell."""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor

from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS
from unrolled.models.decoders.base import DECODERS
from unrolled.models.decoders.lowest import LowestAsks
from unrolled.models.decoders.readout import Readout, ReadoutKind
from unrolled.models.ranges import Count, ResidualFrom, Share


@DECODERS.register("query_before")
class QueryBefore(LowestAsks):
    """c_i = Σ_j α_ij h_j,  α_i = softmax_j score(s_{i-1}, h_j);   s_i = cell([y_{i-1}, c_i], s_{i-1}).

    Bahdanau, Cho & Bengio 2015 (arXiv:1409.0473). The output is read from s_i, c_i and y_{i-1}. With more layers the
    lowest one asks and takes the context, and the others stand on it (as in GNMT, Wu et al. 2016, arXiv:1609.08144,
    §3), so only the lowest waits for the attention. ``residual``: a layer's input is added to its output, true from the
    second layer on, or a number from that layer on. ``gate``: the context counts as far as s_{i-1} opens a gate on it
    (`Gated`; Xu et al. 2015, arXiv:1502.03044).
    """

    context_above = False

    def __init__(
        self,
        embedding_size: int,
        memory_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "gru",
        layers: Count = 1,
        residual: ResidualFrom = False,
        attention: Annotated[Part, ATTENTIONS] = "additive",
        gate: bool = False,
        readout: ReadoutKind = "tanh",
        readout_size: Count | None = None,
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
            gate=gate,
        )
        sizes = (self.hidden_size, self.attention.context_size, embedding_size)
        self.readout = Readout(sizes, kind=readout, size=readout_size)
        self.output_size = self.readout.output_size

    def read(self, output: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        return self.readout((output, context, embedded))
