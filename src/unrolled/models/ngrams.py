"""Interpolated Kneser–Ney n-grams over whole arrays: the baseline of counting that a language model must beat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN


class Level(NamedTuple):
    """The n-grams of one length. A key is the number of the context (an n-1-gram) times the number of symbols, plus
    the last symbol."""

    keys: np.ndarray  # int64 [n-grams], rising
    counts: np.ndarray  # of each: how often it was seen; below the highest order, after how many different symbols
    totals: np.ndarray  # [contexts]: the sum of counts after each
    kinds: np.ndarray  # [contexts, 3]: how many different symbols follow once, twice, more often
    discounts: np.ndarray  # [3]: what is taken from counts of one, two, more


class KneserNey:
    """p_n(w | h) = max(c(hw) - D, 0) / c(h) + γ(h) p_{n-1}(w | h'),  γ(h) = Σ_k D_k N_k(h) / c(h)

    h' is h without its first symbol; below the highest order c counts different symbols before, not occurrences
    (Kneser & Ney 1995). Three discounts an order, for counts of one, two and more, from the counts of counts (Chen &
    Goodman 1998, "modified Kneser–Ney"); under the unigrams stand equal chances. Before a document stand
    ``order`` - 1 BEGINs.
    """

    def __init__(self, levels: list[Level], vocabulary_size: int, symbols: int) -> None:
        self.levels, self.vocabulary_size, self.symbols = levels, vocabulary_size, symbols

    @staticmethod
    def learn(
        documents: Iterable[np.ndarray],
        *,
        order: int = 5,
        vocabulary_size: int,
        discounts: np.ndarray | None = None,
    ) -> KneserNey:
        """Count the n-grams of documents, each symbol ids with BEGIN first.

        ``vocabulary_size`` is how many symbols may come next. ``discounts`` [order, 3] are given, lowest order first,
        or None: estimated. UsageError where there is no text.
        """
        if order < 1:
            raise UsageError(f"an n-gram model of order {order} was asked for; it is 1 or more.")
        padded = [np.concatenate([np.full(order - 1, BEGIN), document[1:]]) for document in documents]
        flat = np.concatenate([np.empty(0, np.int64), *padded]).astype(np.int64)
        heads = np.concatenate([np.empty(0, bool), *(np.arange(len(one)) < order - 1 for one in padded)])
        if heads.all():
            raise UsageError("an n-gram model needs some text to count.")
        size = int(flat.max()) + 1
        grams, level = np.zeros(len(flat) + 1, dtype=np.int64), []
        keys_of: list[np.ndarray] = []
        places: list[np.ndarray] = []
        real = np.flatnonzero(~heads)
        for n in range(1, order + 1):
            # the number of the n-1-gram before each place: that of the place before, one place on
            before = grams if n > 1 else np.zeros(len(flat) + 1, dtype=np.int64)
            keys = before[:-1] * size + flat
            unique, found = np.unique(keys, return_inverse=True)
            keys_of.append(unique)
            places.append(found)
            grams = np.concatenate([[0], found])
        for n in range(1, order + 1):
            counts = _counts(n, order, keys_of, places, real)
            contexts = len(keys_of[n - 2]) if n > 1 else 1
            given = None if discounts is None else discounts[n - 1]
            level.append(_level(keys_of[n - 1], counts, contexts, size, given))
        return KneserNey(level, vocabulary_size, size)

    def log_probs(self, document: np.ndarray) -> np.ndarray:
        """Natural-log probability of each symbol of a document but its BEGIN, float64."""
        order = len(self.levels)
        flat = np.concatenate([np.full(order - 1, BEGIN), document[1:]]).astype(np.int64)
        chance = np.full(len(flat), 1.0 / self.vocabulary_size)
        known = (flat >= 0) & (flat < self.symbols)
        grams = np.zeros(len(flat) + 1, dtype=np.int64)  # of the place before, -1 where it was never seen
        for n, level in enumerate(self.levels, start=1):
            before = grams[:-1] if n > 1 else np.zeros(len(flat), dtype=np.int64)
            keys = np.where((before >= 0) & known, before * self.symbols + flat, -1)
            place = np.minimum(np.searchsorted(level.keys, keys), len(level.keys) - 1)
            seen = level.keys[place] == keys
            context = np.maximum(before, 0)
            total = np.where(before >= 0, level.totals[context], 0.0)
            count = np.where(seen, level.counts[place], 0.0)
            taken = np.where(count > 0, level.discounts[np.clip(count.astype(np.int64), 1, 3) - 1], 0.0)
            rest = (level.kinds[context] * level.discounts).sum(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                mixed = (np.maximum(count - taken, 0.0) + rest * chance) / total
            chance = np.where(total > 0, mixed, chance)
            grams = np.concatenate([[-1 if n > 1 else 0], np.where(seen, place, -1)])
        return np.log(chance[order - 1 :])


def _counts(n: int, order: int, keys: list[np.ndarray], places: list[np.ndarray], real: np.ndarray) -> np.ndarray:
    """How often each n-gram that ends in a real symbol was seen; below the order, how many longer ones end in it."""
    if n == order:
        return np.bincount(places[n - 1][real], minlength=len(keys[n - 1]))
    longer, first = np.unique(places[n][real], return_index=True)
    ends = places[n - 1][real[first]]
    del longer
    return np.bincount(ends, minlength=len(keys[n - 1]))


def _level(keys: np.ndarray, counts: np.ndarray, contexts: int, size: int, discounts: np.ndarray | None) -> Level:
    context = keys // size
    totals = np.bincount(context, weights=counts, minlength=contexts)
    kinds = np.stack(
        [
            np.bincount(context, weights=chosen, minlength=contexts)
            for chosen in (counts == 1, counts == 2, counts >= 3)
        ],
        axis=1,
    )
    return Level(keys, counts.astype(np.float64), totals, kinds, _discounts(counts) if discounts is None else discounts)


def _discounts(counts: np.ndarray) -> np.ndarray:
    """D_k = k - (k + 1) Y n_{k+1} / n_k with Y = n_1 / (n_1 + 2 n_2) (Chen & Goodman 1998); 0.5, 1, 1.5 where text is
    too short to tell."""
    seen = [max(int((counts == k).sum()), 0) for k in range(1, 5)]
    usual = np.array([0.5, 1.0, 1.5])
    if not all(seen):
        return usual
    share = seen[0] / (seen[0] + 2 * seen[1])
    found = np.array([k - (k + 1) * share * seen[k] / seen[k - 1] for k in (1, 2, 3)])
    return np.where((found > 0) & (found < [1, 2, 3]), found, usual)
