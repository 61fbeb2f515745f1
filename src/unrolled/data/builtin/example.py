"""An example of the built-in data: two texts, their words with spans, and which words translate each other."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from unrolled.base.registry import Registry

Span = tuple[int, int]


class Example(NamedTuple):
    """A pair of texts. ``links`` are 0-based (source word, target word), None where no alignment is known.

    A word is what stands between white space, with punctuation split off; a French elided word keeps its apostrophe
    (``l'`` ``homme``), an inverted pronoun its hyphen (``voyez`` ``-vous``, ``mange`` ``-t-il``); the English
    possessive is ``'s``; other hyphens stay inside (``est-ce``, ``quatre-vingt-un``). Spans are [start, end) in
    characters.
    """

    source: str
    target: str
    links: tuple[tuple[int, int], ...] | None = None
    source_spans: tuple[Span, ...] = ()
    target_spans: tuple[Span, ...] = ()

    @property
    def source_words(self) -> tuple[str, ...]:
        return tuple(self.source[start:end] for start, end in self.source_spans)

    @property
    def target_words(self) -> tuple[str, ...]:
        return tuple(self.target[start:end] for start, end in self.target_spans)

    def links_between(self, source: Sequence[Span], target: Sequence[Span]) -> set[tuple[int, int]]:
        """The links on another division into words, given by its spans: two are linked if words they overlap are."""
        columns, rows = _overlaps(self.source_spans, source), _overlaps(self.target_spans, target)
        return {(i, j) for left, right in self.links or () for i in columns[left] for j in rows[right]}


def _overlaps(spans: Sequence[Span], others: Sequence[Span]) -> list[list[int]]:
    return [[i for i, (start, end) in enumerate(others) if start < last and first < end] for first, last in spans]


class Built(NamedTuple):
    """Examples in three splits that share no source text."""

    train: tuple[Example, ...]
    valid: tuple[Example, ...]
    test: tuple[Example, ...]


class Maker(ABC):
    """Makes the examples of one built-in data set."""

    default_size: int

    @abstractmethod
    def make(self, seed: int, size: int) -> Built:
        """``size`` training examples (fewer where the data ends), valid and test; the same for the same ``seed``."""


PATIENCE = 2_000
"""So many draws in a row without anything new end a data set."""

BUILTIN: Registry[Maker] = Registry("built-in data set")


def held_out(size: int, valid: int = 500, test: int = 1_000) -> tuple[int, int]:
    """How many examples to hold out: ``valid`` and ``test``, or a tenth of ``size`` where less (at least one)."""
    return max(1, min(valid, size // 10)), max(1, min(test, size // 10))


def split(examples: Iterator[Example], seed: int, size: int) -> Built:
    """The first ``size`` distinct examples and some more to hold out, shuffled so that the splits are alike.

    (What is drawn first is what is drawn often: it must not all go to one split.)
    """
    valid, test = held_out(size)
    every = list(islice(examples, size + valid + test))
    random.Random(seed).shuffle(every)
    return Built(tuple(every[valid + test :]), tuple(every[test : valid + test]), tuple(every[:test]))
