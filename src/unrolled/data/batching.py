"""Batches of rows of like length: planned from lengths alone, the same for the same seed and epoch, every row once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN, END, PAD
from unrolled.data import planning


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

    def __len__(self) -> int: ...

    def lengths(self, column: str, start: int = 0, stop: int | None = None) -> np.ndarray: ...

    def places(self, rows: Sequence[int] | np.ndarray) -> np.ndarray: ...

    def take(self, column: str, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]: ...


def collate(
    sources: Sequence[Sequence[int] | np.ndarray],
    targets: Sequence[Sequence[int] | np.ndarray] | None,
    rows: Sequence[int] | np.ndarray,
) -> Pairs:
    """Pad rows of plain ids and add the special symbols; without ``targets`` the target is None."""
    source = padded_ids(sources, begin=False)
    target = None if targets is None else padded_ids(targets, begin=True)
    return Pairs(source, target, torch.as_tensor(np.array(rows, dtype=np.int64)))


Columns = list[list[np.ndarray]]
"""The ids of some rows, column by column in the store's order."""


def collate_pairs(columns: Columns, rows: np.ndarray) -> Pairs:
    """A batch of sequences to sequences; of one column a batch without targets."""
    return collate(columns[0], columns[1] if len(columns) > 1 else None, rows)


def padded_ids(rows: Sequence[Sequence[int] | np.ndarray], begin: bool) -> Tokens:
    """Rows of plain ids, each ended by END, and with ``begin`` begun by BEGIN."""
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


_MOST = np.iinfo(np.int32).max - 2


class Batches:
    """How the rows of a store fall into batches, epoch by epoch.

    ``tokens`` bounds what a batch's padded tensors hold, source and target together, specials and padding counted;
    or ``sentences`` fixes its rows. A single row above the budget is a batch of its own. Rows with more than
    ``max_length`` symbols on a side (specials not counted) are left out or cut, and counted in ``dropped`` and ``cut``.
    Unshuffled batches are sorted by length, the same each epoch.

    ``specials`` says of the first columns how many special symbols padding adds to a row; they are the sides that count
    and are cut. What other columns hold (a label) is handed on as it is. ``collate`` makes a batch of columns and row
    numbers.

    Rows are sorted and shuffled ``planning.WINDOW`` at a time; more of them fall into windows of blocks from all over
    the store, drawn anew each epoch. What is held does not depend on how many rows there are.
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
        specials: Sequence[int] = (1, 2),
        collate: Callable[[Columns, np.ndarray], Any] = collate_pairs,
    ) -> None:
        if (tokens is None) == (sentences is None):
            raise SettingsError("a batch is bounded by 'tokens' or by 'sentences': give exactly one of them.")
        least = (("tokens", tokens, 1), ("sentences", sentences, 1), ("max_length", max_length, 1), ("seed", seed, 0))
        for setting, value, bound in least:
            if value is not None and value < bound:
                raise SettingsError(f"{setting} = {value} was given; it must be at least {bound}.")
        self.store, self.name = store, name
        self.sign = ":"  # what stands between the name and a place, as of a `Table`
        self._seed, self._max_length = seed, max_length
        self._specials = tuple(specials)[: len(store.columns)]
        self._sides, self._collate = store.columns[: len(self._specials)], collate
        self._cutter = planning.Cutter(tokens, sentences, shuffle)
        self._drop = too_long == "drop"
        starts = range(0, len(store), planning.WINDOW) if max_length else ()
        long = sum(int(self._long(self._lengths(start, start + planning.WINDOW)).sum()) for start in starts)
        self.dropped, self.cut = (long, 0) if self._drop else (0, long)

    def __len__(self) -> int:
        """Rows of an epoch."""
        return len(self.store) - self.dropped

    def plan(self, epoch: int) -> planning.Plan:
        """The row numbers (int64) of each batch of ``epoch``: a function of the store, the seed and the epoch."""
        windows = -(-len(self.store) // planning.WINDOW)
        blocks = np.arange(-(-len(self.store) // planning.BLOCK))
        if self._cutter.shuffle and windows > 1:
            blocks = np.random.default_rng((self._seed, epoch)).permutation(blocks)
        parts = np.array_split(blocks, max(windows, 1))

        def make(number: int) -> planning.Window:
            random = np.random.default_rng((self._seed, epoch, number) if windows > 1 else (self._seed, epoch))
            return self._window(np.sort(parts[number]), random)

        return planning.Plan(make, windows)

    def _window(self, blocks: np.ndarray, random: np.random.Generator) -> planning.Window:
        """The batches of the rows in ``blocks``."""
        size, count = planning.BLOCK, len(self.store)
        spans = [(block * size, min(block * size + size, count)) for block in blocks.tolist()]
        kind = np.int32 if count <= np.iinfo(np.int32).max else np.int64
        rows = np.concatenate([np.arange(start, end, dtype=kind) for start, end in spans])
        found = [self._lengths(start, end) for start, end in spans]
        lengths = [np.concatenate(side) for side in zip(*found, strict=True)]
        if self.dropped:
            kept = ~self._long(lengths)
            rows, lengths = rows[kept], [side[kept] for side in lengths]
        return self._cutter.window(rows, self._padded_sizes(lengths), random)

    def _lengths(self, start: int, stop: int) -> list[np.ndarray]:
        return [self.store.lengths(column, start, stop) for column in self._sides]

    def _long(self, lengths: Sequence[np.ndarray]) -> np.ndarray:
        return np.any([side > (self._max_length or _MOST) for side in lengths], axis=0)

    def _padded_sizes(self, lengths: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Symbols of each side as they stand in a tensor: cut, with END and in a target BEGIN."""
        limit = self._max_length or _MOST
        return [np.minimum(side, limit) + specials for side, specials in zip(lengths, self._specials, strict=True)]

    def load(self, rows: np.ndarray) -> Any:
        """The padded tensors of ``rows``."""
        columns = []
        for column in self.store.columns:
            limit = self._max_length if column in self._sides and not self._drop else None
            columns.append([row[:limit] for row in self.store.take(column, rows)])
        return self._collate(columns, rows)

    def remarks(self) -> list[str]:
        """Sentences about what is not used of the rows."""
        if not (self.dropped or self.cut):
            return []
        what = "left out" if self.dropped else "cut"
        return [f"{self.dropped + self.cut:,} rows are longer than data.max_length and were {what}."]

    def places(self, rows: np.ndarray) -> list[str]:
        """Where ``rows`` stand in the user's file: ``pairs.tsv:12``."""
        return [f"{self.name}{self.sign}{place}" for place in self.store.places(rows).tolist()]

    def symbols(self, rows: np.ndarray) -> int:
        """What the padded tensors of a batch of ``rows`` hold, source and target together."""
        return len(rows) * sum(int(side.max(initial=0)) for side in self._sizes_of(rows))

    def _sizes_of(self, rows: np.ndarray) -> list[np.ndarray]:
        taken = [self.store.take(column, rows) for column in self._sides]
        return self._padded_sizes([np.array([len(row) for row in side], dtype=np.int32) for side in taken])

    def longest(self) -> np.ndarray:
        """The rows of the batch that needs most memory, of a typical epoch; of equals, the one with most rows."""
        longest, most = np.empty(0, dtype=np.int64), (0, 0)
        for window in self.plan(0).windows():
            if len(window):
                found = window.batch(window.fullest())
                size = (int(window.symbols[window.fullest()]), len(found))
                longest, most = (found, size) if size > most else (longest, most)
        return longest

    def padding_share(self, plan: Sequence[np.ndarray]) -> float:
        """The share of padding in all tensors of ``plan``, 0 to 1."""
        held = sum(self.symbols(rows) for rows in plan)
        real = sum(int(side.sum(dtype=np.int64)) for rows in plan for side in self._sizes_of(rows))
        return 1 - real / held if held else 0.0
