"""What is wrong with an output, in sentences: empty, cut, caught in a loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unrolled.base.protocol import UNKNOWN
from unrolled.search.hypothesis import Hypothesis


class Loop(NamedTuple):
    """``period`` symbols said ``times`` times in a row, from the symbol ``start`` (from 0) on."""

    start: int
    period: int
    times: int


def diagnose(hypothesis: Hypothesis, tokens: Sequence[str] | None = None) -> list[str]:
    """Sentences for a person, none for an output in order. ``tokens`` name the symbols of ``hypothesis.ids``."""
    ids = hypothesis.ids
    found = []
    if not ids and hypothesis.finished:
        sure = math.exp(hypothesis.token_log_probs[0])
        found.append(
            f"The output is empty: the model ended at once, with probability {sure:.2g}. "
            "Set min_length to 1, and look for empty targets in the training data."
        )
    loop = longest_loop(ids)
    if loop:
        words = [str(symbol) for symbol in ids] if tokens is None else list(tokens)
        unit = " ".join(words[loop.start : loop.start + min(loop.period, 5)]) + (" …" if loop.period > 5 else "")
        found.append(
            f"The output repeats itself: '{unit}' {loop.times} times in a row from symbol {loop.start + 1} on. "
            f"If that is not wanted, set no_repeat_ngram to {max(loop.period, 2)}, or train longer."
        )
    if ids and all(symbol == UNKNOWN for symbol in ids):
        found.append("The output is all unknown words. Set replace_unknown or ban_unknown, or use a subword tokenizer.")
    if not hypothesis.finished:
        found.append(
            f"The output was cut after {len(ids)} symbol{'' if len(ids) == 1 else 's'}, before the model ended it. "
            + ("It is caught in the loop." if loop else "If more was to come, raise max_length or max_length_constant.")
        )
    return found


def longest_loop(ids: Sequence[int]) -> Loop | None:
    """The loop that covers most symbols, of equals the shortest period; None if none turns 4 times.

    For each period, the longest run of symbols that equal the one a period before.
    """
    said = np.asarray(ids, dtype=np.int64)
    best: Loop | None = None
    for period in range(1, len(said) // 4 + 1):
        edges = np.flatnonzero(np.diff(said[period:] == said[:-period], prepend=False, append=False))
        if not len(edges):
            continue
        runs = edges[1::2] - edges[::2]
        longest = int(runs.argmax())
        times = int(runs[longest]) // period + 1
        if times >= 4 and (best is None or times * period > best.times * best.period):
            best = Loop(int(edges[2 * longest]), period, times)
    return best
