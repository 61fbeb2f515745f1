"""A trained reader of signals: which label a sequence of frames or each of its frames has, and on what that rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.parts import Part
from unrolled.data.readers import open_table
from unrolled.data.signals import arranged
from unrolled.data.table import Row, Table
from unrolled.pipeline.labelling import Answer, LabelModel
from unrolled.pipeline.model import TRAINED, Shown
from unrolled.pipeline.numbered import Named, nth
from unrolled.pipeline.streaming import Stream
from unrolled.tasks.label_scores import decided
from unrolled.tasks.signals import Signals
from unrolled.text.frames import read_frames
from unrolled.workshop import arguments
from unrolled.workshop.promises import Promise
from unrolled.workshop.signal_promises import check_promises
from unrolled.workshop.signals import listen, rests, trust

if TYPE_CHECKING:
    from unrolled.explain.traces import Traces

ROUND = 1024
"""Sequences that are read, sorted by length and answered together."""

TRUSTED = 50
"""Validation sequences over which the faithfulness of pictures is measured after training."""

PIECES = 24
"""Stretches of a sequence that are taken out one at a time to see what an answer rests on."""


@TRAINED.register("signals")
class SignalModel(LabelModel):
    """A trained reader of signals: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``stream``."""

    task: Signals
    lacks = {
        "score": "it gives signals no probability, only labels theirs: predict --json",
        "generate": "it writes labels",
        "embed": "signals have no words that vectors could be of",
    }
    columns = ("frames", "label")

    # --- answers --------------------------------------------------------------------------------------------------

    def predict(self, sequences: Sequence[Any], *, batch: int | None = None) -> list[Any]:
        """The label of each sequence of frames [time, channels] (or [time] of one channel); where each frame has its
        own, a list of them."""
        if not self.task.each:
            return [one.label for one in self.answers(self._listed("predict", sequences), batch=batch)]
        found = self.probabilities(sequences, batch=batch)
        return [[self.labels[place] for place in one.argmax(axis=1)] for one in found]

    def probabilities(self, sequences: Sequence[Any], *, batch: int | None = None) -> list[np.ndarray]:
        """What each label is given: of each sequence float32 [labels], or of each of its frames [time, labels]."""
        most = None if batch is None else arguments.count("predict", "batch", batch)
        found = listen(self.network, self._scaled("predict", sequences), device=self.device, most=most).probabilities
        return found if self.task.each else [one[0] for one in found]

    def answers(self, sequences: Sequence[Any], *, batch: int | None = None) -> list[Answer]:
        """Label, probability and all others of each sequence. UsageError where each frame has its own label."""
        self._refuse_each("answers")
        if len(sequences) == 0:
            return []
        found = np.array(self.probabilities(sequences, batch=batch))
        return [self.answer_of(row, place) for row, place in zip(found, decided(found, several=False), strict=True)]

    def stream(self) -> Stream:
        """A reader of one sequence that comes piece by piece, the state carried from each to the next."""
        return Stream(self)

    def said(self, inputs: Sequence[Any]) -> np.ndarray:
        found = listen(self.network, self._scaled("evaluate", inputs), device=self.device).probabilities
        return np.concatenate(found)

    def pairs(self, verb: str, rows: Any, labels: Any) -> tuple[Sequence[Any], list[str]]:
        """Sequences and as many labels; where each frame has its own, a list of labels for each sequence."""
        cells = labels if isinstance(labels, Sequence) else list(labels)
        if self.task.each and not isinstance(cells, str):
            cells = [one if isinstance(one, str) else " ".join(map(str, one)) for one in cells]
        cells = arguments.texts(verb, "labels", cells)
        if len(rows) != len(cells):
            raise UsageError(f"{verb}: {len(rows)} sequences and {len(cells)} labels; give as many of both.")
        return rows, cells

    def rows_of(self, part: Part) -> tuple[list[np.ndarray], list[str]]:
        table = arranged(part.table, self.text.frames.names)
        rows = list(part._replace(table=table).rows())
        return [self._placed(str(table.path), row) for row in rows], [row.fields[1] for row in rows]

    def _scaled(self, verb: str, sequences: Sequence[Any]) -> list[np.ndarray]:
        return [self._frames(verb, place, one) for place, one in enumerate(self._listed(verb, sequences))]

    @staticmethod
    def _listed(verb: str, sequences: Any) -> Sequence[Any]:
        """The sequences, unless they are something else: UsageError."""
        if isinstance(sequences, np.ndarray) and sequences.ndim < 3 and sequences.dtype != object:
            raise UsageError(f"{verb}: one array {list(sequences.shape)} was given; give a list of sequences.")
        if not isinstance(sequences, Sequence | np.ndarray) or isinstance(sequences, str):
            raise UsageError(f"{verb}: a {type(sequences).__name__} was given; give a list of sequences of frames.")
        found: Sequence[Any] = sequences  # type: ignore[assignment]
        return found

    def _frames(self, verb: str, place: int, given: Any) -> np.ndarray:
        frames = numbers(given, f"{verb}: sequence {place}")
        if not np.isfinite(frames).all():
            raise DataError(f"{verb}: sequence {place} holds a number that is not finite. Fill the gap before.")
        try:
            scaled: np.ndarray = self.text.frames.scaled(frames)
        except DataError as error:
            raise DataError(f"{verb}: sequence {place}: {error}") from None
        return scaled

    def _refuse_each(self, verb: str) -> None:
        if self.task.each:
            raise UsageError(f"{verb}: each frame has a label of its own here. Use predict or probabilities.")

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, sequence: Any, label: str | None = None) -> Traces:
        """The channels over time, and of each frame how much it was read: the weights of an attention pooling, else
        what of the label's probability goes without the stretch around it.

        UsageError for an unknown label, and where each frame has its own.
        """
        from unrolled.explain.traces import Traces

        self._refuse_each("explain")
        place = self.place(label)
        (frames,) = self._scaled("explain", [sequence])
        heard = listen(self.network, [frames], device=self.device)
        chosen = int(heard.probabilities[0][0].argmax()) if place is None else place
        lost, probability = rests(self.network, frames, chosen, pieces=PIECES, device=self.device)
        given = np.asarray(sequence, dtype=np.float64)
        trusted = trust(self.network, [frames], pieces=PIECES, device=self.device)
        return Traces(
            frames=given[:, None] if given.ndim == 1 else given,
            weights=lost,
            attention=None if heard.weights is None else heard.weights[0],
            answer=self.labels[chosen],
            names=self.text.frames.names,
            probability=probability,
            faithfulness=trusted,
        )

    # --- after training -------------------------------------------------------------------------------------------

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far pictures of what answers rest on can be trusted."""
        if self.task.each:
            return {}
        table = arranged(valid.table, self.text.frames.names)
        rows = list(islice(valid._replace(table=table).rows(), TRUSTED))
        frames = [self.text.frames.scaled(self._placed(str(table.path), row)) for row in rows]
        found = trust(self.network, frames, pieces=PIECES, device=self.device)
        return {"faithfulness": {name: one._asdict() for name, one in found.items()}}

    def promises(self, file: str | None, count: int) -> list[Promise]:
        found = None
        if file is not None:
            found = [read_frames(row.fields[0]) for row in islice(self._table(file).rows(), count)]
        return check_promises(self, found, count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, nbest: int | None = None, batch: int | None = None) -> Iterator[Shown]:
        """One result a sequence of ``file``, in order: the label and its probability, or the ``nbest`` likeliest."""
        count = None if nbest is None else arguments.count("predict", "nbest", nbest)
        rows, number = self._table(file).rows(), 0
        while held := list(islice(rows, ROUND)):
            frames = [self._placed(file, row) for row in held]
            if self.task.each:
                shown = [self._shown_frames(number + place, one) for place, one in enumerate(self.predict(frames))]
            else:
                answers = self.answers(frames, batch=batch)
                shown = [self._shown(number + place, one, count) for place, one in enumerate(answers)]
            yield from shown
            number += len(held)
        if not number:
            raise DataError(f"{file}: there is no sequence in it.")

    def _shown_frames(self, number: int, labels: list[str]) -> Shown:
        return Shown(" ".join(labels), {"sequence": number, "labels": labels})

    def _shown(self, number: int, one: Answer, nbest: int | None) -> Shown:
        shown = f"{one.label}\t{one.probability:.6f}"
        if nbest is not None:
            shown = "\n".join(f"{number}\t{probability:.6f}\t{label}" for label, probability in one.ranked[:nbest])
        tree: dict[str, Any] = {"sequence": number, "label": one.label, "probability": one.probability}
        return Shown(shown, tree | {"probabilities": dict(one.ranked[:nbest])})

    def show_explain(self, line: str, *, target: str | None = None) -> Traces:
        """``line`` is a file and after a # the number of the sequence in it, from 1: ``signals.ts#3``."""
        named = Named("sequence", "signals.ts")
        file, row = nth("explain", line, named, lambda file: self._table(file).rows())
        return self.explain(self._placed(file, row), target)

    def _table(self, file: str) -> Table:
        if file == "-":
            raise UsageError("sequences are read from a file (.ts, .npz, .csv), not from standard input.")
        return arranged(self.task.adapt(open_table(Path(file))), self.text.frames.names)

    def _placed(self, file: str, row: Row) -> np.ndarray:
        try:
            return self.text.frames.checked(read_frames(row.fields[0]))
        except DataError as error:
            raise DataError(f"{file}:{row.place}: {error}") from None


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
