"""From a network and recordings to pictures: when each symbol was heard, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.workshop.occluding import lost

if TYPE_CHECKING:
    from unrolled.explain.explanation import Measure
    from unrolled.text.readers import ReadText

SHORTEST = 0.08
"""Seconds of a stretch that is taken out, at least."""

MOST = 24
"""Stretches of a recording."""


def pieces_of(frames: int, step: float) -> int:
    """How many even stretches so many frames of ``step`` seconds are cut into."""
    return max(1, min(MOST, int(frames * step / SHORTEST), frames))


def stretches(frames: int, step: float) -> np.ndarray:
    """Borders of even stretches of so many frames of ``step`` seconds, int64 [stretches + 1]."""
    borders: np.ndarray = np.linspace(0, frames, pieces_of(frames, step) + 1).round().astype(np.int64)
    return borders


def without(network: Any, text: ReadText, frames: np.ndarray, target: Sequence[int], device: Any) -> np.ndarray:
    """What each symbol of ``target`` loses in log-probability without each stretch: float64 [symbols, stretches].

    Taken out: every band at its mean there.
    """
    borders = stretches(len(frames), text.source.step)
    covered = [frames.copy() for _ in borders[1:]]
    for row, (start, end) in zip(covered, pairwise(borders), strict=True):
        row[start:end] = 0
    return lost(network, text, frames, covered, target, device=device)


def trust(
    network: Any,
    text: ReadText,
    heard: Sequence[tuple[np.ndarray, Sequence[int], np.ndarray]],
    *,
    device: Any,
) -> dict[str, Measure]:
    """Honest numbers about the attention of some recordings: scaled frames, target ids and weights [symbols, frames] of
    each. Stretches are taken out one by one, and what that costs is held against what was read of them."""
    from unrolled.explain.erasure import faithfulness

    weights, effects = [], []
    for frames, target, rows in heard:
        borders = stretches(len(frames), text.source.step)
        weights.append(np.add.reduceat(rows, borders[:-1], axis=1))
        effects.append(without(network, text, frames, target, device))
    return faithfulness(weights, effects, part="moment", whole="symbol")
