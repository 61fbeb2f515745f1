"""Batches of rows of like length: planned from lengths alone, the same for the same seed and epoch, every row once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN, END, PAD


class Tokens(NamedTuple):
    """Padded rows. ``ids`` int64 [batch, length]; ``mask`` bool [batch, length], True = real, a prefix of each row."""

    ids: Tensor
    mask: Tensor


class Pairs(NamedTuple):
    """A batch: source rows end with END, target rows begin with BEGIN and end with END; ``rows`` int64 [batch]."""

    source: Tokens
    target: Tokens | None
    rows: Tensor


class Rows(Protocol):
    """What batches are made of: a Store, or anything that gives lengths and rows."""

    columns: tuple[str, ...]
    places: np.ndarray

    def __len__(self) -> int: ...

    def lengths(self, column: str) -> np.ndarray: ...

    def take(self, column: str, rows: np.ndarray) -> list[np.ndarray]: ...


def collate(
    sources: Sequence[Sequence[int] | np.ndarray],
    targets: Sequence[Sequence[int] | np.ndarray] | None,
    rows: Sequence[int] | np.ndarray,
) -> Pairs:
    """Pad rows of plain ids and add the special symbols; without ``targets`` the target is None."""
    source = _padded(sources, begin=False)
    target = None if targets is None else _padded(targets, begin=True)
    return Pairs(source, target, torch.as_tensor(np.array(rows, dtype=np.int64)))


def _padded(rows: Sequence[Sequence[int] | np.ndarray], begin: bool) -> Tokens:
    shift = int(begin)
    lengths = np.array([len(row) for row in rows], dtype=np.int64) + shift
    ids = np.full((len(rows), int(lengths.max(initial=0)) + 1), PAD, dtype=np.int64)
    for out, row in zip(ids, rows, strict=True):
        out[shift : shift + len(row)] = row
    if begin:
        ids[:, 0] = BEGIN
    ids[np.arange(len(rows)), lengths] = END
    mask = np.arange(ids.shape[1]) <= lengths[:, None]
    return Tokens(torch.from_numpy(ids), torch.from_numpy(mask))


class Batches:
    """How the rows of a store fall into batches, epoch by epoch.

    ``tokens`` bounds what a batch's padded tensors hold, source and target together, specials and padding counted;
    or ``sentences`` fixes its rows. A single row above the budget is a batch of its own. Rows with more than
    ``max_length`` symbols on a side (specials not counted) are left out or cut, and counted in ``dropped`` and ``cut``.
    Unshuffled batches are sorted by length, the same each epoch.
    """

    def __init__(
        self,
        store: Rows,
        *,
        tokens: int | None = None,
        sentences: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        max_length: int | None = None,
        too_long: Literal["drop", "cut"] = "drop",
        name: str = "line",
    ) -> None:
        if (tokens is None) == (sentences is None):
            raise SettingsError("a batch is bounded by 'tokens' or by 'sentences': give exactly one of them.")
        least = (("tokens", tokens, 1), ("sentences", sentences, 1), ("max_length", max_length, 1), ("seed", seed, 0))
        for setting, value, bound in least:
            if value is not None and value < bound:
                raise SettingsError(f"{setting} = {value} was given; it must be at least {bound}.")
        self.store, self.name = store, name
        self._tokens, self._sentences = tokens, sentences
        self._seed, self._shuffle = seed, shuffle
        self._max_length = max_length
        limit = max_length or np.iinfo(np.int32).max
        lengths = [store.lengths(column) for column in store.columns[:2]]
        long = np.zeros(len(store), dtype=bool)
        for column in lengths:
            long |= column > limit
        self.cut = int(long.sum()) if too_long == "cut" else 0
        self.dropped = int(long.sum()) if too_long == "drop" else 0
        self._kept = np.flatnonzero(~long) if self.dropped else np.arange(len(store))
        self._sizes = [
            np.minimum(column, limit).astype(np.int64) + specials
            for column, specials in zip(lengths, (1, 2), strict=False)
        ]

    def __len__(self) -> int:
        """Rows of an epoch."""
        return len(self._kept)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The row numbers (int64) of each batch of ``epoch``: a function of the store, the seed and the epoch."""
        random = np.random.default_rng((self._seed, epoch))
        order = self._by_length(random)
        ends = self._ends(order)
        batches = [order[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
        if self._shuffle:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def _by_length(self, random: np.random.Generator) -> np.ndarray:
        """Rows by source length and, among equals, by target length, up and down in turn, so that neighbours are alike
        on both sides. Noise of half a symbol, or half of what lies between two batches if that is more, moves rows
        from batch to batch, so that no two epochs are the same."""
        rows = self._kept
        source, target = self._sizes[0][rows], self._sizes[-1][rows]
        tie: np.ndarray = rows
        if self._shuffle and len(rows):
            low, high = np.percentile(source, [5, 95])
            noise = max(0.5, (high - low) / 2 / self._about(rows))
            source = np.floor(source + random.uniform(-noise, noise, len(rows))).astype(np.int64)
            tie = random.permutation(len(rows))
        return rows[np.lexsort((tie, np.where(source % 2, -target, target), source))]

    def _about(self, rows: np.ndarray) -> float:
        """Roughly how many batches ``rows`` make."""
        if self._sentences is not None:
            return max(1.0, len(rows) / self._sentences)
        return max(1.0, sum(int(size[rows].sum()) for size in self._sizes) / (self._tokens or 1))

    def _ends(self, order: np.ndarray) -> list[int]:
        if self._sentences is not None:
            return [*range(self._sentences, len(order), self._sentences), len(order)] if len(order) else []
        budget, ends = self._tokens or 1, []
        sides = [size[order].tolist() for size in self._sizes]
        start, widest = 0, [0] * len(sides)
        for i, here in enumerate(zip(*sides, strict=True)):
            widest = [max(pair) for pair in zip(widest, here, strict=True)]
            while i > start and (i + 1 - start) * sum(widest) > budget:
                start += even(i - start)
                ends.append(start)
                widest = [max(side[start : i + 1]) for side in sides]
        return [*ends, len(order)] if len(order) else []

    def load(self, rows: np.ndarray) -> Pairs:
        """The padded tensors of ``rows``."""
        limit = self._max_length
        sides = [[row[:limit] for row in self.store.take(column, rows)] for column in self.store.columns[:2]]
        return collate(sides[0], sides[1] if len(sides) == 2 else None, rows)

    def places(self, rows: np.ndarray) -> list[str]:
        """Where ``rows`` stand in the user's file: ``pairs.tsv:12``."""
        return [f"{self.name}:{place}" for place in self.store.places[np.asarray(rows)].tolist()]

    def symbols(self, rows: np.ndarray) -> int:
        """What the padded tensors of a batch of ``rows`` hold, source and target together."""
        return len(rows) * sum(int(size[rows].max(initial=0)) for size in self._sizes)

    def longest(self) -> np.ndarray:
        """The rows of the batch that needs most memory, of a typical epoch; of equals, the one with most rows."""
        plan = self.plan(0)
        return max(plan, key=lambda rows: (self.symbols(rows), len(rows))) if plan else np.empty(0, dtype=np.int64)

    def padding_share(self, plan: Sequence[np.ndarray]) -> float:
        """The share of padding in all tensors of ``plan``, 0 to 1."""
        held = sum(self.symbols(rows) for rows in plan)
        real = sum(int(size[rows].sum()) for rows in plan for size in self._sizes)
        return 1 - real / held if held else 0.0


EVEN = 16


def even(rows: int) -> int:
    """``rows``, or a little less: a multiple of EVEN where that loses less than half of them.

    Kernels are made anew for every shape that they meet (oneDNN's bfloat16 products take a millisecond each, and a
    thousand are kept). Batches of round sizes meet the same shapes again and again.
    """
    return rows - rows % EVEN if rows >= 2 * EVEN else rows
