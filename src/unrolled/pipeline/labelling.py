"""What trained models with labels share: answers with their probabilities, scores, tables, confusions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError, known
from unrolled.data.label_folders import FORMAT
from unrolled.data.parts import Part
from unrolled.data.table import listed
from unrolled.pipeline.label_tables import bootstrap, class_table, confused, confusion_picture
from unrolled.pipeline.model import Evaluated, Model, Tested
from unrolled.tasks.base import texts_of
from unrolled.tasks.label_scores import confusion, decided, label_scores

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.scores import Score


class Answer(NamedTuple):
    """What a row is said to be. With several labels ``label`` holds them, the separator between."""

    label: str
    probability: float  # of the label; with several, of just these (each for itself)
    ranked: list[tuple[str, float]]  # every label with its probability, the likeliest first


class LabelModel(Model):
    """A trained model that answers with labels. Its text side has ``labels``, ``several`` and ``targets``."""

    columns = ("text", "label")
    """What the columns of its rows are called in messages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label, in the order of the columns of `probabilities`."""
        names: tuple[str, ...] = self.text.labels.names
        return names

    @abstractmethod
    def said(self, inputs: Sequence[Any]) -> np.ndarray:
        """Float32 [answers, labels]: what each label is given, of every row or every position of the rows."""

    @abstractmethod
    def pairs(self, verb: str, rows: Any, labels: Any) -> tuple[Sequence[Any], list[str]]:
        """Rows and as many labels, of the kinds that they must be; UsageError for others."""

    def place(self, label: str | None) -> int | None:
        """The number of a label that was asked for; UsageError for an unknown one."""
        if label is not None and not isinstance(label, str):
            raise UsageError(f"explain: no label is called {label!r:.60}. {known(str(label), self.labels)}")
        if label is not None and label not in self.text.labels:
            raise UsageError(f"explain: no label is called '{label}'. {known(label, self.labels)}")
        return None if label is None else self.labels.index(label)

    def answer_of(self, said: np.ndarray, chosen: Any) -> Answer:
        ranked = [(self.labels[place], float(said[place])) for place in np.argsort(-said, kind="stable")]
        if not self.text.several:
            return Answer(self.labels[chosen], float(said[chosen]), ranked)
        names = [self.labels[place] for place in np.flatnonzero(chosen)]
        return Answer(self.text.labels.join(names), float(np.where(chosen, said, 1 - said).prod()), ranked)

    def _targets(self, labels: Sequence[str], part: Part | None = None) -> np.ndarray:
        """What the rows should be answered; DataError where training had none of the labels: another column."""
        if not any(name in self.text.labels for cell in labels for name in self.text.labels.split(cell)) and any(
            labels
        ):
            cure = f"Which columns hold {' and '.join(self.columns)}? --columns 2,1"
            if part is not None and part.table.format == FORMAT:
                cure = "Call the folders as the labels are called."
            elif part is not None and part.table.root:
                cure = "Is another column that of the labels? Call it 'label', or give a table of the two."
            raise DataError(
                f"evaluate: '{next(filter(None, labels))[:40]}' and all others are no labels that training rows have "
                f"({listed(self.labels, 8)}). {cure}"
            )
        found: np.ndarray = self.text.targets(labels)
        return found

    def evaluate(self, rows: Sequence[Any], labels: Sequence[str]) -> list[Score]:
        """Accuracy, macro-F1 and calibration error of the answers against ``labels``, each with its protocol."""
        rows, labels = self.pairs("evaluate", rows, labels)
        if not rows:
            raise DataError(f"evaluate: there is no {self.task.noun}. Give at least one.")
        return label_scores(self.said(rows), self._targets(labels), several=self.text.several)

    def confusion(self, rows: Sequence[Any], labels: Sequence[str]) -> Explanation:
        """Which labels are taken for which, as a picture: rows are the right labels, columns the answers."""
        rows, labels = self.pairs("confusion", rows, labels)
        self._refuse_several("confusion")
        return self._confusion(self.said(rows), self.text.targets(labels))

    def _confusion(self, said: np.ndarray, targets: np.ndarray) -> Explanation:
        counts = confusion(targets, decided(said, several=False), len(self.labels))
        shown = f"{int(counts.sum()):,} {self.task.noun}s: right labels down, answers across"
        return confusion_picture(counts, self.labels, shown)

    def _refuse_several(self, verb: str) -> None:
        if self.text.several:
            raise UsageError(f"{verb}: a row may have several labels here, so none is taken for another.")

    def test(self, part: Part) -> Tested:
        inputs, labels = self.rows_of(part)
        return Tested(
            label_scores(self.said(inputs), self._targets(labels, part), several=self.text.several), len(labels)
        )

    def rows_of(self, part: Part) -> tuple[Sequence[Any], list[str]]:
        """What `said` takes of the rows, and their labels."""
        rows = texts_of(part)
        return [row[0] for row in rows], [row[1] for row in rows]

    def show_evaluate(self, part: Part, *, compare: Model | None = None, confusion: str | None = None) -> Evaluated:
        """Scores, a table by label, the commonest confusions; beside another model; ``confusion``: a picture's file."""
        inputs, labels = self.rows_of(part)
        targets, said = self._targets(labels, part), self.said(inputs)
        answers = decided(said, several=self.text.several)
        tables = {"labels": ("By label", class_table(targets, answers, self.labels))}
        if not self.text.several:
            mistakes = confused(targets, answers, self.labels)
            tables |= {"confused": ("Most often confused", mistakes)} if mistakes else {}
        if confusion is not None:
            self._refuse_several("evaluate --confusion")
            self._confusion(said, targets).to(confusion)
        if compare is not None:
            tables["compare"] = self._beside(compare, inputs, labels, answers, targets)
        return Evaluated(label_scores(said, targets, several=self.text.several), len(labels), tables=tables)

    def _beside(
        self, other: Model, inputs: Sequence[Any], labels: list[str], answers: np.ndarray, targets: np.ndarray
    ) -> tuple[str, list[dict[str, Any]]]:
        if type(other) is not type(self) or other.text.several != self.text.several:
            raise UsageError(f"evaluate: --compare is a model of the task '{other.kind}' that answers otherwise.")
        mine = (answers == targets) if not self.text.several else (answers == targets[:, :-1]).all(axis=1)
        said = decided(other.said(inputs), several=other.text.several)
        wanted = other.text.targets(labels)
        theirs = (said == wanted) if not other.text.several else (said == wanted[:, :-1]).all(axis=1)
        return "Against the other: paired bootstrap, 95 % interval", [bootstrap(mine, theirs)]
