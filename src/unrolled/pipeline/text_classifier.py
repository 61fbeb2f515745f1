"""A trained classifier: which label a text has, how sure that is, and which words it was read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.protocol import END
from unrolled.data.parts import Part
from unrolled.pipeline.labelling import Answer, LabelModel
from unrolled.pipeline.model import TRAINED, Shown
from unrolled.tasks.base import texts_of
from unrolled.tasks.classify import Classify
from unrolled.tasks.label_scores import decided
from unrolled.workshop import arguments
from unrolled.workshop.deciding import answer, explain_label, trust
from unrolled.workshop.embedding import line_vectors
from unrolled.workshop.label_promises import check_promises
from unrolled.workshop.promises import Promise
from unrolled.workshop.seeing import check_line

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

ROUND = 4096
"""Lines that are read, sorted by length and answered together: memory does not grow with the file."""

TRUSTED = 100
"""Validation rows on which attention is compared with erasure, for the card."""


@TRAINED.register("classify")
class TextClassifier(LabelModel):
    """A trained classifier: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``embed``."""

    task: Classify
    lacks = {
        "score": "it gives texts no probability, only labels theirs: predict --json",
        "generate": "it writes labels: train a language model",
    }

    # --- answers --------------------------------------------------------------------------------------------------

    def predict(self, lines: Sequence[str], *, batch: int | None = None) -> list[str]:
        """The label of each text; where a text may have several, all of 0.5 and more, the separator between."""
        return [one.label for one in self.answers(lines, batch=batch)]

    def probabilities(self, lines: Sequence[str], *, batch: int | None = None) -> np.ndarray:
        """Float32 [texts, labels]: what each label of each text is given. A text without symbols is one too."""
        lines = arguments.texts("predict", "lines", lines)
        most = None if batch is None else arguments.count("predict", "batch", batch)
        return answer(self.network, self._symbols(lines), len(self.labels), device=self.device, most=most).probabilities

    def _symbols(self, lines: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self.text.tokenizer.encode_ids([" ".join(line.split("\n")) for line in lines])
        return found

    def said(self, inputs: Sequence[Any]) -> np.ndarray:
        return self.probabilities(inputs)

    def pairs(self, verb: str, rows: Any, labels: Any) -> tuple[Sequence[str], list[str]]:
        return arguments.pairs(verb, rows, labels, "labels")

    def answers(self, lines: Sequence[str], *, batch: int | None = None) -> list[Answer]:
        """Label, probability and all others of each text."""
        found = self.probabilities(lines, batch=batch)
        chosen = decided(found, several=self.text.several)
        return [self.answer_of(row, one) for row, one in zip(found, chosen, strict=True)]

    def embed(self, lines: Sequence[str]) -> np.ndarray:
        """Float32 [lines, size]: the vector of each text by which its label is told."""
        rows = self._symbols(arguments.texts("embed", "lines", lines))
        return line_vectors(self.network, [[*row, END] for row in rows], device=self.device)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, text: str, label: str | None = None, *, trusted: bool = True) -> Explanation:
        """Which words were read to answer ``text``: by attention where the pooling is one, else by erasure.

        ``label`` asks for another answer than the likeliest. Where a text may have several there is a row for each that
        it is answered with, or for each in ``label``, written as in the data. ``trusted`` erases the words one by one
        to say how far attention can be trusted, over the labels that are shown. DataError for an empty text, UsageError
        for an unknown label.
        """
        check_line(arguments.text("explain", "text", text))
        places = None
        if label is not None:
            asked = (self.text.labels.split(label) if self.text.several else []) or [label]
            places = [place for one in asked if (place := self.place(one)) is not None]
        line = " ".join(text.split("\n"))
        return explain_label(self.network, self.text, line, places, trusted=trusted, device=self.device)

    # --- after training -------------------------------------------------------------------------------------------

    def promises(self, file: str | None, count: int) -> list[Promise]:
        from unrolled.data.lines import lines_of

        return check_promises(self, list(islice(lines_of(file), count)) if file else None, count)

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far the attention can be trusted, where there is attention."""
        lines = [" ".join(row[0].split("\n")) for row in texts_of(valid, TRUSTED)]
        found = trust(self.network, self.text, lines, device=self.device)
        return {"faithfulness": found and {name: one._asdict() for name, one in found.items()}}

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, nbest: int | None = None, batch: int | None = None) -> Iterator[Shown]:
        """One result a line of ``file``, in order: the label and its probability, or the ``nbest`` likeliest."""
        from unrolled.data.lines import lines_of

        count = None if nbest is None else arguments.count("predict", "nbest", nbest)
        lines, number = iter(lines_of(file)), 0
        while held := list(islice(lines, ROUND)):
            for line, one in zip(held, self.answers(held, batch=batch), strict=True):
                yield self._shown(number, line, one, count)
                number += 1

    def _shown(self, number: int, line: str, one: Answer, nbest: int | None) -> Shown:
        shown = f"{one.label}\t{one.probability:.6f}"
        if nbest is not None:
            shown = "\n".join(f"{number}\t{probability:.6f}\t{label}" for label, probability in one.ranked[:nbest])
        tree: dict[str, Any] = {"line": number, "text": line, "label": one.label, "probability": one.probability}
        tree["probabilities"] = dict(one.ranked[:nbest])
        remark = () if line.strip() else ("the line is empty: the label is what the model says of no text at all",)
        return Shown(shown, tree, remark)

    def show_explain(self, line: str, *, target: str | None = None, untrusted: bool = False) -> Explanation:
        """As ``explain``, ``target`` the label; ``untrusted`` leaves out how far to trust it."""
        return self.explain(line, target, trusted=not untrusted)
