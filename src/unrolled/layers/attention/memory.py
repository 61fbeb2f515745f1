"""What a query looks at, and what it saw: the two named results that travel between attention and decoder."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from unrolled.layers.cells.checks import State


class Memory(NamedTuple):
    """What a query can look at, prepared once a sentence. All batch first, so that rows are moved by index_select."""

    keys: Tensor  # [batch, source, key]: what scores are computed from
    values: Tensor  # [batch, source, value]: what is read
    mask: Tensor  # bool [batch, source], True = real

    def places(self) -> Tensor:
        """The number of each position among its row's real ones, int64 [batch, source]; padding has any."""
        return self.mask.cumsum(1) - 1

    def lengths(self) -> Tensor:
        """The number of real positions of each row, int64 [batch]."""
        return self.mask.sum(1)


class Asked(NamedTuple):
    """A query as it meets the keys: the score is q · k, or with a vector v vᵀ tanh(q + k)."""

    query: Tensor  # [batch, time, key], or [batch, key]
    vector: Tensor | None = None  # [key]


class Attended(NamedTuple):
    """What a query saw."""

    context: Tensor  # [batch, context], or [batch, time, context] where the query had a time axis
    weights: Tensor  # float32 at least, [batch, source], or [batch, time, source]; rows sum to 1, exactly 0 on padding
    state: State = ()  # what the next step needs to know of this one: a flat tuple, batch first, often empty
    heads: Tensor | None = None  # [batch, heads, source] or [batch, time, heads, source]; their mean is ``weights``
