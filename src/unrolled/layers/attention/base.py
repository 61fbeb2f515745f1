"""Attention: a query scores every position of a memory, and reads their weighted mean."""

from __future__ import annotations

import abc
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Registry


class Memory(NamedTuple):
    """What a query can look at, prepared once a sentence. All batch first, so that rows are moved by index_select."""

    keys: Tensor  # [batch, source, key]: what scores are computed from
    values: Tensor  # [batch, source, memory]: what is read
    mask: Tensor  # bool [batch, source], True = real


class Attended(NamedTuple):
    """What a query saw."""

    context: Tensor  # [batch, memory], or [batch, time, memory] where the query had a time axis
    weights: Tensor  # float32 at least, [batch, source], or [batch, time, source]; rows sum to 1, exactly 0 on padding


class Attention(nn.Module, abc.ABC):
    """The base of all: α_j = softmax_j(e_j) over real positions, c = Σ_j α_j h_j. A kind writes only its score e."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        for name, size in (("query_size", query_size), ("memory_size", memory_size)):
            if size < 1:
                raise SettingsError(f"{name} of an attention is {size}; give a whole number of at least 1.")
        self.query_size = query_size
        self.memory_size = memory_size

    @property
    def context_size(self) -> int:
        """Size of the context that `forward` returns."""
        return self.memory_size

    def remember(self, encoded: Tensor, mask: Tensor | None = None) -> Memory:
        """Prepare ``encoded`` [batch, source, memory] for queries; ``mask`` bool [batch, source], None = all real.

        UsageError where a size is wrong or a row has no real position.
        """
        if encoded.dim() != 3 or encoded.shape[2] != self.memory_size:
            raise UsageError(
                f"encoded of the attention {type(self).__name__} has shape {list(encoded.shape)}; "
                f"it must be [batch, source, {self.memory_size}]."
            )
        if mask is None:
            mask = torch.ones(encoded.shape[:2], dtype=torch.bool, device=encoded.device)
        if mask.dtype is not torch.bool or mask.shape != encoded.shape[:2]:
            raise UsageError(
                f"mask of the attention {type(self).__name__} is {mask.dtype} {list(mask.shape)}; "
                f"it must be torch.bool {list(encoded.shape[:2])}, True = real."
            )
        empty = (~mask.any(1)).nonzero().flatten().tolist()
        if empty:
            raise UsageError(
                f"mask of the attention {type(self).__name__} has no real position in row {empty[0]}; "
                "every row needs at least one. Leave empty rows out."
            )
        return Memory(self.keys(encoded), encoded, mask)

    def keys(self, encoded: Tensor) -> Tensor:
        """The part of the score that needs no query, [batch, source, key]."""
        return encoded

    @abc.abstractmethod
    def score(self, query: Tensor, memory: Memory) -> Tensor:
        """Scores e [batch, time, source] of ``query`` [batch, time, query]; padding may have any score."""

    def forward(self, query: Tensor, memory: Memory) -> Attended:
        """Context and weights of ``query``, [batch, query] or [batch, time, query]. The softmax is float32 at least."""
        if query.dim() == 2:
            context, weights = self.forward(query.unsqueeze(1), memory)
            return Attended(context.squeeze(1), weights.squeeze(1))
        if query.dim() != 3 or query.shape[2] != self.query_size or query.shape[0] != memory.mask.shape[0]:
            raise UsageError(
                f"query of the attention {type(self).__name__} has shape {list(query.shape)}; it must be "
                f"[{memory.mask.shape[0]}, {self.query_size}] or [{memory.mask.shape[0]}, time, {self.query_size}]."
            )
        scores = self.score(query, memory).masked_fill(~memory.mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(2, dtype=torch.promote_types(scores.dtype, torch.float32))
        return Attended(torch.bmm(weights.to(memory.values.dtype), memory.values), weights)


ATTENTIONS: Registry[Attention] = Registry("attention")
