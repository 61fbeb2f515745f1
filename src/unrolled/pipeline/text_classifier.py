"""A trained classifier: which label a text has, how sure that is, and which words it was read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError, known
from unrolled.base.protocol import END
from unrolled.data.parts import Part
from unrolled.data.table import listed
from unrolled.pipeline.label_tables import bootstrap, class_table, confused, confusion_picture
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.tasks.base import texts_of
from unrolled.tasks.classify import Classify
from unrolled.tasks.label_scores import confusion, decided, label_scores
from unrolled.workshop import arguments
from unrolled.workshop.deciding import answer, explain_label, trust
from unrolled.workshop.embedding import line_vectors
from unrolled.workshop.label_promises import check_promises
from unrolled.workshop.promises import Promise
from unrolled.workshop.seeing import check_line

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.scores import Score

ROUND = 4096
"""Lines that are read, sorted by length and answered together: memory does not grow with the file."""

TRUSTED = 100
"""Validation rows on which attention is compared with erasure, for the card."""


class Answer(NamedTuple):
    """What a text is said to be. With several labels ``label`` holds them, the separator between."""

    label: str
    probability: float  # of the label; with several, of just these (each for itself)
    ranked: list[tuple[str, float]]  # every label with its probability, the likeliest first


@TRAINED.register("classify")
class TextClassifier(Model):
    """A trained classifier: ``predict``, ``probabilities``, ``evaluate``, ``explain``, ``embed``."""

    task: Classify

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label, in the order of the columns of `probabilities`."""
        names: tuple[str, ...] = self.text.labels.names
        return names

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

    def answers(self, lines: Sequence[str], *, batch: int | None = None) -> list[Answer]:
        """Label, probability and all others of each text."""
        found = self.probabilities(lines, batch=batch)
        chosen = decided(found, several=self.text.several)
        return [self._answer(row, one) for row, one in zip(found, chosen, strict=True)]

    def _answer(self, said: np.ndarray, chosen: Any) -> Answer:
        ranked = [(self.labels[place], float(said[place])) for place in np.argsort(-said, kind="stable")]
        if not self.text.several:
            return Answer(self.labels[chosen], float(said[chosen]), ranked)
        names = [self.labels[place] for place in np.flatnonzero(chosen)]
        return Answer(self.text.labels.join(names), float(np.where(chosen, said, 1 - said).prod()), ranked)

    def embed(self, lines: Sequence[str]) -> np.ndarray:
        """Float32 [lines, size]: the vector of each text by which its label is told."""
        rows = self._symbols(arguments.texts("embed", "lines", lines))
        return line_vectors(self.network, [[*row, END] for row in rows], device=self.device)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, text: str, label: str | None = None, *, trusted: bool = True) -> Explanation:
        """Which words were read to answer ``text``: by attention where the pooling is one, else by erasure.

        ``label`` asks for another answer than the likeliest. ``trusted`` erases the words one by one to say how far
        attention can be trusted. DataError for an empty text, UsageError for an unknown label.
        """
        check_line(arguments.text("explain", "text", text))
        if label is not None and label not in self.text.labels:
            raise UsageError(f"explain: no label is called '{label}'. {known(label, self.labels)}")
        place = None if label is None else self.labels.index(label)
        line = " ".join(text.split("\n"))
        return explain_label(self.network, self.text, line, place, trusted=trusted, device=self.device)

    # --- numbers --------------------------------------------------------------------------------------------------

    def evaluate(self, texts: Sequence[str], labels: Sequence[str]) -> list[Score]:
        """Accuracy, macro-F1 and calibration error of the answers against ``labels``, each with its protocol."""
        texts, labels = arguments.pairs("evaluate", texts, labels, "labels")
        if not texts:
            raise DataError("evaluate: there is no text. Give at least one.")
        return label_scores(self.probabilities(texts), self._targets(labels), several=self.text.several)

    def _targets(self, labels: Sequence[str]) -> np.ndarray:
        """What the texts should be answered; DataError where training had none of the labels: another column."""
        if not any(name in self.text.labels for cell in labels for name in self.text.labels.split(cell)) and any(
            labels
        ):
            raise DataError(
                f"evaluate: '{next(filter(None, labels))[:40]}' and all others are no labels that training rows have "
                f"({listed(self.labels, 4)}). Which columns hold text and label? --columns 2,1"
            )
        found: np.ndarray = self.text.targets(labels)
        return found

    def confusion(self, texts: Sequence[str], labels: Sequence[str]) -> Explanation:
        """Which labels are taken for which, as a picture: rows are the right labels, columns the answers."""
        texts, labels = arguments.pairs("confusion", texts, labels, "labels")
        self._refuse_several("confusion")
        return self._confusion(self.probabilities(texts), self.text.targets(labels))

    def _confusion(self, said: np.ndarray, targets: np.ndarray) -> Explanation:
        counts = confusion(targets, decided(said, several=False), len(self.labels))
        shown = f"{int(counts.sum()):,} texts: right labels down, answers across"
        return confusion_picture(counts, self.labels, shown)

    def _refuse_several(self, verb: str) -> None:
        if self.text.several:
            raise UsageError(f"{verb}: a text may have several labels here, so none is taken for another.")

    # --- after training -------------------------------------------------------------------------------------------

    def test(self, part: Part) -> Tested:
        rows = texts_of(part)
        return Tested(self.evaluate([row[0] for row in rows], [row[1] for row in rows]), len(rows))

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

    def show_evaluate(self, part: Part, *, compare: Model | None = None, confusion: str | None = None) -> Evaluated:
        """Scores, a table by label, the commonest confusions; beside another model; ``confusion``: a picture's file."""
        rows = texts_of(part)
        texts, targets = [row[0] for row in rows], self._targets([row[1] for row in rows])
        said = self.probabilities(texts)
        answers = decided(said, several=self.text.several)
        tables = {"labels": ("By label", class_table(targets, answers, self.labels))}
        if not self.text.several:
            mistakes = confused(targets, answers, self.labels)
            tables |= {"confused": ("Most often confused", mistakes)} if mistakes else {}
        if confusion is not None:
            self._refuse_several("evaluate --confusion")
            self._confusion(said, targets).to(confusion)
        if compare is not None:
            tables["compare"] = self._beside(compare, texts, [row[1] for row in rows], answers, targets)
        return Evaluated(label_scores(said, targets, several=self.text.several), len(rows), tables=tables)

    def _beside(
        self, other: Model, texts: list[str], labels: list[str], answers: np.ndarray, targets: np.ndarray
    ) -> tuple[str, list[dict[str, Any]]]:
        if not isinstance(other, TextClassifier) or other.text.several != self.text.several:
            raise UsageError(f"evaluate: --compare is a model of the task '{other.kind}' that answers otherwise.")
        mine = (answers == targets) if not self.text.several else (answers == targets[:, :-1]).all(axis=1)
        said = decided(other.probabilities(texts), several=other.text.several)
        wanted = other.text.targets(labels)
        theirs = (said == wanted) if not other.text.several else (said == wanted[:, :-1]).all(axis=1)
        return "Against the other: paired bootstrap, 95 % interval", [bootstrap(mine, theirs)]
