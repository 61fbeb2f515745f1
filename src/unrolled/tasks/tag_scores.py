"""How good tags are: the share of words that have the right one, and of spans, which are found exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.tasks.scores import Score
from unrolled.text.spans import Span
from unrolled.text.tagged import Tags

Spans = Sequence[Sequence[Span]]
"""The spans of each sentence."""

SCHEMATA = {
    "strict": "words and kind right",
    "exact": "words right, of whatever kind",
    "partial": "words overlap: half, right: whole",
    "ent_type": "kind right, words overlap",
}
"""The ways to count of SemEval 2013 task 9.1, as nervaluate names them."""


def word_scores(targets: Sequence[Sequence[str]], answers: Sequence[Sequence[str]], known: Tags) -> list[Score]:
    """The share of words with the right tag, and where tags are each word's own the mean F1 of the tags. A tag that
    training never had is a wrong answer."""
    from unrolled.tasks.label_scores import accuracy, macro_f1

    numbers = {
        tag: number
        for number, tag in enumerate(sorted({tag for rows in (targets, answers) for row in rows for tag in row}))
    }
    right, said = (np.array([numbers[tag] for row in rows for tag in row]) for rows in (targets, answers))
    whole = f"share of {len(right):,} words"
    found = [Score("accuracy", accuracy(right, said), whole, True)]
    if known.scheme is not None:
        return found
    return [
        *found,
        Score("macro_f1", macro_f1(right, said), f"mean F1 of the tags, {len(right):,} words, scikit-learn", True),
    ]


class ByKind(NamedTuple):
    """The exact spans of one kind. A share without anything to take it of is 0."""

    kind: str
    precision: float
    recall: float
    f1: float
    spans: int  # that there are


def counts(targets: Spans, answers: Spans) -> list[tuple[int, int, int]]:
    """Of each sentence: spans right in words and kind, spans answered, spans there are."""
    return [(len(set(gold) & set(said)), len(said), len(gold)) for gold, said in zip(targets, answers, strict=True)]


def f1_of(right: float, answered: float, there: float) -> float:
    """2 · right / (answered + there), 0 where there is nothing."""
    return 2 * right / (answered + there) if answered + there else 0.0


def exact_f1(targets: Spans, answers: Spans) -> float:
    """F1 of the spans of all sentences together, as conlleval counts: right is what is right in words and kind."""
    right, answered, there = (sum(column) for column in zip(*counts(targets, answers), strict=True))
    return f1_of(right, answered, there)


def span_scores(targets: Spans, answers: Spans) -> list[Score]:
    """F1 (micro) in each of SCHEMATA, precision and recall of the strict one; by nervaluate."""
    overall = _evaluated(targets, answers)["overall"]
    there = sum(map(len, targets))
    said = f"of {there:,} spans, nervaluate, all kinds together"
    strict = overall["strict"]
    found = [
        Score("f1", float(strict.f1), f"{SCHEMATA['strict']}; {said}", True),
        Score("precision", float(strict.precision), f"{SCHEMATA['strict']}; {said}", True),
        Score("recall", float(strict.recall), f"{SCHEMATA['strict']}; {said}", True),
    ]
    for name in ("exact", "partial", "ent_type"):
        found.append(Score(f"{name}_f1", float(overall[name].f1), f"{SCHEMATA[name]}; {said}", True))
    return found


def by_kind(targets: Spans, answers: Spans) -> list[ByKind]:
    """The strict scores of each kind that there is or that was answered, by nervaluate."""
    found = _evaluated(targets, answers)["entities"]
    there = Counter(span.label for row in targets for span in row)
    rows = []
    for kind in sorted(found):
        one = found[kind]["strict"]
        rows.append(ByKind(kind, float(one.precision), float(one.recall), float(one.f1), there[kind]))
    return rows


def _evaluated(targets: Spans, answers: Spans) -> Any:
    from nervaluate import Evaluator

    kinds = sorted({span.label for rows in (targets, answers) for row in rows for span in row})
    return Evaluator(_entities(targets), _entities(answers), tags=kinds, loader="dict").evaluate()


def _entities(sentences: Spans) -> list[list[dict[str, Any]]]:
    """nervaluate's ends are the last words, not those behind."""
    return [[{"label": span.label, "start": span.start, "end": span.stop - 1} for span in row] for row in sentences]
