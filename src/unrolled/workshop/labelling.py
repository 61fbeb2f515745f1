"""Numbers through a network: what each label is given, whatever the order and padding; and on what an answer rests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.data.grouping import by_length

if TYPE_CHECKING:
    from unrolled.explain.explanation import Measure
    from unrolled.models import NumbersToLabel
    from unrolled.text.reading import Reader

TOGETHER = 16384
"""Padded frames that go through a network at once; an image counts for more (`Reader.size`)."""


class Heard(NamedTuple):
    """What a network says of some sources."""

    probabilities: list[np.ndarray]  # of each float32 [1, labels], or of each frame [time, labels]
    weights: list[np.ndarray] | None  # of each float32 [positions]; None: nothing is pooled by attention


def listen(
    network: NumbersToLabel, reader: Reader, rows: Sequence[np.ndarray], *, device: Any, most: int | None = None
) -> Heard:
    """What ``reader`` has read → the probability of each label.

    Rows of like length go through together, at most ``most`` of them.
    """
    import torch

    said: list[np.ndarray] = [np.empty(0, np.float32)] * len(rows)
    weights: list[np.ndarray] = [np.empty(0, np.float32)] * len(rows)
    weighted = bool(rows)
    for group in by_length([reader.size(row) * reader.weight for row in rows], TOGETHER, most):
        given, mask = reader.padded([rows[row] for row in group])
        with torch.inference_mode():
            found, read = network.probabilities(torch.from_numpy(given).to(device), torch.from_numpy(mask).to(device))
        weighted = weighted and read is not None
        counts = mask.sum(axis=1)
        for place, row in enumerate(group):
            own = found[place, : counts[place]] if network.each else found[place : place + 1]
            said[row] = own.cpu().numpy()
            if read is not None:
                weights[row] = read[place, : counts[place]].float().cpu().numpy()
    return Heard(said, weights if weighted else None)


class Pieces(NamedTuple):
    """A source cut into parts that are taken out to see what an answer rests on.

    ``owner`` int [time] or [height, width]: the part that a frame or pixel is of, from 0. ``places`` int [positions]:
    the same of what attention is over. ``blank``: what stands where a part is taken out, the mean of training.
    """

    owner: np.ndarray
    places: np.ndarray
    blank: Any

    @property
    def many(self) -> int:
        """How many parts there are."""
        return int(self.owner.max()) + 1

    def without(self, row: np.ndarray, parts: Any) -> np.ndarray:
        """The source without some of its parts."""
        found: np.ndarray = np.where(np.isin(self.owner, parts)[..., None], self.blank, row).astype(row.dtype)
        return found


def stretches(row: np.ndarray, most: int) -> Pieces:
    """``most`` even stretches of time at most."""
    count = min(most, len(row))
    borders = np.linspace(0, len(row), count + 1).round().astype(int)
    owner = np.repeat(np.arange(count), np.diff(borders))
    return Pieces(owner, owner, np.float32(0))


def rests(
    network: NumbersToLabel, reader: Reader, row: np.ndarray, pieces: Pieces, labels: Sequence[int], *, device: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Of each label and piece what of the label's probability goes without it, float64 [labels, pieces] in [0, 1]
    (occlusion, Zeiler & Fergus 2014, arXiv:1311.2901), and those probabilities, float64 [labels]."""
    without = [pieces.without(row, piece) for piece in range(pieces.many)]
    heard = listen(network, reader, [row, *without], device=device)
    said = np.array([one[0, list(labels)] for one in heard.probabilities], dtype=np.float64)
    return 1 - np.minimum(said[1:] / np.maximum(said[0], 1e-30), 1.0).T, said[0]


TAKEN = 0.25
"""The share of the pieces of a source that are taken out together."""

DRAWS = 8
"""Random choices of pieces that those are compared with."""


def trust(
    network: NumbersToLabel,
    reader: Reader,
    rows: Sequence[tuple[np.ndarray, Pieces]],
    *,
    part: str,
    device: Any,
    whole: tuple[str, Sequence[int] | None] = ("an answer", None),
    seed: int = 1,
) -> dict[str, Measure]:
    """How far pictures of some sources can be trusted, each number beside chance. ``part``: what pieces are of.
    ``whole``: what the labels are called that are looked at, and which those are; None: of each source the likeliest.

    ``deletion``: what of the answer's probability goes when the quarter of the pieces that it is said to rest on
    most is taken out together, and what when as many are drawn at random (comprehensiveness; DeYoung et al. 2020,
    arXiv:1911.03429, §4). ``attention_deletion``: the same of those that an attention pooling reads most.
    """
    from unrolled.explain.explanation import Measure

    draw = np.random.default_rng(seed)
    lost: dict[str, list[float]] = {"rests": [], "attention": [], "random": []}
    for row, pieces in ((row, pieces) for row, pieces in rows if pieces.many > 1):
        heard = listen(network, reader, [row], device=device)
        labels = whole[1] or [int(heard.probabilities[0][0].argmax())]
        resting = rests(network, reader, row, pieces, labels, device=device)[0]
        for label, on in zip(labels, resting, strict=True):
            said = {"rests": on}
            if heard.weights is not None:
                said["attention"] = np.bincount(pieces.places, heard.weights[0], pieces.many)
            for name, value in _gone(network, reader, (row, pieces), label, said, draw=draw, device=device):
                lost[name].append(value)
    if not lost["random"]:
        return {"deletion": Measure(None, None, 0, f"Nothing has two {part}s: there is nothing to take out.")}
    chance, cases = float(np.mean(lost["random"])), len(lost["rests"])
    measures = {}
    for name, key, what in (("rests", "deletion", "it rests on"), ("attention", "attention_deletion", "was attended")):
        if lost[name]:
            value = float(np.mean(lost[name]))
            sentence = (
                f"Without the quarter of its {part}s that {what} most {whole[0]} loses {value:.1%} of its probability; "
                f"without as many at random {chance:.1%}."
            )
            measures[key] = Measure(value, chance, cases, sentence, "%")
    return measures


def _gone(
    network: NumbersToLabel,
    reader: Reader,
    given: tuple[np.ndarray, Pieces],
    label: int,
    said: Mapping[str, np.ndarray],
    *,
    draw: np.random.Generator,
    device: Any,
) -> list[tuple[str, float]]:
    """What of a label's probability goes without the pieces that each name in ``said`` weighs most; and at random."""
    row, pieces = given
    count = max(1, round(TAKEN * pieces.many))
    chosen = [(name, np.argsort(-values, kind="stable")[:count]) for name, values in said.items()]
    chosen += [("random", draw.choice(pieces.many, count, replace=False)) for _ in range(DRAWS)]
    without = [pieces.without(row, places) for _, places in chosen]
    after = listen(network, reader, [row, *without], device=device).probabilities
    found = np.array([one[0, label] for one in after])
    gone = 1 - np.minimum(found[1:] / max(float(found[0]), 1e-30), 1.0)
    return [(name, float(value)) for (name, _), value in zip(chosen, gone, strict=True)]
