"""A trained reader of signals: which label a sequence of frames or each of its frames has, and on what that rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.opening import from_file
from unrolled.data.parts import Part
from unrolled.data.readers import open_table
from unrolled.data.signals import arranged
from unrolled.data.table import Table
from unrolled.pipeline.given_files import frames_of, random_frames
from unrolled.pipeline.model import TRAINED
from unrolled.pipeline.read_labels import ReadLabelModel, Rested
from unrolled.pipeline.streaming import Stream
from unrolled.tasks.signals import Signals
from unrolled.workshop.labelling import Pieces, stretches

if TYPE_CHECKING:
    from unrolled.explain.traces import Traces

PIECES = 24
"""Stretches of a sequence that are taken out one at a time to see what an answer rests on."""


@TRAINED.register("signals")
class SignalModel(ReadLabelModel):
    """A trained reader of signals: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``embed``, ``stream``.

    A sequence is an array of frames [time, channels], or [time] of one channel.
    """

    task: Signals
    lacks = {
        "score": "it gives signals no probability, only labels theirs: predict --json",
        "generate": "it writes labels",
    }
    columns = ("frames", "label")

    # --- answers --------------------------------------------------------------------------------------------------

    def predict(self, sequences: Sequence[Any], *, batch: int | None = None) -> list[Any]:
        """The label of each sequence of frames [time, channels] (or [time] of one channel); where each frame has its
        own, a list of them."""
        if not self.task.each:
            return super().predict(sequences, batch=batch)
        found = self.probabilities(sequences, batch=batch)
        return [[self.labels[place] for place in one.argmax(axis=1)] for one in found]

    def stream(self) -> Stream:
        """A reader of one sequence that comes piece by piece, the state carried from each to the next."""
        return Stream(self)

    def read(self, verb: str, sources: Any) -> list[np.ndarray]:
        if isinstance(sources, np.ndarray) and sources.ndim < 3 and sources.dtype != object:
            raise UsageError(f"{verb}: one array {list(sources.shape)} was given; give a list of sequences.")
        if not isinstance(sources, Sequence | np.ndarray) or isinstance(sources, str):
            raise UsageError(f"{verb}: a {type(sources).__name__} was given; give a list of sequences of frames.")
        return [self.scaled(verb, place, one) for place, one in enumerate(sources)]

    def scaled(self, verb: str, place: int, given: Any) -> np.ndarray:
        """Frames as the network reads them; DataError that says which sequence is wrong."""
        frames = numbers(given, f"{verb}: sequence {place}")
        if not np.isfinite(frames).all():
            raise DataError(f"{verb}: sequence {place} holds a number that is not finite. Fill the gap before.")
        try:
            scaled: np.ndarray = self.text.source.scaled(frames)
        except DataError as error:
            raise DataError(f"{verb}: sequence {place}: {error}") from None
        return scaled

    def rows_of(self, part: Part) -> tuple[list[np.ndarray], list[str]]:
        table = arranged(part.table, self.text.source.names)
        rows = list(part._replace(table=table).rows())
        return [frames_of(str(table.path), row, self.text.source) for row in rows], [row.fields[1] for row in rows]

    def first(self, part: Part, most: int) -> list[np.ndarray]:
        table = arranged(part.table, self.text.source.names)
        rows = islice(part._replace(table=table).rows(), most)
        return [frames_of(str(table.path), row, self.text.source) for row in rows]

    def sources_in(self, file: str) -> Iterator[np.ndarray]:
        """The sequences of a file, one after the other."""
        for row in self._table(file).rows():
            yield frames_of(file, row, self.text.source)

    def _table(self, file: str) -> Table:
        return arranged(self.task.adapt(open_table(from_file(file, "sequences"))), self.text.source.names)

    def made_up(self, count: int) -> list[np.ndarray]:
        """Sequences of 1 to 40 frames of noise around the training mean, seed 1."""
        return random_frames(self.text.source, count)

    def longer(self, source: Any) -> np.ndarray:
        return np.concatenate([numbers(source, "longer")] * 4)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def pieces(self, row: np.ndarray) -> Pieces:
        return stretches(row, PIECES)

    def picture(self, source: Any, row: np.ndarray, rested: Rested) -> Traces:  # noqa: ARG002
        """The channels over time, and of each frame how much it was read."""
        from unrolled.explain.traces import Traces

        given = np.asarray(source, dtype=np.float64)
        return Traces(
            frames=given[:, None] if given.ndim == 1 else given,
            weights=rested.lost[0],
            attention=rested.attention,
            answer=rested.labels[0],
            own=rested.answer,
            others=tuple(zip(rested.labels[1:], rested.probabilities[1:], rested.lost[1:], strict=True)),
            names=self.text.source.names,
            probability=rested.probabilities[0],
            faithfulness=rested.faithfulness,
        )


def numbers(given: Any, what: str) -> np.ndarray:
    """``given`` as float32 [time, channels]; UsageError where it is no array of real numbers."""
    try:
        found = np.asarray(given)
        if found.dtype.kind not in "fiub":
            raise TypeError
        frames = found.astype(np.float32)
    except (ValueError, TypeError):
        raise UsageError(f"{what} is no array of numbers [time, channels].") from None
    return frames[:, None] if frames.ndim == 1 else frames
