"""Symbols lent to the words of one source that have none in the vocabulary, so that these can be copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from unrolled.base.protocol import UNKNOWN
from unrolled.text.tokenizer import Encoded, Tokenizer

if TYPE_CHECKING:
    from unrolled.text.featured import Featured

LENT = 64
"""Different unknown words of one source that get a symbol; the others stay unknown."""


class Given(NamedTuple):
    """A target beside the source that it belongs to."""

    source: str
    target: str


class Pair(Protocol):
    """The two sides that lend: `TextPair`."""

    source: Tokenizer | Featured
    target: Tokenizer
    lends: int


def words_lent(pair: Pair, line: str, row: Encoded) -> list[str]:
    """The unknown words of the source ``line``, read as ``row``, as the target writes them: at most ``pair.lends``.

    The k-th of them, in the order in which each stands first, has the k-th symbol after the vocabulary on both sides,
    in this sentence alone: the extended vocabulary of See, Liu & Manning 2017 (arXiv:1704.04368, §2.2).
    """
    found = dict.fromkeys(_unknown(pair.target, line, row).values())
    return list(found)[: pair.lends]


def lend(pair: Pair, line: str, row: Encoded) -> Encoded:
    """``row``, a source as the tokenizer reads ``line``, with the ids of the symbols that are lent to its words."""
    if not pair.lends or UNKNOWN not in row.ids:
        return row
    return row._replace(ids=_renamed(pair.target, line, row, words_lent(pair, line, row), pair.source.vocabulary_size))


def lend_target(pair: Pair, words: Sequence[str], line: str, row: Encoded) -> Encoded:
    """As ``lend``, of a target: a word without a symbol has the one that its source's ``words`` were lent."""
    if not words or UNKNOWN not in row.ids:
        return row
    return row._replace(ids=_renamed(pair.target, line, row, words, pair.target.vocabulary_size))


def _unknown(target: Tokenizer, line: str, row: Encoded) -> Mapping[int, str]:
    """Where ``row`` has a symbol that is unknown, and how the target would write what it covers."""
    found = {place: row.spans[place] for place, one in enumerate(row.ids) if one == UNKNOWN}
    written = {place: target.normalize(line[start:end]) for place, (start, end) in found.items()}
    return {place: word for place, word in written.items() if word}


def _renamed(target: Tokenizer, line: str, row: Encoded, words: Sequence[str], first: int) -> list[int]:
    ids = list(row.ids)
    numbers = {word: number for number, word in enumerate(words, start=first)}
    for place, word in _unknown(target, line, row).items():
        ids[place] = numbers.get(word, UNKNOWN)
    return ids


class LendingSources:
    """The encoder of a column of sources, with the symbols that are lent to each."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    @property
    def vocabulary_size(self) -> int:
        return self._pair.source.vocabulary_size + self._pair.lends

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        found = self._pair.source.encode_ids(texts)
        for place in [place for place, ids in enumerate(found) if UNKNOWN in ids]:
            row = self._pair.source.encode(texts[place])
            found[place] = lend(self._pair, texts[place], row).ids
        return found


class LendingTargets:
    """The encoder of a column of targets that are `Given` beside their sources, whose words they share."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    @property
    def vocabulary_size(self) -> int:
        return self._pair.target.vocabulary_size + self._pair.lends

    def encode_ids(self, texts: Sequence[Given]) -> list[list[int]]:
        found = self._pair.target.encode_ids([one.target for one in texts])
        for place in [place for place, ids in enumerate(found) if UNKNOWN in ids]:
            source, target = texts[place]
            words = words_lent(self._pair, source, self._pair.source.encode(source))
            found[place] = lend_target(self._pair, words, target, self._pair.target.encode(target)).ids
        return found
