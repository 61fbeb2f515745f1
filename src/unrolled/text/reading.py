"""What turns the cells of a column into numbers, frames or pixels: one class a kind of input, learnt and kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError
from unrolled.base.registry import Registry
from unrolled.base.settings import Tree
from unrolled.text.trees import tree_of, write_tree

Numbers = NDArray[np.float32]


class Reader(ABC):
    """Cells (literal numbers, the path of a file) to arrays, frames [time, channels] or others with channels last.

    Keyword-only parameters of the constructor are its settings; it keeps them in ``settings``, with their ``kind``.
    A store keeps an array flat: the sizes of all axes but the first in front, then its numbers.
    """

    vocabulary_size = 0  # numbers, no symbols
    settings: Tree
    axes: ClassVar[int] = 2
    """How many axes an array has, the last that of channels."""
    counted: ClassVar[int] = 1
    """How many positions of an array count as one symbol, where rows are measured."""
    weight: ClassVar[int] = 1
    """How many frames one so counted takes as much room as, in a network."""
    channels: int
    """Numbers of a frame or pixel, as a network reads it."""

    @abstractmethod
    def learn(self, cells: Iterable[str]) -> None:
        """What follows from training rows: the scale."""

    @abstractmethod
    def scaled(self, given: Any) -> Numbers:
        """Float32 [time, channels], or as ``axes`` has it, of a cell or of what Python gives in its place; DataError
        that says what is wrong with it."""

    @abstractmethod
    def learnt(self) -> Tree:
        """What ``learn`` found, as JSON knows it."""

    @abstractmethod
    def restore(self, tree: Tree) -> None:
        """Take up what ``learnt`` gave. KeyError, TypeError or ValueError for what it never gives."""

    @abstractmethod
    def about(self) -> str:
        """How it reads, in words."""

    def read(self, sources: Sequence[Any]) -> list[Numbers]:
        """The arrays of several sources; DataError that says which one cannot be read."""
        found = []
        for place, source in enumerate(sources):
            try:
                found.append(self.scaled(source))
            except DataError as error:
                where = source if isinstance(source, str) and len(source) < 200 else f"source {place}"
                raise DataError(str(error) if where in str(error) else f"{where}: {error}") from None
        return found

    def size(self, row: Numbers) -> int:
        """How long an array is, ``counted`` of its positions as one."""
        return -(-(row.size // row.shape[-1]) // self.counted)

    def encode_ids(self, texts: Sequence[str]) -> list[Any]:
        """What a store keeps of each cell."""
        return [flat(self.scaled(text)) for text in texts]

    def stored(self, row: Numbers) -> Numbers:
        """The array of a row that a store has kept."""
        sizes = row[: self.axes - 1].astype(np.int64)
        return row[self.axes - 1 :].reshape(-1, *sizes)

    def padded(self, rows: Sequence[Numbers]) -> tuple[Numbers, NDArray[np.bool_]]:
        """Arrays side by side as a front reads them, [rows, …], and bool [rows, positions], True = real: the positions
        that come out of it, which attention is over."""
        return pad_frames(rows)

    def fingerprint(self) -> str:
        """Changes when any number that a frame depends on does."""
        return f"{self.settings!r} {self.learnt()!r}"

    def save(self, path: str | Path) -> None:
        """Write it; UnrolledError where it cannot be written."""
        write_tree(Path(path), {"settings": self.settings, **self.learnt()})

    @staticmethod
    def load(path: str | Path) -> Reader:
        """What ``save`` wrote; DataError for a missing or damaged file."""
        with tree_of(Path(path), "reader of the source") as tree:
            reader = READERS.build(tree["settings"])
            reader.restore(tree)
        return reader


def flat(array: Numbers) -> Numbers:
    """The sizes of all axes but the first, then the numbers."""
    return np.concatenate([np.array(array.shape[1:], np.float32), array.ravel()])


def pad_frames(rows: Sequence[Numbers]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Frames [time, channels] as float32 [rows, longest, channels], 0 at padding, and their mask."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    frames = np.zeros((len(rows), int(lengths.max()), rows[0].shape[1]), dtype=np.float32)
    for out, row in zip(frames, rows, strict=True):
        out[: len(row)] = row
    return frames, np.arange(frames.shape[1]) < lengths[:, None]


READERS: Registry[Reader] = Registry("reader")
"""What reads a source that is no text: one file a kind."""
