"""A bridge carries the encoder's last state into the decoder's first one, between any cells, sizes and depths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Registry
from unrolled.layers import State
from unrolled.layers.kernels import steps
from unrolled.models.encoders import Encoded
from unrolled.models.layout import Layout


class Bridge(nn.Module, ABC):
    """Encoded → the decoder's first state, laid out as the decoder's `layout`."""

    carries = True
    """Whether anything of the source comes across."""

    @abstractmethod
    def forward(self, encoded: Encoded) -> State: ...


BRIDGES: Registry[Bridge] = Registry("bridge")


@BRIDGES.register("projection")
class Projection(Bridge):
    """Each decoder layer learns its first state from the encoder layer beside it: s_0 = tanh(W h + b).

    All tensors and directions of that encoder layer go in, so cells and sizes may differ; layers are paired from the
    top, and a deeper decoder's lowest ones share the encoder's lowest. Bahdanau et al. 2015 (arXiv:1409.0473, A.2.2).
    """

    def __init__(self, encoder: Layout, decoder: Layout, /, *, activation: Literal["tanh", "none"] = "tanh") -> None:
        super().__init__()
        self.activation = activation
        self.encoder, self.decoder = encoder, decoder
        self.carries = bool(decoder)
        shift = len(encoder) - len(decoder)
        self.partners = [max(layer + shift, 0) for layer in range(len(decoder))]
        self.layers = nn.ModuleList(
            nn.Linear(sum(encoder[partner]), sum(sizes)) for partner, sizes in zip(self.partners, decoder, strict=True)
        )

    def forward(self, encoded: Encoded) -> State:
        flat = iter(encoded.state)
        ends = [torch.cat([next(flat) for _ in sizes], dim=-1) for sizes in self.encoder]
        state: list[torch.Tensor] = []
        for layer, partner, sizes in zip(self.layers, self.partners, self.decoder, strict=True):
            start = layer(ends[partner])
            start = steps.tanh(start) if self.activation == "tanh" else start
            state.extend(start.split(sizes, dim=-1))
        return tuple(state)


@BRIDGES.register("copy")
class Copy(Bridge):
    """The decoder goes on from the encoder's own last state (Sutskever et al. 2014); the layouts must be equal.

    A decoder without a recurrent state takes nothing.
    """

    def __init__(self, encoder: Layout, decoder: Layout, /) -> None:
        super().__init__()
        if decoder and encoder != decoder:
            raise SettingsError(
                f"the bridge 'copy' needs encoder and decoder states of the same sizes, not {_words(encoder)} "
                f"and {_words(decoder)}. Make cell, hidden_size and layers equal, one direction, or use 'projection'."
            )
        self.carries = bool(decoder)

    def forward(self, encoded: Encoded) -> State:
        return encoded.state if self.carries else ()


@BRIDGES.register("zeros")
class Zeros(Bridge):
    """The decoder starts from zeros: what it knows of the source comes by attention or by the context alone."""

    carries = False

    def __init__(self, _encoder: Layout, decoder: Layout, /) -> None:
        super().__init__()
        self.sizes = [size for layer in decoder for size in layer]

    def forward(self, encoded: Encoded) -> State:
        rows = encoded.summary.shape[0]
        return tuple(encoded.summary.new_zeros(rows, size) for size in self.sizes)


def _words(layout: Layout) -> str:
    return " + ".join("(" + ", ".join(map(str, layer)) + ")" for layer in layout)
