"""A tagger's numbers as rows of tables: tag by tag, confusion by confusion, against another model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.pipeline.label_tables import bootstrap, class_table, confused, confusion_picture
from unrolled.tasks.label_scores import confusion
from unrolled.tasks.tag_scores import Spans, counts, f1_of

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

Sentences = Sequence[Sequence[str]]


class TagTable:
    """Right tags and answers, word by word."""

    def __init__(self, targets: Sentences, answers: Sentences) -> None:
        self.names = sorted({tag for rows in (targets, answers) for row in rows for tag in row})
        numbers = {name: number for number, name in enumerate(self.names)}
        self.targets, self.answers = (
            np.array([numbers[tag] for row in rows for tag in row], dtype=np.int64) for rows in (targets, answers)
        )

    def by_tag(self) -> list[dict[str, Any]]:
        """Precision, recall, F1 and words of each tag."""
        rows = class_table(self.targets, self.answers, self.names)
        return [
            {"tag": row["label"], **{name: row[name] for name in ("precision", "recall", "f1")}, "words": row["rows"]}
            for row in rows
        ]

    def confused(self) -> list[dict[str, Any]]:
        """The commonest mistakes."""
        rows = confused(self.targets, self.answers, self.names)
        return [{"tag": row["label"], "answer": row["answer"], "words": row["rows"]} for row in rows]

    def picture(self) -> Explanation:
        """Which tags are taken for which: rows are the right tags, columns the answers."""
        found = confusion(self.targets, self.answers, len(self.names))
        return confusion_picture(found, self.names, f"{len(self.targets):,} words: right tags down, answers across")


def compare_words(targets: Sentences, mine: Sentences, theirs: Sentences) -> dict[str, Any]:
    """Accuracy of two taggers on the same sentences."""

    def share(rows: np.ndarray) -> float:
        return float(rows[:, 0].sum() / max(rows[:, 1].sum(), 1))

    return bootstrap(_right(targets, mine), _right(targets, theirs), "accuracy", share)


def _right(targets: Sentences, answers: Sentences) -> np.ndarray:
    """int64 [sentences, 2]: right words, and words."""
    pairs = zip(targets, answers, strict=True)
    return np.array([(sum(map(str.__eq__, gold, said)), len(gold)) for gold, said in pairs])


def compare_spans(targets: Spans, mine: Spans, theirs: Spans) -> dict[str, Any]:
    """F1 of the exact spans of two taggers on the same sentences."""

    def f1(rows: np.ndarray) -> float:
        return f1_of(*rows.sum(axis=0).tolist())

    return bootstrap(np.array(counts(targets, mine)), np.array(counts(targets, theirs)), "f1", f1)
