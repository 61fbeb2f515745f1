"""The step protocol: what a model, an exported engine and the search have in common. NumPy only.

start(batch) → state                   encode once; a state is a tuple of arrays, batch first
step(last_ids, state, k) → Candidates  the k best next symbols of each row, the attention row, the new state
select(state, rows) → state            reorder or copy rows (a beam moves by this alone)
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

State = tuple[Any, ...]
"""Arrays of the engine's own type, batch first. Search hands them back untouched."""

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
"""Ids of the special symbols, the same in every vocabulary."""

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")

SPELLED_BEGIN, SPELLED_END = (BEGIN, BEGIN, END), (BEGIN, END, END)
"""Where words are spelled, each between BEGIN and END: how the beginning and the end of a text are, as words of one
character."""


class Candidates(NamedTuple):
    """What one step offers. ``scores`` are natural-log probabilities, best first in each row."""

    scores: np.ndarray  # float32 [rows, k]
    ids: np.ndarray  # int64 [rows, k]
    weights: np.ndarray | None  # float32 [rows, source]; each row sums to 1 over real positions; None without attention
    state: State


class Stepper(Protocol):
    """An engine that search can drive."""

    vocabulary_size: int

    def start(self, ids: np.ndarray, mask: np.ndarray) -> State:
        """``ids`` int64 [rows, source], or numbers [rows, …]; ``mask`` bool [rows, source], True = real. Once."""
        ...

    def step(self, last_ids: np.ndarray, state: State, k: int) -> Candidates:
        """``last_ids`` int64 [rows]. ``k`` is cut to the vocabulary size, which gives all, sorted. Of equal scores
        the smaller id comes first where the engine can tell."""
        ...

    def select(self, state: State, rows: np.ndarray) -> State:
        """State of ``rows`` (int64 [n], repeats allowed), in that order."""
        ...


class Loss(NamedTuple):
    """What a task's loss returns: a sum and over how many symbols it was taken, so that any split adds up."""

    total: Any  # scalar tensor, summed over symbols, natural log
    count: int  # type: ignore[assignment]
