"""Words in: a vector for every symbol, with dropout of numbers and of whole symbols."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.layers.dropout import DROPOUTS
from unrolled.layers.kernels.tiled import as_it_is


class Embedding(nn.Module):
    """A learned vector of ``size`` numbers for each of ``vocabulary_size`` symbols.

    ``weight`` is [vocabulary, size] and starts normal with deviation 1/√size, so that it can be tied to an output
    layer; the row of PAD is 0 and stays 0. In training ``word_dropout`` is the probability that a symbol is read as
    the unknown one (Bowman et al. 2016, arXiv:1511.06349), PAD, BEGIN and END excepted; ``dropout`` that of a number.

    Symbols that ``freeze`` takes out of learning have their vectors in the buffer ``frozen`` [frozen, size], and
    ``weight`` is [others, size], each in the order of the ids: what does not learn costs an optimiser nothing.
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
        self.frozen: Tensor | None
        self.places: Tensor | None
        self.register_buffer("frozen", None)
        self.register_buffer("places", None, persistent=False)  # of each symbol's vector in [weight, frozen]
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
            vectors = self._look_up(ids)
        except IndexError:  # a processor looks; elsewhere to look is to wait
            wrong = ids[(ids < 0) | (ids >= self.vocabulary_size)][0].item()
            raise UsageError(
                f"ids of an embedding hold {wrong}; with {self.vocabulary_size} symbols they are from 0 to "
                f"{self.vocabulary_size - 1}. Was the text encoded with another vocabulary?"
            ) from None
        return self.dropout(vectors) if self.dropout.active else vectors

    def _look_up(self, ids: Tensor) -> Tensor:
        if self.frozen is None or self.places is None:
            return functional.embedding(ids, as_it_is(self.weight), padding_idx=PAD)
        learning = len(self.weight)
        places = self.places.index_select(0, ids.flatten()).view(ids.shape)
        learnt = functional.embedding(places.clamp(max=learning - 1), as_it_is(self.weight), padding_idx=PAD)
        kept = functional.embedding((places - learning).clamp(min=0), self.frozen)
        return torch.where((places < learning).unsqueeze(-1), learnt, kept.to(learnt.dtype))

    # --- vectors from elsewhere -----------------------------------------------------------------------------------

    def freeze(self, ids: Tensor) -> None:
        """Take the symbols ``ids`` int64 [n] out of learning, before an optimiser is made over the weights.

        UsageError where some are frozen already, and for PAD, whose vector is 0 anyway.
        """
        if self.frozen is not None or bool((ids == PAD).any()):
            raise UsageError("symbols of an embedding are frozen once, and <pad> never.")
        kept = torch.zeros(self.vocabulary_size, dtype=torch.bool, device=self.weight.device)
        kept[ids] = True
        order = torch.cat([(~kept).nonzero(), kept.nonzero()]).squeeze(1)
        vectors = self.weight.detach()
        self.places = order.argsort()
        self.frozen = vectors[kept].clone()
        self.weight = nn.Parameter(vectors[~kept].clone())

    @torch.no_grad()
    def put(self, ids: Tensor, vectors: Tensor) -> None:
        """Let the symbols ``ids`` int64 [n] have ``vectors`` [n, size], frozen or not."""
        if self.frozen is None or self.places is None:
            self.weight[ids] = vectors.to(self.weight)
            return
        places, learning = self.places[ids], len(self.weight)
        self.weight[places[places < learning]] = vectors[places < learning].to(self.weight)
        self.frozen[places[places >= learning] - learning] = vectors[places >= learning].to(self.frozen)

    def table(self) -> Tensor:
        """The vectors of all symbols, [vocabulary, size], without a graph."""
        weight = self.weight.detach()
        if self.frozen is None or self.places is None:
            return weight
        return torch.cat([weight, self.frozen.to(weight.dtype)])[self.places]

    def _forget(self, ids: Tensor) -> Tensor:
        chosen = torch.rand(ids.shape, device=ids.device) < self.word_dropout
        for kept in (PAD, BEGIN, END):
            chosen &= ids != kept
        return ids.masked_fill(chosen, UNKNOWN)

    def extra_repr(self) -> str:
        return f"{self.vocabulary_size}, size={self.size}, word_dropout={self.word_dropout}"
