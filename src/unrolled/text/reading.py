"""What turns the cells of a column into sequences of frames: one class a kind of input, learnt, saved, loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.base.registry import Registry
from unrolled.base.settings import Tree
from unrolled.text.frames import Frames
from unrolled.text.trees import tree_of, write_tree


class Reader(ABC):
    """Cells to scaled frames [time, channels]; in a store flat, the number of channels in front.

    Keyword-only parameters of the constructor are its settings; it keeps them in ``settings``, with their ``kind``.
    """

    vocabulary_size = 0  # numbers, no symbols
    settings: Tree
    channels: int
    """Numbers of a frame, as a network reads it."""

    @abstractmethod
    def learn(self, cells: Iterable[str]) -> None:
        """What follows from training rows: the scale."""

    @abstractmethod
    def scaled(self, given: Any) -> Frames:
        """Float32 [time, channels] of a cell, or of what Python gives in its place; DataError that says what is
        wrong with it."""

    @abstractmethod
    def learnt(self) -> Tree:
        """What ``learn`` found, as JSON knows it."""

    @abstractmethod
    def restore(self, tree: Tree) -> None:
        """Take up what ``learnt`` gave. KeyError, TypeError or ValueError for what it never gives."""

    @abstractmethod
    def about(self) -> str:
        """How it reads, in words."""

    def encode_ids(self, texts: Sequence[str]) -> list[Any]:
        """Of each cell float32 [1 + time · channels]: how many channels, then frame by frame."""
        return [np.concatenate([np.array([self.channels], np.float32), self.scaled(text).ravel()]) for text in texts]

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


READERS: Registry[Reader] = Registry("reader")
"""What reads a source that is no text: one file a kind."""
