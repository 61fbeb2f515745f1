"""What every contender is given and asked, and how its rate is taken: seconds of the processor for the same batches.

Run by interpreters that have nothing of this project: the standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

EMBEDDING, ENCODER, HIDDEN, DROPOUT, BEAM, WORDS = 256, 256, 512, 0.2, 5, 16
"""Sizes of all: embedding, each direction of the encoder, decoder; dropout; beam; words of a sentence to decode."""


class Work(NamedTuple):
    """The request, read from standard input. Words are numbers from 0 to ``words`` - 1; special symbols come on top."""

    batches: list[tuple[list[list[int]], list[list[int]]]]  # sources and targets to train on, without specials
    sentences: list[list[int]]  # sources to decode, each of WORDS words, into WORDS symbols
    words: int  # a side; with four special symbols a vocabulary has words + 4
    feeding: bool  # whether a step sees the attentional vector of the one before
    precision: str  # float32 or bfloat16, of products; a script that cannot says so
    seconds: float  # to spend on each rate, of the clock


def work() -> Work:
    return Work(**json.load(sys.stdin))


def symbols(batch: tuple[list[list[int]], list[list[int]]]) -> int:
    """Target symbols of a batch with their ends: what a training rate counts."""
    return sum(len(target) + 1 for target in batch[1])


def padded(rows: Sequence[Sequence[int]], pad: int) -> list[list[int]]:
    longest = max(map(len, rows))
    return [[*row, *[pad] * (longest - len(row))] for row in rows]


def rate(run: Callable[[Any], object], things: Sequence[Any], amount: float, seconds: float) -> float:
    """``amount`` a second of the processor for all ``things``, the best round of those that fit ``seconds``.

    The first round warms up: it compiles and allocates, and is not counted.
    """
    for thing in things:
        run(thing)
    best, end = 0.0, time.monotonic() + seconds
    while not best or time.monotonic() < end:
        start = time.process_time()
        for thing in things:
            run(thing)
        best = max(best, amount / (time.process_time() - start))
    return best


def tell(
    asked: Work,
    version: str,
    settings: str,
    update: Callable[[Any], object] | None,
    decode: Callable[[list[list[int]], int], object] | None,
) -> None:
    """Take the rates and print the one line. ``decode`` takes sentences and the width of the beam, 1 for greedy."""
    found: dict[str, Any] = {"version": version, "settings": settings}
    if update is not None:
        amount = sum(map(symbols, asked.batches))
        found["tokens_per_second"] = round(rate(update, asked.batches, amount, asked.seconds))
    if decode is not None:
        some, many = [[one] for one in asked.sentences[:4]], [asked.sentences[:64]]
        for name, things, beam in (("alone", some, 1), ("batch_64", many, 1), ("beam_5", many, BEAM)):
            amount = sum(map(len, things))
            found[name] = round(rate(lambda thing, beam=beam: decode(thing, beam), things, amount, asked.seconds), 1)
    print(json.dumps(found), flush=True)
