"""Symbols lent to the words of one source that have none in the vocabulary, so that these can be copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from unrolled.base.protocol import SPECIALS, UNKNOWN
from unrolled.text.tokenizer import Encoded, Tokenizer

if TYPE_CHECKING:
    from unrolled.text.featured import Featured

LENT = 64
"""Different unknown words of one source that get a symbol; the others stay unknown."""


class Given(NamedTuple):
    """A target beside the source that it belongs to."""

    source: str
    target: str


def words_lent(target: Tokenizer, line: str, row: Encoded, most: int) -> list[str]:
    """The unknown words of the source ``line``, read as ``row``, as ``target`` writes them: at most ``most``.

    The k-th of them, in the order in which each stands first, has the k-th symbol after the vocabulary on both sides,
    in this sentence alone: the extended vocabulary of See, Liu & Manning 2017 (arXiv:1704.04368, §2.2).
    """
    return list(dict.fromkeys(_unknown(target, line, row).values()))[:most]


def lend(target: Tokenizer, line: str, row: Encoded, words: Sequence[str], first: int) -> Encoded:
    """``row``, either side of a pair as its tokenizer reads ``line``; ``words`` then have the ids from ``first`` on."""
    if not words:
        return row
    ids, numbers = list(row.ids), {word: number for number, word in enumerate(words, start=first)}
    for place, word in _unknown(target, line, row).items():
        ids[place] = numbers.get(word, UNKNOWN)
    return row._replace(ids=ids)


def _unknown(target: Tokenizer, line: str, row: Encoded) -> dict[int, str]:
    """Where ``row`` has a symbol that is unknown, and how ``target`` would write what it covers."""
    times, written = Counter(row.spans), {}
    for place, (one, (start, end)) in enumerate(zip(row.ids, row.spans, strict=True)):
        whole = times[start, end] == 1  # of a letter that lower case makes two of, neither is a word
        if one == UNKNOWN and whole and not line[:end].endswith(SPECIALS):  # the name of a symbol is no word
            written[place] = target.normalize(line[start:end])
    return {place: word for place, word in written.items() if word}


class Lending:
    """The encoder of a column, sources or targets that are `Given`: ids the quick way, and by ``read`` those of rows in
    which some are unknown."""

    def __init__(self, own: Tokenizer | Featured, lends: int, read: Callable[[list[Any]], list[Encoded]]) -> None:
        self._own, self._read = own, read
        self.vocabulary_size = own.vocabulary_size + lends

    def encode_ids(self, texts: Sequence[str | Given]) -> list[list[int]]:
        found = self._own.encode_ids([one.target if isinstance(one, Given) else one for one in texts])
        places = [place for place, ids in enumerate(found) if UNKNOWN in ids]
        for place, row in zip(places, self._read([texts[place] for place in places]), strict=True):
            found[place] = row.ids
        return found
