"""A reader's numbers: scores with their protocol beside the commonest answer, and tables by kind of question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.data.questions import Question
from unrolled.pipeline.label_tables import confused
from unrolled.pipeline.labelling import Answer
from unrolled.tasks.label_scores import BINS, calibration_error
from unrolled.tasks.reading_scores import exact_match, token_f1
from unrolled.tasks.scores import Score
from unrolled.text.passages import Passage, ReadText
from unrolled.workshop.reading import Said, Support, support


class Judged(NamedTuple):
    """Answers held against the right ones."""

    text: ReadText
    rows: Sequence[Question]
    answers: Sequence[Answer]
    right: np.ndarray  # float64 [rows]: 1 where an answer is right (of spans exact match)
    overlap: np.ndarray  # float64 [rows]: F1 of words, of spans
    plain: np.ndarray  # float64 [rows]: 1 where the commonest answer is right
    plain_overlap: np.ndarray
    read: Support | None

    @property
    def measure(self) -> str:
        return "exact_match" if self.text.answering == "span" else "accuracy"

    @property
    def _baseline(self) -> str:
        if self.text.answering == "anonymous":
            return "the entity that stands most often in the document"
        if not self.text.commonest:
            return "never an answer, as most often in training rows"
        return f"always '{self.text.commonest[:30]}', the commonest answer of training rows"

    def scores(self) -> list[Score]:
        """Each with its protocol."""
        several = ", the best of several answers" if any(len(row.answers) > 1 for row in self.rows) else ""
        found = []
        if self.text.answering == "span":
            found += self._of_spans(several)
        else:
            strange = sum(self.text.answering == "entity" and row.answer not in self.text.labels for row in self.rows)
            note = f"; {strange} answers unseen in training count as wrong" if strange else ""
            found.append(Score("accuracy", float(self.right.mean()), f"share of questions{several}{note}", True))
            sure = np.array([one.probability for one in self.answers])
            error = calibration_error(sure, self.right)
            said = f"{BINS} bins of the answer's probability, Guo et al. 2017"
            found.append(Score("calibration_error", error, said, False))
        found.append(Score(f"baseline_{self.measure}", float(self.plain.mean()), self._baseline, True))
        if self.read is not None:
            asked = f"{self.read.questions:,} questions with supporting sentences"
            chance = f"these hold {self.read.chance:.3f} of the words"
            found.append(
                Score(
                    "attention_on_support", self.read.share, f"share of the attention on words, {asked}; {chance}", True
                )
            )
            found.append(Score("support_read_most", self.read.top, f"the most read sentence is one, {asked}", True))
        return found

    def _of_spans(self, several: str) -> list[Score]:
        """Exact match and F1, and where some questions have no answer also of the two kinds of questions alone."""
        nowhere = np.array([row.nowhere for row in self.rows])
        never = "" if self.text.nowhere else "; this model always gives one"
        unanswered = f", {nowhere.sum():,} questions have no answer{never}" if nowhere.any() else ""
        said = f"SQuAD {'2.0' if nowhere.any() else '1.1'}, normalised{several}"
        found = [
            Score("exact_match", float(self.right.mean()), f"{said}{unanswered}", True),
            Score("f1", float(self.overlap.mean()), f"{said}, of words, the mean over questions{unanswered}", True),
        ]
        if nowhere.any():
            found.append(
                Score("no_answer", float(self.right[nowhere].mean()), f"{said}, those without an answer", True)
            )
        if nowhere.any() and not nowhere.all():
            for name, values in (("answered_exact_match", self.right), ("answered_f1", self.overlap)):
                found.append(Score(name, float(values[~nowhere].mean()), f"{said}, those with an answer", True))
        return [*found, Score("baseline_f1", float(self.plain_overlap.mean()), self._baseline, True)]

    def tables(self) -> dict[str, tuple[str, list[dict[str, Any]]]]:
        """By kind of question, where rows say one; the commonest mistakes, where answers are of a list."""
        tables: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        kinds = sorted({row.kind for row in self.rows})
        if kinds != [""]:
            found = []
            for kind in kinds:
                held = np.array([row.kind == kind for row in self.rows])
                line: dict[str, Any] = {"kind": kind, "questions": int(held.sum())}
                line[self.measure] = float(self.right[held].mean())
                if self.text.answering == "span":
                    line["f1"] = float(self.overlap[held].mean())
                found.append(line | {"baseline": float(self.plain[held].mean())})
            tables["kinds"] = "By kind of question", found
        if self.text.answering == "entity":
            labels = self.text.labels
            wanted = np.array([labels.number(row.answer) for row in self.rows])
            given = np.array([labels.number(one.label) for one in self.answers])
            mistakes = confused(wanted, given, labels.names)
            tables |= {"confused": ("Most often confused", mistakes)} if mistakes else {}
        return tables


def judge(
    text: ReadText,
    rows: Sequence[Question],
    passages: Sequence[Passage],
    said: Sequence[Said],
    answers: Sequence[Answer],
) -> Judged:
    """Hold answers against the rows' own."""
    spans = text.answering == "span"
    plain = [_plain(text, passage) for passage in passages]

    def wanted(row: Question) -> tuple[str, ...]:
        return row.answers or ("",)

    def right(given: str, row: Question) -> float:
        if spans:
            return exact_match(given, wanted(row))
        return float(text.called_as(given) in map(text.called_as, row.answers) if text.slots else given in row.answers)

    def judged(texts: Sequence[str]) -> np.ndarray:
        return np.array([right(given, row) for given, row in zip(texts, rows, strict=True)])

    def overlap(texts: Sequence[str]) -> np.ndarray:
        return np.array(
            [token_f1(given, wanted(row)) if spans else 0.0 for given, row in zip(texts, rows, strict=True)]
        )

    labels = [one.label for one in answers]
    read = support([row.document for row in rows], passages, said, [row.support for row in rows])
    return Judged(text, rows, answers, judged(labels), overlap(labels), judged(plain), overlap(plain), read)


def _plain(text: ReadText, passage: Passage) -> str:
    """What would be answered without reading."""
    if text.answering != "anonymous":
        return text.commonest
    first = text.tokenizer.vocabulary_size
    counts = Counter(symbol - first for symbol in passage.ids if symbol >= first)
    return passage.entities[counts.most_common(1)[0][0]] if counts else ""
