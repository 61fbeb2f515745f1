"""Random numbers by their address: the same (seed, sentence, draw, step) gives the same number, in any batch."""

from __future__ import annotations

import numpy as np

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_BUMPS = np.array([0x9E3779B9, 0xBB67AE85], dtype=np.uint64)


def philox(counter: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").

    ``counter`` uint64 [4, n] and ``key`` uint64 [2] hold 32-bit words; so does the result, uint64 [4, n].
    """
    a, b, c, d = counter
    for turn in range(10):
        left, right = (key + np.uint64(turn) * _BUMPS) & _WORD
        first, second = a * _FACTORS[0], c * _FACTORS[1]
        a, b, c, d = (second >> _HALF) ^ b ^ left, second & _WORD, (first >> _HALF) ^ d ^ right, first & _WORD
    return np.stack([a, b, c, d])


def uniform(seed: int, sentence: np.ndarray, draw: np.ndarray, step: int) -> np.ndarray:
    """float64 [rows] in [0, 1), for the sentence and draw numbers int64 [rows] at ``step``.

    The seed becomes the key through NumPy's SeedSequence; sentence (two words), draw and step are the counter.
    """
    key = np.random.SeedSequence(seed).generate_state(2).astype(np.uint64)
    number = sentence.astype(np.uint64)
    counter = np.stack([number & _WORD, number >> _HALF, draw.astype(np.uint64) & _WORD, np.full_like(number, step)])
    high, low = philox(counter, key)[:2]
    return ((high >> np.uint64(5)) * 67108864.0 + (low >> np.uint64(6))) / 9007199254740992.0
