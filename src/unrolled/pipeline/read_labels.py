"""A trained model that labels numbers: what signals, images and recordings share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.parts import Part
from unrolled.pipeline.given_files import paths_or_arrays
from unrolled.pipeline.labelling import Answer, LabelModel
from unrolled.pipeline.model import Shown
from unrolled.pipeline.numbered import Named, nth
from unrolled.tasks.label_scores import decided
from unrolled.tasks.read_labels import FileLabelTask, ReadLabelTask
from unrolled.workshop import arguments
from unrolled.workshop.embedding import line_vectors
from unrolled.workshop.label_promises import of_probabilities
from unrolled.workshop.labelling import Pieces, listen, rests, trust
from unrolled.workshop.promises import Promise

if TYPE_CHECKING:
    from unrolled.explain.explanation import Measure
    from unrolled.explain.plotted import Plotted

ROUND = 1024
"""Sources that are read, sorted by length and answered together."""

TRUSTED = 50
"""Validation sources over which the faithfulness of pictures is measured after training."""


class Strip(NamedTuple):
    """A row of a picture."""

    label: str  # of several, all of them, where the row is of all
    name: str
    probability: float  # of the label; of several, their product
    weights: np.ndarray  # float32 [positions], of sum 1, or all 0: nothing goes


class Rested(NamedTuple):
    """What labels rest on: what a picture shows."""

    answer: str  # the model's own; with several labels all of them, the separator between
    labels: tuple[str, ...]  # those that are shown: of the answer, or those that were asked for
    probabilities: tuple[float, ...]  # of each of them
    lost: np.ndarray  # float64 [labels, positions]: what of its probability goes without the piece that each is of
    attention: np.ndarray | None  # float32 [positions], the weights of the pooling, one for all labels; sums to 1
    faithfulness: dict[str, Measure] | None  # of the labels that are shown

    @property
    def shown(self) -> str:
        """The labels that are shown, each with its probability."""
        return ", ".join(f"{name} ({one:.3f})" for name, one in zip(self.labels, self.probabilities, strict=True))

    def strips(self) -> list[Strip]:
        """What was read, once for all labels; then of each label what it rests on."""
        rows = []
        if self.attention is not None:
            certain = float(np.prod(self.probabilities))
            rows.append(Strip(", ".join(self.labels), "attention", certain, self.attention.astype(np.float32)))
        for name, probability, lost in zip(self.labels, self.probabilities, self.lost, strict=True):
            share = lost / max(float(lost.sum()), 1e-12)
            rows.append(Strip(name, "rests on", probability, share.astype(np.float32)))
        return rows


class ReadLabelModel(LabelModel):
    """A trained model of a `ReadLabelTask`: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``embed``."""

    task: ReadLabelTask
    part = "frame"
    """What pictures are made of: what is taken out to see what an answer rests on."""

    # --- what a class of its own gives ----------------------------------------------------------------------------

    @abstractmethod
    def read(self, verb: str, sources: Any) -> list[np.ndarray]:
        """What the user gave, as the network's reader makes it; UsageError or DataError for anything else."""

    @abstractmethod
    def sources_in(self, file: str) -> Iterator[Any]:
        """The sources in a file, one after the other."""

    @abstractmethod
    def pieces(self, row: np.ndarray) -> Pieces:
        """The parts of a source that are taken out to see what an answer rests on."""

    @abstractmethod
    def picture(self, source: Any, row: np.ndarray, rested: Rested) -> Plotted:
        """A source and on what its answer rests."""

    @abstractmethod
    def made_up(self, count: int) -> list[Any]:
        """Sources to check promises on where no file is given."""

    @abstractmethod
    def longer(self, source: Any) -> Any:
        """A source that is longer, to be padded to."""

    def named(self, number: int, source: Any) -> dict[str, Any]:
        """Which source an answer is of, as JSON."""
        return {self.task.noun: str(source) if isinstance(source, str) else number}

    # --- answers --------------------------------------------------------------------------------------------------

    def predict(self, sources: Sequence[Any], *, batch: int | None = None) -> list[Any]:
        """The label of each source; where one may have several, all of 0.5 and more, the separator between."""
        return [one.label for one in self.answers(sources, batch=batch)]

    def probabilities(self, sources: Sequence[Any], *, batch: int | None = None) -> list[np.ndarray]:
        """What each label is given: of each source float32 [labels]; where each frame has its own, [time, labels]."""
        most = None if batch is None else arguments.count("predict", "batch", batch)
        found = listen(
            self.network, self.text.source, self.read("predict", sources), device=self.device, most=most
        ).probabilities
        return found if self.task.each else [one[0] for one in found]

    def answers(self, sources: Sequence[Any], *, batch: int | None = None) -> list[Answer]:
        """Label, probability and all others of each source. UsageError where each frame has its own label."""
        self.refuse_each("answers")
        found = self.probabilities(sources, batch=batch)
        if not found:
            return []
        said = np.array(found)
        chosen = decided(said, several=self.text.several)
        return [self.answer_of(row, one) for row, one in zip(said, chosen, strict=True)]

    def said(self, inputs: Sequence[Any]) -> np.ndarray:
        return np.concatenate(
            listen(self.network, self.text.source, self.read("evaluate", inputs), device=self.device).probabilities
        )

    def pairs(self, verb: str, rows: Any, labels: Any) -> tuple[Sequence[Any], list[str]]:
        """Sources and as many labels; where each frame has its own, a list of labels for each source."""
        cells = labels if isinstance(labels, Sequence) else list(labels)
        if self.task.each and not isinstance(cells, str):
            cells = [one if isinstance(one, str) else " ".join(map(str, one)) for one in cells]
        cells = arguments.texts(verb, "labels", cells)
        if len(rows) != len(cells):
            raise UsageError(f"{verb}: {len(rows)} {self.task.noun}s and {len(cells)} labels; give as many of both.")
        return rows, cells

    def embed(self, sources: Sequence[Any]) -> np.ndarray:
        """Float32 [sources, size]: the vector of each source by which its label is told."""
        self.refuse_each("embed")
        reader = self.text.source
        return line_vectors(
            self.network,
            self.read("embed", sources),
            device=self.device,
            padded=reader.padded,
            positions=lambda row: reader.size(row) * reader.weight,
        )

    def lines_in(self, file: str) -> Iterator[Any]:
        return self.sources_in(file)

    def refuse_each(self, verb: str) -> None:
        """UsageError where each frame has a label of its own."""
        if self.task.each:
            raise UsageError(f"{verb}: each frame has a label of its own here. Use predict or probabilities.")

    # --- seeing ---------------------------------------------------------------------------------------------------

    def rested(self, row: np.ndarray, label: str | None, *, trusted: bool) -> Rested:
        """The likeliest label, or where there may be several all that are answered, or those in ``label``; and what
        each rests on; ``trusted`` measures how far that can be trusted.

        UsageError for an unknown label, and where each frame has its own.
        """
        self.refuse_each("explain")
        asked, reader, pieces = self._asked(label), self.text.source, self.pieces(row)
        heard = listen(self.network, reader, [row], device=self.device)
        said = heard.probabilities[0]
        answer = decided(said, several=self.text.several)[0]
        own = np.flatnonzero(answer).tolist() if self.text.several else [int(answer)]
        chosen = asked or own or [int(said[0].argmax())]
        lost, probabilities = rests(self.network, reader, row, pieces, chosen, device=self.device)
        return Rested(
            self.answer_of(said[0], answer).label,
            tuple(self.labels[one] for one in chosen),
            tuple(probabilities.tolist()),
            lost[:, pieces.places],
            None if heard.weights is None else heard.weights[0],
            self._trusted([row], chosen, asked=bool(asked)) if trusted else None,
        )

    def _asked(self, label: str | None) -> list[int]:
        """The numbers of the labels in ``label``, written as in the data."""
        if label is None:
            return []
        several = self.text.several and isinstance(label, str)
        names = (self.text.labels.split(label) if several else []) or [label]
        return [place for one in names if (place := self.place(one)) is not None]

    def _trusted(
        self, rows: Sequence[np.ndarray], labels: Sequence[int] | None = None, *, asked: bool = False
    ) -> dict[str, Measure]:
        held = [(row, self.pieces(row)) for row in rows]
        whole = ("a label asked for" if asked else "an answer", labels)
        return trust(self.network, self.text.source, held, part=self.part, whole=whole, device=self.device)

    def explain(self, source: Any, label: str | None = None, *, trusted: bool = True) -> Any:
        """The source, and of each place how much it was read (where the pooling is an attention) and what of the
        label's probability goes without the part around it.

        ``label`` asks for another answer than the likeliest. Where a source may have several labels each that it is
        answered with is shown, or each in ``label``, written as in the data. ``trusted`` takes parts out to say how far
        the picture can be trusted, over the labels that are shown. UsageError for an unknown label, and where each
        frame has its own.
        """
        (row,) = self.read("explain", [source])
        return self.picture(source, row, self.rested(row, label, trusted=trusted))

    # --- after training -------------------------------------------------------------------------------------------

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far pictures of what answers rest on can be trusted."""
        if self.task.each:
            return {}
        rows = self.read("explain", self.first(valid, TRUSTED))
        return {"faithfulness": {name: one._asdict() for name, one in self._trusted(rows).items()}}

    def first(self, part: Part, most: int) -> list[Any]:
        """The first sources of a table."""
        return [row.fields[0] for row in islice(part.rows(), most)]

    def promises(self, file: str | None, count: int) -> list[Promise]:
        rows = self.made_up(count) if file is None else list(islice(self.sources_in(file), count))
        if not rows:
            raise DataError(f"{file}: there is no {self.task.noun} in it.")
        nouns = f"{self.task.noun}s"
        return of_probabilities(self, rows, self.longer(rows[0]), nouns, several=self.text.several)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, nbest: int | None = None, batch: int | None = None) -> Iterator[Shown]:
        """One result a source of ``file``, in order: the label and its probability, or the ``nbest`` likeliest."""
        count = None if nbest is None else arguments.count("predict", "nbest", nbest)
        sources, number = self.sources_in(file), 0
        while held := list(islice(sources, ROUND)):
            if self.task.each:
                for source, one in zip(held, self.predict(held, batch=batch), strict=True):
                    yield Shown(" ".join(one), self.named(number, source) | {"labels": one})
                    number += 1
                continue
            for source, answer in zip(held, self.answers(held, batch=batch), strict=True):
                yield self._shown(number, source, answer, count)
                number += 1
        if not number:
            raise DataError(f"{file}: there is no {self.task.noun} in it.")

    def _shown(self, number: int, source: Any, one: Answer, nbest: int | None) -> Shown:
        shown = f"{one.label}\t{one.probability:.6f}"
        if nbest is not None:
            shown = "\n".join(f"{number}\t{probability:.6f}\t{label}" for label, probability in one.ranked[:nbest])
        tree = self.named(number, source) | {"label": one.label, "probability": one.probability}
        return Shown(shown, tree | {"probabilities": dict(one.ranked[:nbest])})

    def show_explain(self, line: str, *, target: str | None = None, untrusted: bool = False) -> Plotted:
        """``line`` is a file and after a # the number of the source in it, from 1: ``signals.ts#3``; ``target`` is a
        label; ``untrusted`` leaves out how far to trust the picture."""
        source = nth("explain", line, Named(self.task.noun, self.example), self.sources_in, self.asides)
        found: Plotted = self.explain(source, target, trusted=not untrusted)
        return found

    example = "signals.ts"
    """A file of sources, in messages."""


class FileLabelModel(ReadLabelModel):
    """A trained model of a `FileLabelTask`: a source is the path of a file, or an array."""

    task: FileLabelTask

    def read(self, verb: str, sources: Any) -> list[np.ndarray]:
        given = paths_or_arrays(verb, self.task.unit, self.task.noun, sources)
        found: list[np.ndarray] = self.text.source.read(given)
        return found
