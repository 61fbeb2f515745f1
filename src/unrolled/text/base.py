"""The text side of a task: what turns its rows into ids and back, learnt once and saved with the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from unrolled.text.tokenizer import Tokenizer

Rows = Callable[[], Iterable[Sequence[str]]]
"""Starts to read the training rows from the beginning: the fields of each, in the order of the task's columns."""


class Text(ABC):
    """A pair of tokenizers, one tokenizer, a tokenizer and labels: whatever the rows of a task need."""

    settings: ClassVar[type]
    """The dataclass that the section ``text`` of a settings file is checked against."""

    @classmethod
    @abstractmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> Self:
        """Learn vocabularies, labels, … from the training rows. The same rows give the same result."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when any symbol or setting does."""

    def vocabulary_fingerprint(self) -> str:
        """Changes when any symbol of a vocabulary does: models of the same symbols can speak together."""
        return self.fingerprint()

    @abstractmethod
    def save(self, folder: str | Path) -> None:
        """Write files of its own names into ``folder``, which is made; UnrolledError where it cannot be written."""

    @classmethod
    @abstractmethod
    def load(cls, folder: str | Path) -> Self:
        """What ``save`` wrote. Raises DataError for a missing or damaged file."""

    def reader(self, name: str) -> Tokenizer:
        """The tokenizer whose settings stand under ``name`` in the section ``text``."""
        found: Tokenizer = getattr(self, name)
        return found

    def network_ids(self, symbols: Sequence[int]) -> list[int]:
        """The ids under which the network reads the symbols of a tokenizer."""
        return list(symbols)

    def read_ids(self, column: str, ids: Sequence[int]) -> list[int]:  # noqa: ARG002
        """The ids of a stored row of ``column`` as the network's embedding sees them: as they are."""
        return list(ids)

    @abstractmethod
    def about(self) -> dict[str, str]:
        """How each column is read, in words: ``{"source": "bpe, 8000 symbols"}``; for the card and for progress."""
