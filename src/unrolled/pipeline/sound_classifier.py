"""A trained model that labels recordings: which label one has, and on which moments that rests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.data.parts import Part
from unrolled.pipeline.given_files import checked, recordings_in, tones
from unrolled.pipeline.model import TRAINED
from unrolled.pipeline.read_labels import FileLabelModel, Rested
from unrolled.tasks.sounds import Sounds
from unrolled.workshop.hearing import pieces_of
from unrolled.workshop.labelling import Pieces, stretches

if TYPE_CHECKING:
    from unrolled.explain.listening import Listening


@TRAINED.register("sounds")
class SoundClassifier(FileLabelModel):
    """A trained model of labels of recordings: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``embed``.

    A recording is a path, or an array [samples] at the model's rate: numbers from -1 to 1, or whole ones of 16 bits.
    """

    task: Sounds
    lacks = {
        "score": "it gives recordings no probability, only labels theirs: predict --json",
        "generate": "it gives labels: to write down what is said, train with --task speech",
    }
    columns = ("sound", "label")
    part = "moment"
    example = "recordings.tsv"

    def sources_in(self, file: str) -> Iterator[str]:
        return recordings_in(file, self.task.adapt, self.text.source)

    def rows_of(self, part: Part) -> tuple[list[str], list[str]]:
        """The recordings of a table and their labels; DataError with the line of one that cannot be read."""
        rows = list(part.rows())
        for row in rows:
            checked(part.table.place(row.place, part.pick[0]), row.fields[0], self.text.source)
        return [row.fields[0] for row in rows], [row.fields[1] for row in rows]

    def made_up(self, count: int) -> list[np.ndarray]:
        """Tones of 0.1 to 1 seconds that change their pitch, seed 1."""
        return tones(self.text.source, count)

    def longer(self, source: Any) -> np.ndarray:
        return np.tile(self.text.source.samples(source), 4)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def pieces(self, row: np.ndarray) -> Pieces:
        """Even stretches of time; one is taken out by every band at its mean."""
        return stretches(row, pieces_of(len(row), self.text.source.step))

    def picture(self, source: Any, row: np.ndarray, rested: Rested) -> Listening:  # noqa: ARG002
        """The spectrogram, and below what the pooling read and what of the probability goes without each moment."""
        from unrolled.explain.listening import Listening

        reader = self.text.source
        shown, one = rested.strips(), len(rested.labels) == 1
        return Listening(
            bands=reader.frames(reader.samples(source)),
            pitches=reader.pitches(),
            step=reader.step,
            symbols=tuple(row.name if one or row.name == "attention" else f"{row.label}: {row.name}" for row in shown),
            weights=np.stack([row.weights for row in shown]),
            log_probs=[math.log(max(row.probability, 1e-30)) for row in shown],
            said=rested.labels[0] if one else rested.shown,
            answer=rested.answer,
            labels=rested.labels,
            caption=f"{rested.shown}: what was read, and what {'it rests' if one else 'each label rests'} on",
            faithfulness=rested.faithfulness,
        )
