"""The text side of a task that writes: a source, read in any way, and the tokenizer of what is written of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.text.base import Text
from unrolled.text.tokenizer import Encoded, Tokenizer


class Sides(Text):
    """What is read and what is written. Its columns are ``source`` and ``target``."""

    source: Any
    """What turns cells of the source column into ids or numbers (`unrolled.data.store.Encoder`)."""

    target: Tokenizer

    lends: int = 0
    """How many symbols after the vocabulary each source lends to words that have none."""

    @abstractmethod
    def read(self, sources: Sequence[Any]) -> list[Any]:
        """Each source as a row: what ``positions`` and ``padded`` take."""

    def read_targets(self, sources: Sequence[Any], targets: Sequence[str]) -> list[Encoded]:  # noqa: ARG002
        """The target of each source, as symbols."""
        return self.target.encode_batch(list(targets))

    def names(self, source: Any, ids: Sequence[int]) -> list[str]:  # noqa: ARG002
        """The names of symbols that were written of ``source`` (`Tokenizer.tokens`, `Tokenizer.join`)."""
        return self.target.tokens(ids)

    @abstractmethod
    def positions(self, row: Any) -> int:
        """How long a row is, 0 where there is nothing to read."""

    @abstractmethod
    def padded(self, rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Rows side by side as a network takes them, [rows, …], and bool [rows, positions], True = real."""
