"""Learning the pieces of a unigram language model, the same on every run (Kudo 2018, arXiv:1804.10959, section 3.2).

The library's own trainer sums in the order of a hash map and of threads, so that two runs differ. Here words lie in
one table, longest first: what stands ``n`` characters into them is a contiguous block, and each step of the
expectation runs over all words at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
    names, pieces = _seeds(table, alphabet, SEEDS_PER_PIECE * size)
    single = np.array([len(name) == 1 for name in names])
    score = np.log(np.maximum(np.bincount(pieces[0], weights=_by_character(table), minlength=len(names)), LEAST))
    score[~single] = _seed_scores(table, pieces, len(names))[~single]
    score = _log_shares(np.exp(score))
    wanted = max(size, len(alphabet))
    while True:
        for _ in range(2):
            expected = _expected_counts(table, pieces, score)
            kept = single | (expected >= 0.5)
            names, single, expected, pieces = _keep(kept, names, single, expected, pieces)
            score = _variational(expected)
        if len(names) <= 1.1 * wanted:
            break
        loss = _losses(table, pieces, names, expected, score)
        loss[single] = np.inf
        most = max(int(KEPT_EACH_ROUND * len(names)), int(1.1 * wanted))
        kept = np.zeros(len(names), dtype=bool)
        kept[np.argsort(-loss, kind="stable")[:most]] = True
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


def _by_character(table: _Table) -> np.ndarray:
    return np.concatenate([table.weight[: table.longer[o + 1]] for o in range(LONGEST_WORD)])


def _seeds(table: _Table, alphabet: list[str], most: int) -> tuple[list[str], list[np.ndarray]]:
    """First pieces: all characters, and the substrings seen twice that are not always followed by the same character,
    the ``most`` best by frequency times length. Second result: ``pieces[n - 1][position]`` is the piece of ``n``
    characters that starts there, ``len(names)`` for none.
    """
    number = {character: i for i, character in enumerate(alphabet)}
    weight = _by_character(table)
    ids = np.array(
        [number[word[o]] for o in range(LONGEST_WORD) for word in table.words[: table.longer[o + 1]]], dtype=np.int64
    )
    levels, found = [ids], []
    frequency = np.bincount(ids, weights=weight, minlength=len(alphabet))
    for length in range(2, LONGEST_PIECE + 1):
        at = np.flatnonzero((ids >= 0) & (table.next >= 0))
        at = at[ids[table.next[at]] >= 0]
        keys, first, local = np.unique(
            ids[at] * len(frequency) + ids[table.next[at]], return_index=True, return_inverse=True
        )
        seen = np.bincount(local, weights=weight[at], minlength=len(keys))
        if length > 2:
            open_ended = np.ones(len(frequency), dtype=bool)
            np.logical_and.at(
                open_ended, keys // max(len(frequency), 1), seen < frequency[keys // max(len(frequency), 1)]
            )
            found.append((length - 1, where, frequency, open_ended))
        alive = seen >= 2
        number_of = np.where(alive, np.cumsum(alive) - 1, -1)
        ids = np.full(len(weight), -1, dtype=np.int64)
        ids[at] = number_of[local]
        frequency, where = seen[alive], at[first[alive]]
        levels.append(ids)
    found.append((LONGEST_PIECE, where, frequency, np.ones(len(frequency), dtype=bool)))
    return _choose(table, alphabet, levels, found, most)


def _choose(
    table: _Table, alphabet: list[str], levels: list[np.ndarray], found: list[tuple], most: int
) -> tuple[list[str], list[np.ndarray]]:
    offset = np.searchsorted(table.base, np.arange(table.base[-1]), side="right") - 1
    candidates = []
    for length, where, frequency, open_ended in found:
        for local in np.flatnonzero(open_ended):
            o = offset[where[local]]
            name = table.words[where[local] - table.base[o]][o : o + length]
            candidates.append((-frequency[local] * length, name, length, local))
    candidates.sort()
    del candidates[most:]
    names = alphabet + [name for _, name, _, _ in candidates]
    pieces = [levels[0].astype(np.int32)]
    for length in range(2, LONGEST_PIECE + 1):
        size = int(levels[length - 1].max(initial=-1)) + 2
        chosen = np.full(size, len(names), dtype=np.int32)
        for i, candidate in enumerate(candidates):
            if candidate[2] == length:
                chosen[candidate[3]] = len(alphabet) + i
        pieces.append(chosen[levels[length - 1]])
    return names, pieces


def _seed_scores(table: _Table, pieces: list[np.ndarray], size: int) -> np.ndarray:
    weight = _by_character(table)
    score = np.zeros(size + 1)
    for n, row in enumerate(pieces, start=1):
        score += n * np.bincount(row, weights=weight, minlength=size + 1)
    return np.log(np.maximum(score[:size], LEAST))


def _log_shares(counts: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(counts / counts.sum(), LEAST))


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
