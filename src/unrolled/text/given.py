"""Vectors that words are given from a file: which file, whether they learn on, and which symbols have one."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge

from unrolled.base.registry import Registry


class Given(ABC):
    """``file``: word2vec (text or binary), GloVe or fastText (text), also gzipped; needed to train only.

    ``joined``: so many words from the file's beginning, which holds the most frequent ones, join the vocabulary, so
    that words that training never sees have a vector; null: all of them where the text is only read, none where it is
    also written. Each is two symbols for a tokenizer that tells words after a space from others.
    """

    frozen: ClassVar[bool]
    """Whether the words of the training text keep their vectors."""

    def __init__(self, *, file: str, joined: Annotated[int, Ge(0)] | None = None) -> None:
        self.file, self.joined = file, joined


VECTORS: Registry[Given] = Registry("way to take vectors")
"""What becomes of vectors from a file."""


@VECTORS.register("frozen")
class Frozen(Given):
    """Words keep the vector that they are given; the words without one learn theirs.

    ``file``: word2vec (text or binary), GloVe or fastText (text), also gzipped; needed to train only. All its numbers
    are multiplied by one, which makes them as large as those of a new embedding. ``joined``: so many words from the
    file's beginning, which holds the most frequent ones, join the vocabulary, so that words that training never sees
    have a vector; null: all of them where the text is only read, none where it is also written. Each is two symbols
    for a tokenizer that tells words after a space from others.
    """

    frozen = True


@VECTORS.register("tuned")
class Tuned(Given):
    """Words start from the vector that they are given and learn on; joined words, which training never sees, keep
    theirs.

    ``file`` and ``joined`` are those of ``frozen``.
    """

    frozen = False


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a tokenizer's symbols have of a file of vectors."""

    file: str  # its name, without the folder
    width: int
    exact: int  # symbols of the training text that have a vector of just this word
    lowered: int  # of the word in lower case only
    missing: int
    joined: int  # symbols that joined
    tuned: bool
    frozen: tuple[tuple[int, int], ...]  # symbols that do not learn, as ranges [first, last)

    @staticmethod
    def ranges(symbols: Iterable[int]) -> tuple[tuple[int, int], ...]:
        """Rising ids as ranges: ``[4, 5, 8]`` → ``((4, 6), (8, 9))``."""
        found: list[tuple[int, int]] = []
        for symbol in symbols:
            first = found.pop()[0] if found and found[-1][1] == symbol else symbol
            found.append((first, symbol + 1))
        return tuple(found)

    @staticmethod
    def of(tree: Mapping[str, Any]) -> Held:
        """What ``tree`` wrote; TypeError, ValueError or KeyError for something else."""
        return Held(**{**tree, "frozen": tuple((int(first), int(last)) for first, last in tree["frozen"])})

    def tree(self) -> dict[str, Any]:
        return asdict(self)

    def symbols(self) -> list[int]:
        """The symbols that do not learn."""
        return [symbol for first, last in self.frozen for symbol in range(first, last)]

    def __str__(self) -> str:
        found = f"{self.exact:,} found, {self.lowered:,} in lower case only, {self.missing:,} not"
        joined = f", and {self.joined:,} joined" if self.joined else ""
        how = "tuned" if self.tuned else "frozen"
        return f"vectors of {self.file} ({self.width} numbers, {how}): {found}{joined}"
