"""Frames through a network: what each label is given, whatever the order and padding; and on what an answer rests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.data.grouping import by_length

if TYPE_CHECKING:
    from unrolled.explain.explanation import Measure
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


TAKEN = 0.25
"""The share of the stretches of a sequence that are taken out together."""

DRAWS = 8
"""Random choices of stretches that those are compared with."""


def trust(
    network: SignalClassifier, rows: Sequence[np.ndarray], *, pieces: int, device: Any, seed: int = 1
) -> dict[str, Measure]:
    """How far pictures of sequences [time, channels] can be trusted, each number beside chance.

    ``deletion``: what of the answer's probability goes when the quarter of the stretches that it is said to rest on
    most is taken out together, and what when as many are drawn at random (comprehensiveness; DeYoung et al. 2020,
    arXiv:1911.03429, §4). ``attention_deletion``: the same of those that an attention pooling reads most.
    """
    from unrolled.explain.explanation import Measure

    draw = np.random.default_rng(seed)
    lost: dict[str, list[float]] = {"rests": [], "attention": [], "random": []}
    for frames in (row for row in rows if len(row) > 1):
        heard = listen(network, [frames], device=device)
        label = int(heard.probabilities[0][0].argmax())
        borders, _ = erased(frames, pieces)
        starts = borders[:-1]
        said = {"rests": rests(network, frames, label, pieces=pieces, device=device)[0][starts]}
        if heard.weights is not None:
            said["attention"] = np.add.reduceat(heard.weights[0], starts)
        count = max(1, round(TAKEN * len(starts)))
        chosen = [(name, np.argsort(-values, kind="stable")[:count]) for name, values in said.items()]
        chosen += [("random", draw.choice(len(starts), count, replace=False)) for _ in range(DRAWS)]
        without = [_without(frames, borders, places) for _, places in chosen]
        found = np.array([one[0, label] for one in listen(network, [frames, *without], device=device).probabilities])
        gone = 1 - np.minimum(found[1:] / max(float(found[0]), 1e-30), 1.0)
        for (name, _), value in zip(chosen, gone, strict=True):
            lost[name].append(float(value))
    if not lost["random"]:
        return {"deletion": Measure(None, None, 0, "No sequence has two frames: there is nothing to take out.")}
    chance, cases = float(np.mean(lost["random"])), len(lost["rests"])
    measures = {}
    for name, key, what in (("rests", "deletion", "darkest"), ("attention", "attention_deletion", "most attended")):
        if lost[name]:
            value = float(np.mean(lost[name]))
            sentence = (
                f"Without the {what} quarter of its frames an answer loses {value:.1%} of its probability; without as "
                f"many at random {chance:.1%}."
            )
            measures[key] = Measure(value, chance, cases, sentence, "%")
    return measures


def _without(frames: np.ndarray, borders: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The frames without the stretches ``places``: every channel stands at its mean there, 0."""
    one = frames.copy()
    for place in places:
        one[borders[place] : borders[place + 1]] = 0
    return one
