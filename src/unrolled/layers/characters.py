"""A word as its characters spell it: a vector for every word of a row, whatever padding stands around it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import PAD
from unrolled.layers.embedding import Embedding
from unrolled.layers.modules import LSTM


class CharacterEncoder(nn.Module):
    """Vectors [batch, words, ``output_size``] of characters [batch, words, characters], PAD behind each word.

    ``reader`` "cnn" takes the maximum over a convolution of ``window`` characters (Ma & Hovy 2016, arXiv:1603.01354),
    "lstm" the ends of an LSTM in both directions (Lample et al. 2016, arXiv:1603.01360). A word of PAD alone gives 0.
    """

    def __init__(
        self,
        vocabulary_size: int,
        /,
        *,
        reader: Literal["cnn", "lstm"] = "cnn",
        size: int = 30,
        hidden_size: int = 30,
        window: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if reader not in ("cnn", "lstm"):
            raise SettingsError(f"reader of characters is {reader!r}. Known: cnn, lstm.")
        if hidden_size < 1 or window < 1 or window % 2 == 0:
            raise SettingsError(f"hidden_size {hidden_size}, window {window}: give 1 or more, an odd window.")
        self.embedding = Embedding(vocabulary_size, size=size, dropout=dropout)
        self.reader: nn.Module
        if reader == "cnn":
            self.reader = nn.Conv1d(size, hidden_size, window, padding=window // 2)
        else:
            self.reader = LSTM(size, hidden_size, batch_first=True, bidirectional=True)
        self.output_size = hidden_size if reader == "cnn" else 2 * hidden_size

    def forward(self, characters: Tensor) -> Tensor:
        """The vectors; UsageError where ``characters`` has another shape or PAD stands inside a word."""
        if characters.dim() != 3:
            raise UsageError(f"characters have the shape {list(characters.shape)}; give [batch, words, characters].")
        mask = (characters != PAD).flatten(0, 1)
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise UsageError("PAD stands inside a word of the characters; it may only stand behind one.")
        full = mask.any(1)
        result = self.embedding.weight.new_zeros(len(mask), self.output_size)
        if bool(full.any()):
            read = self._read(characters.flatten(0, 1)[full], mask[full])
            result = result.to(read.dtype).index_put((full.nonzero()[:, 0],), read)
        return result.unflatten(0, characters.shape[:2])

    def _read(self, characters: Tensor, mask: Tensor) -> Tensor:
        vectors = self.embedding(characters)
        if isinstance(self.reader, nn.Conv1d):
            read = self.reader(vectors.transpose(1, 2))
            highest: Tensor = read.masked_fill(~mask[:, None], -torch.inf).amax(2)
            return highest
        packed = pack_padded_sequence(vectors, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        _, (ends, _) = self.reader(packed)
        return torch.cat([ends[0], ends[1]], 1)
