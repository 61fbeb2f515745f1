"""Frames through a network: what each label is given, whatever the order and padding; and on what an answer rests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.data.grouping import by_length

if TYPE_CHECKING:
    from unrolled.models import SignalClassifier

TOGETHER = 16384
"""Padded frames that go through a network at once."""


class Heard(NamedTuple):
    """What a network says of some sequences."""

    probabilities: list[np.ndarray]  # of each float32 [1, labels], or of each frame [time, labels]
    weights: list[np.ndarray] | None  # of each float32 [time]; None: nothing is pooled by attention


def listen(network: SignalClassifier, rows: Sequence[np.ndarray], *, device: Any, most: int | None = None) -> Heard:
    """Scaled frames [time, channels] → the probability of each label.

    Rows of like length go through together, at most ``most`` of them.
    """
    import torch

    from unrolled.data.frames import pad_frames

    said: list[np.ndarray] = [np.empty(0, np.float32)] * len(rows)
    weights: list[np.ndarray] = [np.empty(0, np.float32)] * len(rows)
    weighted = bool(rows)
    for group in by_length([len(row) for row in rows], TOGETHER, most):
        given = pad_frames([rows[row] for row in group])
        with torch.inference_mode():
            found, read = network.probabilities(given.ids.to(device), given.mask.to(device))
        weighted = weighted and read is not None
        for place, row in enumerate(group):
            said[row] = (found[place, : len(rows[row])] if network.each else found[place : place + 1]).cpu().numpy()
            if read is not None:
                weights[row] = read[place, : len(rows[row])].float().cpu().numpy()
    return Heard(said, weights if weighted else None)


def erased(frames: np.ndarray, pieces: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Borders of at most ``pieces`` even stretches of ``frames``, int [pieces + 1], and the frames without each of
    them: every channel stands at its mean there, 0."""
    count = min(pieces, len(frames))
    borders = np.linspace(0, len(frames), count + 1).round().astype(int)
    without = []
    for start, end in pairwise(borders):
        one = frames.copy()
        one[start:end] = 0
        without.append(one)
    return borders, without


def rests(
    network: SignalClassifier, frames: np.ndarray, label: int, *, pieces: int, device: Any
) -> tuple[np.ndarray, float]:
    """Of each frame what of the label's probability goes without the stretch that it lies in, float64 [time] in
    [0, 1] (occlusion, Zeiler & Fergus 2014, arXiv:1311.2901), and that probability."""
    borders, without = erased(frames, pieces)
    said = np.array([one[0, label] for one in listen(network, [frames, *without], device=device).probabilities])
    lost = 1 - np.minimum(said[1:] / max(float(said[0]), 1e-30), 1.0)
    return np.repeat(lost.astype(np.float64), np.diff(borders)), float(said[0])
