"""What every two-direction language model promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.protocol import SPECIALS
from unrolled.workshop.promises import Promise, near, reloaded

CLOSE = 1e-4
"""How far numbers of vectors may lie apart, each of about 1."""


def check_promises(model: Any, lines: Sequence[str] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``lines`` (none: random ones of the model's own words)."""
    lines = random_lines(model, count) if lines is None else [line for line in lines if line.strip()]
    if not lines:
        raise DataError("selfcheck: no line holds a word. Give some text, or no file: then lines are made up.")
    together = [one.vectors for one in model.embed(lines)]
    return [
        _alike("batch of 1 = batch of N", [model.embed([line])[0].vectors for line in lines], together),
        _any_order(model, lines, together),
        _any_padding(model, lines, together),
        _one_side(model, lines, together),
        _alike("saved = loaded", [one.vectors for one in reloaded(model).embed(lines)], together),
    ]


def random_lines(model: Any, count: int) -> list[str]:
    """Lines of 1 to 20 words drawn from the vocabulary, seed 1."""
    draw = np.random.default_rng(1)
    size = model.text.vocabulary_size
    first = len(SPECIALS) if size > len(SPECIALS) else 1
    rows = [draw.integers(first, size, size=int(draw.integers(1, 21))).tolist() for _ in range(count)]
    return [" ".join(model.text.names(row)) for row in rows]


def _alike(name: str, found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> Promise:
    return near(name, found, wanted, CLOSE, f"numbers of {len(wanted)} lines' vectors")


def _any_order(model: Any, lines: Sequence[str], together: Sequence[np.ndarray]) -> Promise:
    order = np.random.default_rng(2).permutation(len(lines))
    found = [one.vectors for one in model.embed([lines[row] for row in order])]
    return _alike("any order of lines", [found[place] for place in np.argsort(order)], together)


def _any_padding(model: Any, lines: Sequence[str], together: Sequence[np.ndarray]) -> Promise:
    """Every line beside one that is far longer, so that most of its row is padding."""
    import torch

    from unrolled.tasks.base import moved
    from unrolled.tasks.contextual_scores import spelled

    long = [word for line in lines for word in model.text.cut(line)][:200] * 2
    found = []
    for line, wanted in zip(lines[:16], together, strict=False):
        batch = moved(spelled([model.text.cut(line), long], model.text), model.device)
        with torch.inference_mode():
            layers = torch.stack(model.network(batch.characters, batch.mask).layers(), dim=2)
        found.append(layers[0, 1 : len(wanted) + 1].float().cpu().numpy())
    return _alike("any padding", found, together[:16])


def _one_side(model: Any, lines: Sequence[str], together: Sequence[np.ndarray]) -> Promise:
    """The forward half of a vector without the words behind its own, the backward half without those before."""
    half = model.network.output_size // 2
    found, wanted = [], []
    for line, whole in zip(lines[:16], together, strict=False):
        spans = model.text.spans(line)
        middle = len(spans) // 2
        if not middle:
            continue
        before, behind = model.embed([line[: spans[middle - 1][1]], line[spans[middle][0] :]])
        if len(before.words) != middle or len(behind.words) != len(spans) - middle:
            continue  # cut there, the line reads otherwise
        found += [before.vectors[..., :half], behind.vectors[..., half:]]
        wanted += [whole[:middle, :, :half], whole[middle:, :, half:]]
    return _alike("each direction sees its own side alone", found, wanted)
