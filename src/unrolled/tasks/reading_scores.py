"""How good answers to questions are: exact match and F1 of words as SQuAD has them; where spans lie."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

LONGEST = 30
"""Symbols of the longest span that is answered with."""


def normalised(text: str) -> str:
    """Lower case, no punctuation, no English articles, single spaces (Rajpurkar et al. 2016, arXiv:1606.05250)."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", text).split())


def exact_match(answer: str, wanted: Sequence[str]) -> float:
    """1 where an answer is one of the ``wanted`` ones, both normalised, else 0."""
    return float(any(normalised(answer) == normalised(one) for one in wanted))


def token_f1(answer: str, wanted: Sequence[str]) -> float:
    """The best F1 of an answer's words against those of one of the ``wanted`` ones, both as bags, normalised."""
    return max((_f1(normalised(answer).split(), normalised(one).split()) for one in wanted), default=0.0)


def _f1(answer: list[str], wanted: list[str]) -> float:
    if not answer or not wanted:
        return float(answer == wanted)
    shared = sum((Counter(answer) & Counter(wanted)).values())
    return 2 * shared / (len(answer) + len(wanted))


def best_spans(
    first: np.ndarray, last: np.ndarray, count: int = 1, end: int | None = None
) -> list[tuple[int, int, float]]:
    """The likeliest spans (first, last symbol, probability), the likeliest first, of the probabilities of both ends
    [positions]: p(i, j) ∝ first_i last_j over i ≤ j < i + LONGEST. No span goes on to ``end``, the position that stands
    for no answer: (end, end) is one by itself."""
    joint = _joint(first, last, end)
    total = joint.sum()
    if not total:
        return [(int(first.argmax()), int(first.argmax()), 0.0)]
    order = np.argsort(-joint, axis=None, kind="stable")[:count]
    places = [divmod(int(place), joint.shape[1]) for place in order]
    return [(i, j, float(joint[i, j] / total)) for i, j in places if joint[i, j] > 0]


def span_probability(first: np.ndarray, last: np.ndarray, span: Sequence[int], end: int | None = None) -> float:
    """The probability of one span (first, last symbol), as `best_spans` has it; of one that it never gives, a longer
    one, as if that alone came into question too."""
    joint = _joint(first, last, end)
    total = float(joint.sum())
    here, there = span
    own = float(joint[here, there])
    if not own:
        own = float(first[here]) * float(last[there])
        total += own
    return own / total if total else 0.0


def _joint(first: np.ndarray, last: np.ndarray, end: int | None) -> np.ndarray:
    """first_i last_j of every span that is answered with, [positions, positions]; 0 elsewhere."""
    joint = np.triu(np.outer(first, last).astype(np.float64))
    joint -= np.triu(joint, LONGEST)
    if end is not None:
        joint[:end, end] = 0.0
    return joint
