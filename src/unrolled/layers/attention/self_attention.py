"""Self-attention: every position of a sequence looks at the others, or at those before it only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.base.errors import UsageError
from unrolled.layers.attention.memory import Attended, Memory
from unrolled.layers.attention.multi_head import MultiHead
from unrolled.layers.cells.checks import State
from unrolled.layers.surroundings import traced


class SelfAttention(nn.Module):
    """y = MultiHead(x, x): query, keys and values are all made of the sequence (Vaswani et al. 2017, §3.2.3).

    An encoder's looks both ways. With ``causal`` position t sees the positions up to t, as a decoder must: then
    ``step`` takes one position at a time, from keys and values kept of those before.
    """

    def __init__(self, size: int, /, *, heads: int = 8, dropout: float = 0.0, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        reach = "causal" if causal else "global"
        self.attention = MultiHead(size, size, heads=heads, dropout=dropout, reach=reach)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What every position of ``x`` [batch, time, size] reads, same shape; ``mask`` bool [batch, time], True = real.

        Without weights, in one fused operation. UsageError as `Attention.remember`; with ``causal`` also where padding
        comes before a real position, for then the count of real ones is not that of steps.
        """
        memory = self._remember(x, mask)
        if self.causal or mask is None:  # what is real and looks back meets no padding
            return self.attention.fused(x, memory.keys, memory.values, causal=self.causal)
        return self.attention.context(x, memory)

    def look(self, x: Tensor, mask: Tensor | None = None) -> Attended:
        """As ``forward``, with the weights [batch, time, time] and those of each head."""
        seen: Attended = self.attention(x, self._remember(x, mask))
        return seen

    def initial(self, like: Tensor) -> State:
        """Keys and values before the first step, [batch, 0, size] each, for as many rows as ``like`` has."""
        empty = like.new_empty(like.shape[0], 0, self.attention.key_size)
        return empty, empty

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """What one position more, ``x`` [batch, size], reads, and the state with its key and value appended.

        UsageError without ``causal``: there a position also needs those that are still to come.
        """
        if not self.causal:
            raise UsageError("SelfAttention takes single steps only with causal=True; without, call it on the whole.")
        x = x.unsqueeze(1)
        kept, new = state, (self.attention.keys(x), self.attention.values(x))
        keys, values = (torch.cat((old.to(now.dtype), now), dim=1) for old, now in zip(kept, new, strict=True))
        return self.attention.fused(x, keys, values).squeeze(1), (keys, values)

    def _remember(self, x: Tensor, mask: Tensor | None) -> Memory:
        memory = self.attention.remember(x, mask)
        if self.causal and mask is not None and not traced(x):
            turned = (mask[:, 1:] & ~mask[:, :-1]).any(1).nonzero().flatten().tolist()
            if turned:
                raise UsageError(
                    f"mask of SelfAttention has padding before a real position in row {turned[0]}; with causal=True "
                    "padding stands at the end. Move it there."
                )
        return memory
