"""Words read by their characters, then in both directions by stacks of layers that never see each other."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import CELLS, DROPOUTS, Recurrent, SpellingEncoder
from unrolled.models.encoders.rnn import reverse


class TwoWays(NamedTuple):
    """Texts read in both directions."""

    words: Tensor  # [batch, time, size]: of the characters alone
    forward: tuple[Tensor, ...]  # of each layer [batch, time, size]: what was read up to a place, itself included
    backward: tuple[Tensor, ...]  # of each layer [batch, time, size]: what was read from the end back to it

    def layers(self) -> tuple[Tensor, ...]:
        """Each layer's vectors, both directions side by side, that of the characters alone first: [batch, time,
        2 · size]."""
        pairs = zip((self.words, *self.forward), (self.words, *self.backward), strict=True)
        return tuple(torch.cat(pair, dim=2) for pair in pairs)


class TwoWayReader(nn.Module):
    """What `Elmo` reads with: x = spellings, h_t^k = cell_k(h_{t-1}^k, h_t^{k-1}) with h^0 = x, and so from the other
    end. Its settings are those of `Elmo`."""

    def __init__(
        self,
        characters: int,
        /,
        *,
        character_size: int,
        filters: tuple[int, ...],
        highways: int,
        cell: Part,
        layers: int,
        residual: bool,
        dropout: float = 0.0,
        input_dropout: float | None = None,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        self.residual, self.count = residual, layers + 1
        self.size = CELLS.build(cell, 1, where="cell").output_size
        self.spelling = SpellingEncoder(characters, self.size, size=character_size, filters=filters, highways=highways)
        self.ahead = nn.ModuleList(Recurrent(self.size, cell=cell) for _ in range(layers))
        self.back = nn.ModuleList(Recurrent(self.size, cell=cell) for _ in range(layers))
        rates = (dropout if input_dropout is None else input_dropout, dropout)
        self.input_dropout, self.dropout = (DROPOUTS.build({"kind": dropout_kind, "rate": rate}) for rate in rates)

    def forward(self, characters: Tensor, mask: Tensor) -> TwoWays:
        """Read ``characters`` int64 [batch, time, length], PAD behind each word, as ``mask`` [batch, time] has it."""
        words = self.spell(characters, mask)
        given = self.input_dropout(words)
        ahead = self._read(self.ahead, given, mask)
        back = self._read(self.back, reverse(given, mask), mask)
        return TwoWays(words, ahead, tuple(reverse(layer, mask) for layer in back))

    def spell(self, characters: Tensor, mask: Tensor) -> Tensor:
        """The words' vectors [batch, time, size], 0 at padding; each different word is looked at once."""
        different, places = torch.unique(characters[mask], dim=0, return_inverse=True)
        read = self.spelling(different)
        return read.new_zeros(*mask.shape, read.shape[1]).masked_scatter(mask.unsqueeze(2), read[places])

    def _read(self, stack: nn.ModuleList, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        found: list[Tensor] = []
        for layer in cast("list[Recurrent]", list(stack)):
            output = layer(self.dropout(x) if found else x, mask).output
            x = output + x if found and self.residual else output
            found.append(x)
        return tuple(found)
