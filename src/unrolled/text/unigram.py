"""Learning the pieces of a unigram language model, the same on every run (Kudo 2018, arXiv:1804.10959, section 3.2).

The library's own trainer sums in the order of a hash map and of threads, so that two runs differ. Here words lie in
one table, longest first: what stands ``n`` characters into them is a contiguous block, and each step of the
expectation runs over all words at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LONGEST_PIECE = 16
LONGEST_WORD = 32
MOST_WORDS = 100_000
SEEDS_PER_PIECE = 10
KEPT_EACH_ROUND = 0.75
LEAST = 1e-9
"""No probability falls below this, so that a word of LONGEST_WORD characters stays above the smallest float64."""


@dataclass
class _Table:
    """Training words by descending length. Character ``o`` of word ``w`` stands at ``base[o] + w``."""

    words: list[str]
    weight: np.ndarray  # float64 [words], how often each is seen
    longer: np.ndarray  # int64 [LONGEST_WORD + 2]: how many words have at least that many characters
    base: np.ndarray  # int64 [LONGEST_WORD + 1]
    next: np.ndarray  # int64 [characters]: where a word's next character stands, -1 at its end


def learn_pieces(counts: list[tuple[str, int]], alphabet: list[str], size: int) -> list[tuple[str, float]]:
    """At most ``size`` pieces with their log-probabilities, likeliest first; all of ``alphabet`` are among them.

    ``counts`` are words with how often they are seen, most frequent first.
    """
    table = _lay_out(counts, set(alphabet))
    if not table.words:
        return [(character, -1.0) for character in alphabet]
    wanted = max(size, len(alphabet))
    names, worth, pieces = _seeds(table, alphabet, SEEDS_PER_PIECE * wanted)
    single = np.array([len(name) == 1 for name in names])
    score = np.log(np.maximum(worth / worth.sum(), LEAST))
    while True:
        for _ in range(2):
            expected = _expected_counts(table, pieces, score)
            names, single, expected, pieces = _keep(single | (expected >= 0.5), names, single, expected, pieces)
            score = _variational(expected)
        if len(names) <= 1.1 * wanted:
            break
        loss = np.where(single, np.inf, _losses(table, pieces, names, expected, score))
        kept = np.zeros(len(names), dtype=bool)
        kept[np.argsort(-loss, kind="stable")[: max(int(KEPT_EACH_ROUND * len(names)), int(1.1 * wanted))]] = True
        names, single, score, pieces = _keep(kept, names, single, score, pieces)
    order = sorted(range(len(names)), key=lambda i: (not single[i], -score[i], names[i]))[:wanted]
    return sorted(((names[i], round(float(score[i]), 6)) for i in order), key=lambda piece: (-piece[1], piece[0]))


def _lay_out(counts: list[tuple[str, int]], alphabet: set[str]) -> _Table:
    parts = [(part, count) for word, count in counts[:MOST_WORDS] for part in _parts(word, alphabet)]
    parts.sort(key=lambda item: (-len(item[0]), item[0]))
    lengths = np.array([len(word) for word, _ in parts], dtype=np.int64)
    longer = np.array([(lengths >= n).sum() for n in range(LONGEST_WORD + 2)], dtype=np.int64)
    base = np.concatenate([[0], np.cumsum(longer[1:])])
    following = np.full(base[-1], -1, dtype=np.int64)
    for o in range(LONGEST_WORD - 1):
        following[base[o] : base[o] + longer[o + 2]] = base[o + 1] + np.arange(longer[o + 2])
    weight = np.array([count for _, count in parts], dtype=np.float64)
    return _Table([word for word, _ in parts], weight, longer, base, following)


def _parts(word: str, alphabet: set[str]) -> Iterator[str]:
    """``word`` without characters that are no symbols, in stretches of at most LONGEST_WORD."""
    if not alphabet.issuperset(word):
        for part in "".join(c if c in alphabet else "\n" for c in word).split("\n"):
            yield from _parts(part, alphabet)
        return
    for start in range(0, len(word), LONGEST_WORD):
        yield word[start : start + LONGEST_WORD]


class _Substrings(NamedTuple):
    """All substrings of one length that are seen at least twice."""

    ids: np.ndarray  # int64 [characters]: the number of the substring that starts there, -1 for none
    seen: np.ndarray  # float64 [substrings]: how often
    where: np.ndarray  # int64 [substrings]: where one of them stands


def _seeds(table: _Table, alphabet: list[str], most: int) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    """First pieces: all characters, and the ``most`` substrings with the largest frequency times length.

    Second result: that product. Third: ``pieces[n - 1][position]`` is the piece of ``n`` characters that starts there,
    ``len(names)`` for none.
    """
    levels = _substrings(table, alphabet)
    worths = [
        level.seen * length * _open_ended(level, after) for length, (level, after) in enumerate(_pairs(levels), 1)
    ]
    every = np.concatenate(worths[1:])
    least = max(np.partition(every, -most)[-most] if len(every) > most else 0.0, 1.0)
    chosen: list[tuple[float, str, int, int]] = []
    for length in range(2, LONGEST_PIECE + 1):
        level, worth = levels[length - 1], worths[length - 1]
        numbers = np.flatnonzero(worth >= least)
        names = _names(table, level.where[numbers], length)
        chosen += zip((-worth[numbers]).tolist(), names, [length] * len(names), numbers.tolist(), strict=True)
    chosen = sorted(chosen)[:most]
    none = len(alphabet) + len(chosen)
    pieces = [levels[0].ids.astype(np.int32)]
    for length in range(2, LONGEST_PIECE + 1):
        number_of = np.full(len(levels[length - 1].seen) + 1, none, dtype=np.int32)  # the last is for id -1
        for i, (_, _, own_length, number) in enumerate(chosen):
            if own_length == length:
                number_of[number] = len(alphabet) + i
        pieces.append(number_of[levels[length - 1].ids])
    worth = np.concatenate([levels[0].seen, [-negative for negative, _, _, _ in chosen]])
    return [*alphabet, *(name for _, name, _, _ in chosen)], worth, pieces


def _substrings(table: _Table, alphabet: list[str]) -> list[_Substrings]:
    number = {character: i for i, character in enumerate(alphabet)}
    columns = [table.words[: table.longer[o + 1]] for o in range(LONGEST_WORD)]
    ids = np.array([number[word[o]] for o, column in enumerate(columns) for word in column], dtype=np.int64)
    weight = np.concatenate([table.weight[: len(column)] for column in columns])
    seen = np.bincount(ids, weights=weight, minlength=len(alphabet))
    levels = [_Substrings(ids, seen, np.zeros(len(alphabet), dtype=np.int64))]
    for _ in range(1, LONGEST_PIECE):
        shorter = levels[-1]
        at = np.flatnonzero((shorter.ids >= 0) & (table.next >= 0))
        at = at[shorter.ids[table.next[at]] >= 0]
        keys = shorter.ids[at] * len(shorter.seen) + shorter.ids[table.next[at]]
        different, first, local = np.unique(keys, return_index=True, return_inverse=True)
        seen = np.bincount(local, weights=weight[at], minlength=len(different))
        alive = seen >= 2
        ids = np.full(len(weight), -1, dtype=np.int64)
        ids[at] = np.where(alive, np.cumsum(alive) - 1, -1)[local]
        levels.append(_Substrings(ids, seen[alive], at[first[alive]]))
    return levels


def _pairs(levels: list[_Substrings]) -> Iterator[tuple[_Substrings, _Substrings | None]]:
    return zip(levels, [*levels[1:], None], strict=True)


def _open_ended(level: _Substrings, after: _Substrings | None) -> np.ndarray:
    """Which substrings are not always followed by the same character; the others say nothing that a longer one does
    not."""
    best = np.zeros(len(level.seen))
    if after is not None:
        np.maximum.at(best, level.ids[after.where], after.seen)
    return best < level.seen


def _names(table: _Table, where: np.ndarray, length: int) -> list[str]:
    offsets = np.searchsorted(table.base, where, side="right") - 1
    return [
        table.words[word][offset : offset + length]
        for word, offset in zip((where - table.base[offsets]).tolist(), offsets.tolist(), strict=True)
    ]


def _expected_counts(table: _Table, pieces: list[np.ndarray], score: np.ndarray) -> np.ndarray:
    """How often each piece is expected in the training words, over all ways to cut them (forward-backward)."""
    longer, base, longest = table.longer, table.base, int((table.longer[1:] > 0).sum())
    share = np.append(np.exp(score), 0.0)
    chance = [share[row] for row in pieces]
    forward = [np.ones(longer[0])]
    for end in range(1, longest + 1):
        here = np.zeros(longer[end])
        for n in range(1, min(end, LONGEST_PIECE) + 1):
            start = end - n
            here += forward[start][: longer[end]] * chance[n - 1][base[start] : base[start] + longer[end]]
        forward.append(here)
    whole = np.empty(longer[0])
    for length in range(1, longest + 1):
        whole[longer[length + 1] : longer[length]] = forward[length][longer[length + 1] :]
    backward = [np.zeros(longer[o]) for o in range(longest + 1)]
    used = [np.zeros(len(row)) for row in pieces]
    for o in range(longest, -1, -1):
        backward[o][longer[o + 1] :] = (table.weight / whole)[longer[o + 1] : longer[o]]
        for n in range(1, min(longest - o, LONGEST_PIECE) + 1):
            count, block = longer[o + n], slice(base[o], base[o] + longer[o + n])
            path = chance[n - 1][block] * backward[o + n]
            backward[o][:count] += path
            used[n - 1][block] = forward[o][:count] * path
    expected = np.zeros(len(share))
    for row, amount in zip(pieces, used, strict=True):
        expected += np.bincount(row, weights=amount, minlength=len(share))
    return expected[:-1]


def _variational(expected: np.ndarray) -> np.ndarray:
    """The log-probabilities of a sparse Bayesian estimate: digamma in place of the logarithm, as SentencePiece does."""
    return np.maximum(_digamma(np.maximum(expected, 0.5)) - _digamma(expected.sum(keepdims=True)), np.log(LEAST))


def _digamma(x: np.ndarray) -> np.ndarray:
    """ψ(x) for x > 0: seven steps of the recurrence, then the asymptotic series (Abramowitz and Stegun 6.3.18)."""
    below = sum(1 / (x + k) for k in range(7))
    x = x + 7
    return np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) - below


def _losses(
    table: _Table, pieces: list[np.ndarray], names: list[str], expected: np.ndarray, score: np.ndarray
) -> np.ndarray:
    """How much likelihood goes with each piece when its best other cut replaces it."""
    scores = np.append(score, -np.inf)
    lengths = np.array([len(name) for name in names])
    other = np.full(len(names), -np.inf)
    for length in range(2, LONGEST_PIECE + 1):
        members = np.flatnonzero(lengths == length)
        if not len(members):
            continue
        first = np.empty(len(names) + 1, dtype=np.int64)
        at = np.flatnonzero(pieces[length - 1] < len(names))[::-1]
        first[pieces[length - 1][at]] = at
        stands = [first[members]]
        for _ in range(length - 1):
            stands.append(table.next[stands[-1]])
        best = [np.zeros(len(members))]
        for end in range(1, length + 1):
            cuts = [best[end - n] + scores[pieces[n - 1][stands[end - n]]] for n in range(1, end + 1) if n < length]
            best.append(np.max(cuts, axis=0))
        other[members] = best[length]
    return expected * (score - other)


def _keep(
    kept: np.ndarray, names: list[str], single: np.ndarray, values: np.ndarray, pieces: list[np.ndarray]
) -> tuple[list[str], np.ndarray, np.ndarray, list[np.ndarray]]:
    """Everything about the pieces that stay, renumbered; positions of the others hold none."""
    renumbered = np.append(np.where(kept, np.cumsum(kept) - 1, kept.sum()), kept.sum()).astype(np.int32)
    pieces = [renumbered[row] for row in pieces]
    return [name for name, keep in zip(names, kept, strict=True) if keep], single[kept], values[kept], pieces
