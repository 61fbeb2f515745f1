"""A word as filters of several widths read its characters: the strongest answer of each, then highway layers."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import PAD
from unrolled.layers.embedding import Embedding


class Highway(nn.Module):
    """y = t * relu(W x + b) + (1 - t) * x,  t = σ(W_t x + b_t)   (Srivastava et al. 2015, arXiv:1505.00387)

    b_t starts at -2, so that most of x is carried at first (ibid., §2.2).
    """

    def __init__(self, size: int, /) -> None:
        super().__init__()
        self.both = nn.Linear(size, 2 * size)
        nn.init.constant_(self.both.bias[size:], -2.0)

    def forward(self, x: Tensor) -> Tensor:
        new, gate = self.both(x).chunk(2, dim=-1)
        return torch.lerp(x, new.relu(), gate.sigmoid())


class SpellingEncoder(nn.Module):
    """Vectors of words from their characters (Kim et al. 2016, arXiv:1508.06615; Peters et al. 2018, §3.4).

    ``filters`` [n_1, n_2, …]: n_k filters of width k. Each looks at every k neighbouring characters, its answer is the
    greatest of them through a relu; ``highways`` highway layers and a linear one to ``output_size`` come after. Beyond
    a word's own characters there are zeros, so a word gets the same vector whatever stands beside it in a batch.
    """

    def __init__(
        self,
        vocabulary_size: int,
        output_size: int,
        /,
        *,
        size: int = 16,
        filters: tuple[int, ...] = (32, 32, 64, 128),
        highways: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not filters or min(filters) < 0 or not filters[-1]:
            raise SettingsError(
                f"[filters] {list(filters)} was given; give how many filters there are of width 1, 2, …, the last of "
                "them at least 1, e.g. [32, 32, 64]."
            )
        if highways < 0:
            raise SettingsError(f"[highways] {highways} was given; give 0 or more.")
        self.embedding = Embedding(vocabulary_size, size=size, dropout=dropout)
        self.filters = nn.ModuleList(
            nn.Conv1d(size, count, width) for width, count in enumerate(filters, start=1) if count
        )
        self.highways = nn.Sequential(*(Highway(sum(filters)) for _ in range(highways)))
        self.projection = nn.Linear(sum(filters), output_size)
        self.output_size = output_size

    def forward(self, characters: Tensor) -> Tensor:
        """``characters`` int64 [words, length], PAD behind each word, which has one character at least → [words,
        output]; UsageError for anything else."""
        if characters.dim() != 2 or not characters.shape[1]:
            raise UsageError(f"characters have the shape {list(characters.shape)}; give [words, length].")
        mask = characters != PAD
        if bool((~mask[:, 0]).any()) or bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise UsageError("a word has no character, or PAD inside; PAD may only stand behind its characters.")
        vectors = self.embedding(characters).transpose(1, 2)
        found = [self._strongest(one, vectors, mask) for one in self.filters]
        read: Tensor = self.projection(self.highways(torch.cat(found, dim=1).relu()))
        return read

    def _strongest(self, one: nn.Module, vectors: Tensor, mask: Tensor) -> Tensor:
        width = cast(nn.Conv1d, one).kernel_size[0]
        before = (width - 1) // 2
        answers = one(functional.pad(vectors, (before, width - 1 - before)))
        highest: Tensor = answers.masked_fill(~mask.unsqueeze(1), -torch.inf).amax(dim=2)
        return highest
