"""What a two-direction language model says of texts: the probability of each word, and its vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.protocol import UNKNOWN
from unrolled.data.grouping import by_length
from unrolled.tasks.scores import Score

if TYPE_CHECKING:
    from unrolled.data.spelling import Spelled
    from unrolled.models.elmo import Elmo
    from unrolled.text.spelled import SpelledText

TOGETHER = 4096
"""Padded words that go through a network at once."""

HELD = 1 << 25
"""Numbers over the vocabulary that are held at a time."""


class Sides(NamedTuple):
    """Natural-log probabilities of a text's words, float64 [words + 1]."""

    forward: np.ndarray  # each given those before it, the end last
    backward: np.ndarray  # each given those behind it, the beginning first


def log_probs(network: Elmo, texts: Sequence[Sequence[str]], text: SpelledText, *, device: Any) -> list[Sides]:
    """Of each text, given by its words. What a text gets does not depend on the others."""
    import torch

    found: list[Sides] = [Sides(np.empty(0), np.empty(0))] * len(texts)
    for places, batch in _batches(texts, text, device, most=min(TOGETHER, max(1, HELD // network.vocabulary_size))):
        with torch.inference_mode():
            sides = network.log_probs(batch.characters, batch.mask, batch.words)
        ahead, back = (side.double().cpu().numpy() for side in sides)
        for row, place in enumerate(places):
            last = len(texts[place]) + 1
            found[place] = Sides(ahead[row, 1 : last + 1], back[row, :last])
    return found


def vectors(network: Elmo, texts: Sequence[Sequence[str]], text: SpelledText, *, device: Any) -> list[np.ndarray]:
    """Each text's vectors, float32 [words, layers, size], the layer of the characters alone first."""
    import torch

    found: list[np.ndarray] = [np.zeros((0, network.count, network.output_size), np.float32)] * len(texts)
    for places, batch in _batches(texts, text, device, most=TOGETHER):
        with torch.inference_mode():
            layers = torch.stack(network(batch.characters, batch.mask).layers(), dim=2).float().cpu().numpy()
        for row, place in enumerate(places):
            found[place] = layers[row, 1 : len(texts[place]) + 1].copy()
    return found


def _batches(
    texts: Sequence[Sequence[str]], text: SpelledText, device: Any, most: int
) -> Iterator[tuple[list[int], Spelled]]:
    """Texts of like length as batches of at most ``most`` padded words, and which they are."""
    from unrolled.tasks.base import moved

    for group in by_length([len(words) + 2 for words in texts], most):
        yield group, moved(spelled([texts[one] for one in group], text), device)


def spelled(texts: Sequence[Sequence[str]], text: SpelledText) -> Spelled:
    """Texts, each its words, as a batch."""
    from unrolled.data.spelling import collate_spelled

    return collate_spelled([text.spell(words) for words in texts], [text.numbers(words) for words in texts])


class Tally:
    """Log-probabilities of texts, added up."""

    def __init__(self) -> None:
        self.forward = self.backward = 0.0
        self.words = self.unknown = self.count = 0

    def add(self, sides: Sides, numbers: Sequence[int]) -> None:
        """``numbers`` are those of the text's words."""
        self.forward += float(sides.forward.sum())
        self.backward += float(sides.backward.sum())
        self.words += len(numbers) + 1
        self.unknown += sum(number == UNKNOWN for number in numbers)
        self.count += 1

    def scores(self) -> list[Score]:
        """Loss and perplexities."""
        words = max(self.words, 1)
        loss = -(self.forward + self.backward) / (2 * words)
        counted = (
            f"{self.words:,} words, the end of a text one of them; {self.unknown / words:.2%} unknown, each one word"
        )
        return [
            Score("loss", loss, f"nats a word, mean of both directions; {counted}; texts by themselves", False),
            Score("perplexity", _exp(loss), f"exp(loss); {counted}", False),
            Score("forward_perplexity", _exp(-self.forward / words), "of each word given those before it", False),
            Score("backward_perplexity", _exp(-self.backward / words), "of each word given those behind it", False),
        ]


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
