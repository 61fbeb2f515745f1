"""What a model says of a target, all at once or step by step: the named results of `unrolled.models.writing`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from torch import Tensor, nn

from unrolled.layers import State


class Forced(NamedTuple):
    """What a model says of a given target, every step seeing the gold symbols before it.

    The logits of a model that copies, or has an alignment, are log-probabilities, which are their own log-softmax.
    """

    logits: Tensor  # [symbols, vocabulary], real symbols only, in the order of target_ids[:, 1:][target_mask[:, 1:]]
    weights: Tensor | None  # [batch, time - 1, source], float32; None without attention
    penalty: Tensor | None = None  # to be added to the summed loss: the coverage loss, where the model has one


class Seen(NamedTuple):
    """What a decoder made of a given target."""

    outputs: Tensor  # [symbols, size], real symbols only; with an alignment log-probabilities [symbols, vocabulary]
    places: Tensor  # int64 [symbols], of each in the flattened [batch, time - 1]
    weights: Tensor | None  # [batch, time - 1, source]
    state: State  # the one before the first symbol


class Stepped(NamedTuple):
    """What a model says of the next symbol."""

    logits: Tensor  # [batch, vocabulary]
    weights: Tensor | None  # [batch, source]
    state: State


class Offered(NamedTuple):
    """The likeliest next symbols, best first."""

    scores: Tensor  # [batch, k], natural-log probabilities, float32 at least
    ids: Tensor  # int64 [batch, k]
    weights: Tensor | None  # [batch, source]
    state: State


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Every part in evaluation mode for a while, and afterwards in the one it was in."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
