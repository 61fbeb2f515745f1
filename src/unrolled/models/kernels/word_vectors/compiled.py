"""word2vec's update as machine code: see plain.py, whose numbers these are, draw by draw.

Vectors are float32, rows of matrices that several threads may write at once without a lock (Recht et al. 2011,
arXiv:1106.5730): two rarely meet in a row, and what one then loses is one of very many small steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function
from unrolled.layers.kernels.compiled.rows import add_times, dot
from unrolled.layers.kernels.compiled.scalars import sigmoid
from unrolled.models.kernels.word_vectors.plain import BEGIN, LONGEST, SPECIAL

F, U = np.float32, np.uint64
GOLDEN, FIRST, SECOND = U(0x9E3779B97F4A7C15), U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)


@row_function
def mixed(state: Any) -> Any:
    """64 random bits from a counter that grows by GOLDEN (Steele et al. 2014, SplitMix64)."""
    z = (state ^ (state >> U(30))) * FIRST
    z = (z ^ (z >> U(27))) * SECOND
    return z ^ (z >> U(31))


@row_function
def below(bits: Any, count: Any) -> Any:
    """A whole number from 0 to ``count`` - 1, by the upper 32 bits."""
    return np.int64(((bits >> U(32)) * U(count)) >> U(32))


@row_function
def share(bits: Any) -> Any:
    """A number in [0, 1), by the lower 32 bits."""
    return np.float64(bits & U(0xFFFFFFFF)) * 2.0**-32


@row_function
def predict(hidden: Any, error: Any, outputs: Any, targets: Any, steps: Any, count: Any, rate: Any) -> Any:
    """One prediction: ``targets[0]`` is the word, the others are noise. Steps ``outputs``; rate · gradient into
    ``error``; the loss."""
    likely = 1.0
    for place in range(count):
        score = dot(hidden, outputs[targets[place]])
        said = sigmoid(score)
        right = said if place == 0 else sigmoid(-score)
        likely *= max(np.float64(right), 1e-30)
        steps[place] = rate * (F(place == 0) - said)
    error[:] = F(0)
    for place in range(count):  # before any row moves: noise may be the same word twice
        add_times(error, outputs[targets[place]], steps[place])
    for place in range(count):
        add_times(outputs[targets[place]], hidden, steps[place])
    return -math.log(max(likely, 1e-300))


@row_function
def draw(targets: Any, word: Any, negative: Any, chance: Any, other: Any, state: Any) -> Any:
    """``word`` and up to ``negative`` words of noise into ``targets``, none of them the word again (alias method,
    Walker 1977); the state and how many there are."""
    targets[0], count = word, 1
    for _ in range(negative):
        state += GOLDEN
        bits = mixed(state)
        drawn = below(bits, len(chance))
        if share(bits) >= chance[drawn]:
            drawn = other[drawn]
        if drawn != word:
            targets[count] = drawn
            count += 1
    return state, count


@row_function
def mean_around(hidden: Any, vectors: Any, words: Any, place: Any, first: Any, last: Any) -> Any:
    """``hidden``: the mean of the vectors from ``first`` to ``last`` but that at ``place``; the share of each."""
    hidden[:] = F(0)
    for near in range(first, last):
        if near != place:
            add_times(hidden, vectors[words[near]], F(1))
    part = F(1) / F(last - first - 1)
    for d in range(len(hidden)):
        hidden[d] *= part
    return part


@loop_function
def learn(
    ids: Any,
    keep: Any,
    chance: Any,
    other: Any,
    vectors: Any,
    outputs: Any,
    window: Any,
    negative: Any,
    bag: Any,
    rate: Any,
    seed: Any,
) -> Any:
    """Read ``ids`` int32 [symbols] once; (summed loss, predictions, words read)."""
    state = U(seed)
    words, targets = np.empty(LONGEST, np.int64), np.empty(negative + 1, np.int64)
    steps = np.empty(negative + 1, F)
    hidden, error = np.empty(vectors.shape[1], F), np.empty(vectors.shape[1], F)
    loss, predictions, read, at = 0.0, 0, 0, 0
    while at < len(ids):
        length = 0
        while at < len(ids) and length < LONGEST:
            word = ids[at]
            at += 1
            if word == BEGIN:
                break
            if word < SPECIAL:
                continue
            read += 1
            if keep[word] < 1.0:
                state += GOLDEN
                if share(mixed(state)) >= keep[word]:
                    continue
            words[length] = word
            length += 1
        for place in range(length):
            state += GOLDEN
            reach = window - below(mixed(state), window)
            first, last = max(0, place - reach), min(length, place + reach + 1)
            if last - first < 2:
                continue
            word = words[place]
            if bag:
                part = mean_around(hidden, vectors, words, place, first, last)
            for near in range(first, last):
                if near == place:
                    continue
                state, count = draw(targets, word, negative, chance, other, state)
                if bag:
                    loss += predict(hidden, error, outputs, targets, steps, count, rate)
                    predictions += 1
                    for one in range(first, last):
                        if one != place:
                            add_times(vectors[words[one]], error, part)
                    break
                row = vectors[words[near]]
                loss += predict(row, error, outputs, targets, steps, count, rate)
                predictions += 1
                add_times(row, error, F(1))
    return loss, predictions, read
