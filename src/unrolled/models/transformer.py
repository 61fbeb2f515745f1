"""What the layers of a Transformer have beside attention: an entry, a network for each position, and residual paths."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers.draws import dropout
from unrolled.models.positions import POSITIONS

Norm = Literal["pre", "post"]
Activation = Literal["relu", "gelu"]


class PerPosition(nn.Module):
    """g(x W_1 + b_1) W_2 + b_2, the same at every position (Vaswani et al. 2017, arXiv:1706.03762, §3.3)."""

    def __init__(self, size: int, /, *, feedforward_size: int, activation: Activation, dropout: float = 0.0) -> None:
        super().__init__()
        self.activation, self.dropout = activation, dropout
        self.widen = nn.Linear(size, feedforward_size)
        self.narrow = nn.Linear(feedforward_size, size)
        for layer in (self.widen, self.narrow):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.widen(x)
        wide = functional.relu(wide) if self.activation == "relu" else functional.gelu(wide)
        narrow: Tensor = self.narrow(dropout(wide, self.dropout, self.training))
        return narrow


class Around(nn.Module):
    """The residual path around a part f, with layer normalisation (Ba et al. 2016) after it or before.

    post   LN(x + dropout(f(x)))      as the paper has it (§3.1)
    pre    x + dropout(f(LN(x)))      trains without a slow start (Xiong et al. 2020, arXiv:2002.04745)
    """

    def __init__(self, size: int, /, *, norm: Norm, dropout: float = 0.0) -> None:
        super().__init__()
        self.pre, self.dropout = norm == "pre", dropout
        self.norm = nn.LayerNorm(size)

    def enter(self, x: Tensor) -> Tensor:
        """What f is given."""
        return self.norm(x) if self.pre else x

    def leave(self, x: Tensor, found: Tensor) -> Tensor:
        """What goes on, with ``found`` what f gave."""
        both = x + dropout(found, self.dropout, self.training)
        return both if self.pre else self.norm(both)


class Entry(nn.Module):
    """From embedded symbols to the first layer: brought to the layers' size, told where they stand, dropped from.

    Vaswani et al. 2017 (arXiv:1706.03762, §3.5 and §5.4); both sides have one.
    """

    def __init__(self, embedding_size: int, size: int, /, *, positions: Part, dropout: float) -> None:
        super().__init__()
        self.resize = nn.Linear(embedding_size, size, bias=False) if size != embedding_size else None
        self.positions = POSITIONS.build(positions, size, where="positions")
        self.dropout = dropout

    def forward(self, embedded: Tensor, first: int = 0, places: Tensor | None = None) -> Tensor:
        """``embedded`` [batch, time, embedding], whose first symbol stands at ``first``, or each where ``places`` says
        int64 [batch, time] → [batch, time, size]."""
        x = embedded if self.resize is None else self.resize(embedded)
        return dropout(self.positions(x, first, places), self.dropout, self.training)


def width(embedding_size: int, hidden_size: int | None, heads: int) -> int:
    """The size of every vector of a Transformer; SettingsError where the heads do not share it evenly."""
    size = hidden_size or embedding_size
    if size % heads:
        named = "hidden_size" if hidden_size else "the embedding's size"
        raise SettingsError(
            f"[heads] {heads} was given, and {named} {size} is not a multiple of it: every head has an equal "
            f"share. Possible: {', '.join(str(count) for count in range(1, min(size, 32) + 1) if size % count == 0)}."
        )
    return size
