"""Words in: a vector for every symbol, with dropout of numbers and of whole symbols."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.layers.dropout import DROPOUTS


class Embedding(nn.Module):
    """A learned vector of ``size`` numbers for each of ``vocabulary_size`` symbols.

    ``weight`` is [vocabulary, size] and starts normal with deviation 1/√size, so that it can be tied to an output
    layer; the row of PAD is 0 and stays 0. In training ``word_dropout`` is the probability that a symbol is read as
    the unknown one (Bowman et al. 2016, arXiv:1511.06349), PAD, BEGIN and END excepted; ``dropout`` that of a number.
    """

    def __init__(
        self,
        vocabulary_size: int,
        /,
        *,
        size: int = 128,
        dropout: float = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        for name, value in (("vocabulary_size", vocabulary_size), ("size", size)):
            if value < 1:
                raise SettingsError(f"{name} of an embedding is {value}; give a whole number of at least 1.")
        if not 0.0 <= word_dropout < 1.0:
            raise SettingsError(f"word_dropout {word_dropout} was given; it must be at least 0 and below 1.")
        self.vocabulary_size = vocabulary_size
        self.size = size
        self.word_dropout = word_dropout
        self.weight = nn.Parameter(torch.empty(vocabulary_size, size))
        nn.init.normal_(self.weight, std=size**-0.5)
        self.weight.data[PAD] = 0.0
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout})

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors [batch, time, size] of ``ids`` [batch, time]; UsageError where the ids are no symbols."""
        if ids.is_floating_point() or ids.dtype is torch.bool:
            raise UsageError(
                f"ids of an embedding have the type {ids.dtype}; they must be whole numbers (torch.int64)."
            )
        if self.training and self.word_dropout:
            ids = self._forget(ids)
        try:
            vectors = functional.embedding(ids, self.weight, padding_idx=PAD)
        except IndexError:  # a processor looks; elsewhere to look is to wait
            wrong = ids[(ids < 0) | (ids >= self.vocabulary_size)][0].item()
            raise UsageError(
                f"ids of an embedding hold {wrong}; with {self.vocabulary_size} symbols they are from 0 to "
                f"{self.vocabulary_size - 1}. Was the text encoded with another vocabulary?"
            ) from None
        return self.dropout(vectors)

    def _forget(self, ids: Tensor) -> Tensor:
        chosen = torch.rand(ids.shape, device=ids.device) < self.word_dropout
        for kept in (PAD, BEGIN, END):
            chosen &= ids != kept
        return ids.masked_fill(chosen, UNKNOWN)

    def extra_repr(self) -> str:
        return f"{self.vocabulary_size}, size={self.size}, word_dropout={self.word_dropout}"
