"""Where a model looked in an image while it wrote; how far to trust that, by erasing regions of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.workshop.occluding import lost
from unrolled.workshop.seeing import NO_ATTENTION, force, written_side

if TYPE_CHECKING:
    from unrolled.explain.explanation import Measure
    from unrolled.explain.overlay import Overlay
    from unrolled.text.pixels import Pixels
    from unrolled.text.readers import ReadText

TILES = 48
"""Regions of an image that are erased one at a time, at most: places side by side are erased together."""


def overlay(
    network: Any,
    text: ReadText,
    pixels: Pixels,
    ids: Sequence[int],
    weights: np.ndarray | None,
    log_probs: Sequence[float] | np.ndarray,
    *,
    name: str = "",
    by_space: bool = False,
) -> Overlay:
    """The picture of one output: ``ids`` of its symbols, ``weights`` [symbols (+ 1), places] and ``log_probs`` of them.

    ``by_space``: words are what spaces set apart, else the tokenizer's. UsageError for a model without attention.
    """
    from unrolled.explain.alignment import merge
    from unrolled.explain.overlay import Overlay

    if weights is None:
        raise UsageError(NO_ATTENTION)
    spread, words = _words(text, ids, by_space=by_space)
    grid = network.front.shape(*pixels.shape[:2])
    places = grid[0] * grid[1]
    merged = merge(weights[:, :places], np.eye(places), spread)
    return Overlay(
        pixels=pixels,
        words=words,
        weights=merged.weights.reshape(-1, *grid),
        end=None if merged.end_row is None else merged.end_row.reshape(grid),
        stride=network.front.stride,
        log_probs=(np.asarray(log_probs)[: len(ids)] @ spread).tolist(),
        source_text=name,
    )


def _words(text: ReadText, ids: Sequence[int], *, by_space: bool = False) -> tuple[np.ndarray, list[str]]:
    """How much of each symbol belongs to each word, [symbols, words], and the words."""
    from unrolled.explain.alignment import shares

    side = written_side(text.target, list(ids))
    spans = [found.span() for found in re.finditer(r"\S+", side.text)] if by_space else side.word_spans
    return shares(side.token_spans, spans), [side.text[start:end] for start, end in spans]


def overlays(
    network: Any,
    text: ReadText,
    images: Sequence[Pixels],
    captions: Sequence[str],
    *,
    device: Any,
    by_space: bool = False,
) -> list[Overlay]:
    """Where the model looked while it read given captions (forced decoding)."""
    found = []
    for pixels, caption, forced in zip(
        images, captions, force(network, text, images, captions, device=device), strict=True
    ):
        ids = text.target.encode(caption).ids
        found.append(overlay(network, text, pixels, ids, forced.weights, forced.log_probs, by_space=by_space))
    return found


def tiles(rows: int, columns: int, most: int = TILES) -> np.ndarray:
    """The number of the tile that each place of a grid lies in, int [rows, columns]: squares, ``most`` at most."""
    side = next(side for side in range(1, rows * columns + 1) if -(-rows // side) * -(-columns // side) <= most)
    across = -(-columns // side)
    return (np.arange(rows) // side)[:, None] * across + (np.arange(columns) // side)[None]


def effects(
    network: Any, text: ReadText, pixels: Pixels, ids: Sequence[int], tiled: np.ndarray, *, device: Any
) -> np.ndarray:
    """What each word of a caption loses in log-probability without each tile, float64 [words, tiles].

    A tile is erased by the mean colour of the training images.
    """
    spread, _ = _words(text, ids)
    stride, mean = network.front.stride, np.round(text.source.mean).astype(np.uint8)
    height, width = pixels.shape[:2]
    owner = tiled.repeat(stride, axis=0).repeat(stride, axis=1)[:height, :width]
    covered = [np.where((owner == tile)[:, :, None], mean, pixels) for tile in range(tiled.max() + 1)]
    found: np.ndarray = spread.T @ lost(network, text, pixels, covered, ids, device=device)
    return found


def trust(network: Any, text: ReadText, pictures: Sequence[Overlay], *, device: Any) -> dict[str, Measure]:
    """Honest numbers about the attention of some pictures, by regions of the image."""
    from unrolled.explain.erasure import faithfulness

    weights, losses = [], []
    for one in pictures:
        tiled = tiles(*one.weights.shape[1:])
        ids = text.target.encode(one.target_text).ids
        found = effects(network, text, one.pixels, ids, tiled, device=device)
        if len(found) != len(one.words):
            continue  # a text that reads otherwise than it was written
        flat = tiled.ravel()
        weights.append(np.stack([np.bincount(flat, row.ravel(), found.shape[1]) for row in one.weights]))
        losses.append(found)
    return faithfulness(weights, losses, part="region", whole="word")
