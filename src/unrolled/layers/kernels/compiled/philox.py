"""Random numbers that are a function of their place: Philox4x32-10, and what dropout makes of them.

A block is four words of 32 bits, made from its number and a key by ten rounds (Salmon et al. 2011, Parallel random
numbers: as easy as 1, 2, 3):

    (a, b, c, d) ← (upper(M₁ c) ⊕ b ⊕ k, lower(M₁ c), upper(M₀ a) ⊕ d ⊕ m, lower(M₀ a))        (k, m) ← (k + W₀, m + W₁)

No block needs another, so a processor works on many at once, and what a key gives can be made again where it is wanted.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numba import carray, types

from unrolled.layers.kernels.compiled.functions import by_address, row_function
from unrolled.layers.kernels.compiled.scalars import F, put, take

L = np.uint64
WORD = L(0xFFFFFFFF)  # the lower half of 64 bits
BITS = L(32)
MULTIPLIERS = L(0xD2511F53), L(0xCD9E8D57)
STEPS = L(0x9E3779B9), L(0xBB67AE85)
ROUNDS = 10
BLOCKS, WORDS = 64, 256
"""Blocks that are made at a time, and their words: all first words, then all second ones."""


@row_function
def rounds(a: Any, b: Any, c: Any, d: Any, k: Any, m: Any) -> Any:
    """The four words of a counter (a, b, c, d) under the key (k, m), all in lower halves; upper ones mean nothing."""
    for _ in range(ROUNDS):
        left, right = MULTIPLIERS[0] * (a & WORD), MULTIPLIERS[1] * (c & WORD)
        a, b, c, d = (right >> BITS) ^ b ^ k, right, (left >> BITS) ^ d ^ m, left
        k, m = (k + STEPS[0]) & WORD, (m + STEPS[1]) & WORD
    return a, b, c, d


@row_function
def fill(words: Any, first: Any, key: Any) -> None:
    """``words`` [256]: those of 64 blocks, of which ``first`` is the number of the first."""
    for block in range(BLOCKS):
        number = first + L(block)
        a, b, c, d = rounds(number & WORD, number >> BITS, L(0), L(0), key & WORD, key >> BITS)
        words[block] = np.uint32(a & WORD)
        words[BLOCKS + block] = np.uint32(b & WORD)
        words[2 * BLOCKS + block] = np.uint32(c & WORD)
        words[3 * BLOCKS + block] = np.uint32(d & WORD)


@row_function
def choose(words: Any, below: Any, value: Any, out: Any) -> None:
    """``value`` where a word is below a bound, else 0."""
    for j in range(len(out)):
        put(out, j, value if words[j] < below else F(0))


@row_function
def multiply(words: Any, below: Any, value: Any, x: Any, out: Any) -> None:
    """``value`` · x where a word is below a bound, else 0 · x."""
    for j in range(len(out)):
        put(out, j, take(x, j) * (value if words[j] < below else F(0)))


def draw(at: Any, size: Any, key: Any, below: Any, value: Any) -> None:
    """`choose`, of ``size`` numbers at an address."""
    out, words = carray(at, size), np.empty(WORDS, np.uint32)
    for start in range(0, size, WORDS):
        fill(words, L(start // WORDS) * L(BLOCKS), key)
        choose(words, below, value, out[start : start + WORDS])


def drop(given: Any, at: Any, size: Any, key: Any, below: Any, value: Any) -> None:
    """`multiply`, of ``size`` numbers at two addresses, by what `draw` gives for the same key."""
    x, out, words = carray(given, size), carray(at, size), np.empty(WORDS, np.uint32)
    for start in range(0, size, WORDS):
        fill(words, L(start // WORDS) * L(BLOCKS), key)
        multiply(words, below, value, x[start : start + WORDS], out[start : start + WORDS])


KINDS = {torch.float32: types.float32, torch.float64: types.float64, torch.bfloat16: types.uint16}
"""Types that can be drawn, and what they are to compiled code."""


@cache
def compiled(dtype: torch.dtype) -> tuple[Any, Any]:
    """`draw` and `drop` for addresses of numbers of ``dtype``, as Python calls them."""
    at, value = types.CPointer(KINDS[dtype]), types.float64 if dtype is torch.float64 else types.float32
    told = (types.intp, types.uint64, types.uint32, value)
    return by_address(draw, types.void(at, *told)), by_address(drop, types.void(at, at, *told))
