"""A trained model that labels images: which label one has, and on which regions that rests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.pipeline.given_files import images_in, larger, noise
from unrolled.pipeline.model import TRAINED
from unrolled.pipeline.read_labels import FileLabelModel, Rested
from unrolled.tasks.images import Images
from unrolled.workshop.labelling import Pieces
from unrolled.workshop.looking import tiles

if TYPE_CHECKING:
    from unrolled.explain.overlay import Overlay


@TRAINED.register("images")
class ImageClassifier(FileLabelModel):
    """A trained model of labels of images: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``embed``.

    An image is the path of a file, or an array [height, width] or [height, width, 1, 3 or 4] of whole numbers from 0 to
    255 or fractions from 0 to 1.
    """

    task: Images
    lacks = {
        "score": "it gives images no probability, only labels theirs: predict --json",
        "generate": "it gives labels: to write of images, train with --task captions",
    }
    columns = ("image", "label")
    part = "region"
    example = "images.tsv"

    def sources_in(self, file: str) -> Iterator[str]:
        return images_in(file, self.task.adapt)

    def made_up(self, count: int) -> list[np.ndarray]:
        """Images of noise, as large as the training images where they were alike, seed 1."""
        return noise(self.text.source, count)

    def longer(self, source: Any) -> np.ndarray:
        return larger(self.text.source, source)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def pieces(self, row: np.ndarray) -> Pieces:
        """Squares of places of the grid; one is taken out by the mean colour of the training images."""
        height, width = row.shape[:2]
        front = self.network.front
        tiled = tiles(*front.shape(height, width))
        owner = tiled.repeat(front.stride, axis=0).repeat(front.stride, axis=1)[:height, :width]
        return Pieces(owner, tiled.ravel(), np.round(self.text.source.mean))

    def picture(self, source: Any, row: np.ndarray, rested: Rested) -> Overlay:
        """The image, and laid over it what the pooling read and what of the probability goes without each region."""
        from unrolled.explain.overlay import Overlay

        shown = rested.strips()
        weights = np.stack([one.weights for one in shown])
        return Overlay(
            pixels=row,
            words=[f"{one.label}: {one.name}" for one in shown],
            weights=weights.reshape(-1, *self.network.front.shape(*row.shape[:2])),
            stride=self.network.front.stride,
            log_probs=[math.log(max(one.probability, 1e-30)) for one in shown],
            source_text=source if isinstance(source, str) else "",
            answer=rested.answer,
            labels=rested.labels,
            label_text=rested.shown,
            faithfulness=rested.faithfulness,
        )
