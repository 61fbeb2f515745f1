"""word2vec's update in NumPy, one prediction after the other: the reference of the compiled one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Matrix = NDArray[np.float32]

LONGEST = 10_000
"""Words of a sentence; a longer one is cut."""

SPECIAL, BEGIN = 4, 2
"""Ids below the first are no words; the second begins a sentence."""


class Chances(NamedTuple):
    """What is drawn by chance, of each symbol."""

    keep: NDArray[np.float64]  # that a word is read
    first: NDArray[np.float64]  # noise by Walker's alias method: a symbol stays itself, or becomes ``other``
    other: NDArray[np.int64]


class Learnt(NamedTuple):
    """What an update did."""

    loss: float  # Σ over predictions, natural log
    predictions: int
    words: int  # read, those among them that were left out for being frequent


class Draws:
    """Random numbers that any program can draw alike: SplitMix64 (Steele et al. 2014)."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def bits(self) -> int:
        """The next 64 random bits."""
        most = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & most
        z = ((self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9) & most
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & most
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count`` - 1."""
        return ((self.bits() >> 32) * count) >> 32

    def noise(self, chances: Chances) -> int:
        """A symbol, by the chances of noise."""
        bits = self.bits()
        drawn = ((bits >> 32) * len(chances.first)) >> 32
        return drawn if (bits & 0xFFFFFFFF) * 2.0**-32 < chances.first[drawn] else int(chances.other[drawn])


def learn(
    ids: Ids,
    chances: Chances,
    vectors: Matrix,
    outputs: Matrix,
    *,
    window: int,
    negative: int,
    bag: bool,
    rate: float,
    seed: int,
) -> Learnt:
    """Read ``ids`` int32 [symbols] once and step ``vectors`` and ``outputs`` float32 [vocabulary, size], in place.

    Each prediction of a word o by a vector h among noise n_k steps by ``rate`` down the gradient of
    -log σ(h · u_o) - Σ_k log σ(-h · u_k), where h is the vector of one word beside o (skip-gram) or the mean of all
    beside it (``bag``), at a distance up to a number that is drawn from 1 to ``window`` for every o. Noise that is o
    itself is left out.
    """
    draws, loss, predictions, read = Draws(seed), 0.0, 0, 0
    for sentence in _sentences(ids):
        read += len(sentence)
        words = [word for word in sentence if chances.keep[word] >= 1 or _kept(draws, chances.keep[word])]
        for place, word in enumerate(words):
            reach = window - draws.below(window)
            near = [*words[max(0, place - reach) : place], *words[place + 1 : place + reach + 1]]
            for inputs in [near] if bag and near else [[one] for one in near]:
                noise = [draws.noise(chances) for _ in range(negative)]
                loss += _predict(vectors, outputs, inputs, word, [one for one in noise if one != word], rate)
                predictions += 1
    return Learnt(loss, predictions, read)


def _sentences(ids: Ids) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for one in ids.tolist():
        if one == BEGIN or len(found[-1]) == LONGEST:
            found.append([])
        if one >= SPECIAL:
            found[-1].append(one)
    return found


def _kept(draws: Draws, chance: float) -> bool:
    return (draws.bits() & 0xFFFFFFFF) * 2.0**-32 < chance


def _predict(vectors: Matrix, outputs: Matrix, inputs: list[int], word: int, noise: list[int], rate: float) -> float:
    hidden = vectors[inputs].mean(axis=0)
    targets = [word, *noise]
    said = 1 / (1 + np.exp(-(outputs[targets] @ hidden).astype(np.float64)))
    wanted = np.arange(len(targets)) == 0
    steps = (rate * (wanted - said)).astype(np.float32)
    error = steps @ outputs[targets]
    np.add.at(outputs, targets, steps[:, None] * hidden)
    np.add.at(vectors, inputs, error / np.float32(len(inputs)))
    return float(-np.log(np.where(wanted, said, 1 - said)).sum())
