"""Running text in blocks that are read from the first word to the last, each with random numbers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.data.batching import Rows
from unrolled.data.streams import Documents


class Block(NamedTuple):
    """Symbols in the order of the text, BEGIN before each document."""

    ids: Tensor  # int32 [symbols]
    seed: Tensor  # int64, scalar: what random numbers of this block and this epoch begin with


class Blocks:
    """Documents end to end, cut every ``size`` symbols; in every epoch the blocks come in another order to
    ``shuffle``."""

    def __init__(self, store: Rows, *, size: int, seed: int, shuffle: bool, name: str) -> None:
        self.documents, self.name = Documents(store), name
        self.total = int(self.documents.offsets[-1])
        self.size, self._seed, self._shuffle = size, seed, shuffle
        self.count = -(-self.total // size)

    def __len__(self) -> int:
        """Symbols of an epoch."""
        return self.total

    def remarks(self) -> list[str]:
        many = len(self.documents)
        return [f"{many:,} text{'s' if many != 1 else ''}, {self.total - many:,} words and marks."]

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """Of each block its number, counted on through the epochs."""
        order = np.arange(self.count)
        if self._shuffle:
            order = np.random.default_rng((self._seed, epoch)).permutation(order)
        return list((epoch * self.count + order)[:, None])

    def load(self, rows: np.ndarray) -> Block:
        """The block of a number."""
        number = int(rows[0])
        start = number % self.count * self.size
        ids = self.documents.take(start, min(start + self.size, self.total)).astype(np.int32)
        seed = np.random.SeedSequence((self._seed, number)).generate_state(1, np.uint64)[0] >> np.uint64(1)
        return Block(torch.from_numpy(ids), torch.tensor(int(seed)))

    def places(self, rows: np.ndarray) -> list[str]:
        """Where the blocks begin in the user's file."""
        starts = [int(row) % self.count * self.size for row in rows]
        lines = self.documents.store.places([self.documents.row_of(start) for start in starts])
        return [f"{self.name}:{line}" for line in lines]

    def longest(self) -> np.ndarray:
        return np.array([0])
