"""How good answers with labels are: shares, F1 of each label, confusions, and whether probabilities can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.tasks.scores import Score

BINS = 15
"""Into so many parts of equal width [0, 1] is cut for the calibration error, as by Guo et al. 2017."""


class ByLabel(NamedTuple):
    """The answers of one label. A share without anything to take it of is 0, as scikit-learn has it."""

    label: str
    precision: float
    recall: float
    f1: float
    rows: int  # that have it


def decided(probabilities: np.ndarray, *, several: bool) -> np.ndarray:
    """The answers: int64 [rows], the likeliest label; with several labels bool [rows, labels], those from 0.5 on."""
    return probabilities >= 0.5 if several else probabilities.argmax(axis=1)


def accuracy(targets: np.ndarray, answers: np.ndarray) -> float:
    """The share of rows answered right; with several labels, wholly right."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(*_alike(targets, answers)))


def macro_f1(targets: np.ndarray, answers: np.ndarray) -> float:
    """The mean F1 of the labels that a row has or is answered by, each counting alike."""
    from sklearn.metrics import f1_score

    targets, answers = _alike(targets, answers)
    present = None
    if targets.ndim == 2:
        present = np.flatnonzero((targets | answers).any(axis=0))
        if not len(present):
            return 1.0  # no row has a label, and none was given
    return float(f1_score(targets, answers, average="macro", labels=present, zero_division=0))


def micro_f1(targets: np.ndarray, answers: np.ndarray) -> float:
    """F1 of all labels of all rows counted together."""
    from sklearn.metrics import f1_score

    return float(f1_score(*_alike(targets, answers), average="micro", zero_division=1))


def by_label(targets: np.ndarray, answers: np.ndarray, names: Sequence[str]) -> list[ByLabel]:
    """Precision, recall and F1 of each label in ``names``."""
    from sklearn.metrics import precision_recall_fscore_support

    targets, answers = _alike(targets, answers)
    numbers = precision_recall_fscore_support(targets, answers, labels=np.arange(len(names)), zero_division=0)
    return [
        ByLabel(name, float(precision), float(recall), float(f1), int(rows))
        for name, precision, recall, f1, rows in zip(names, *numbers, strict=True)
    ]


def confusion(targets: np.ndarray, answers: np.ndarray, count: int) -> np.ndarray:
    """int64 [labels, labels]: how many rows of the label of the row are answered by that of the column."""
    from sklearn.metrics import confusion_matrix

    seen = targets >= 0
    found: np.ndarray = confusion_matrix(targets[seen], answers[seen], labels=np.arange(count))
    return found


def calibration_error(confidences: np.ndarray, right: np.ndarray) -> float:
    """Σ_b n_b / n · |share right in b - mean confidence in b| over BINS bins (l, u] of confidence (Guo et al. 2017,
    arXiv:1706.04599, eq. 3)."""
    if not len(confidences):
        return 0.0
    places = np.clip(np.ceil(confidences * BINS).astype(int) - 1, 0, BINS - 1)
    gaps = np.bincount(places, weights=right.astype(float) - confidences, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidences))


def label_scores(probabilities: np.ndarray, targets: np.ndarray, *, several: bool) -> list[Score]:
    """Accuracy, macro-F1 and calibration error (and micro-F1 with several labels), each with its protocol.

    ``targets`` as `LabelledText.targets` gives them: a row of a label that training never had is wrong.
    """
    answers = decided(probabilities, several=several)
    strange = int((targets[:, -1] if several else targets < 0).sum())
    note = f"; {strange} rows of labels unseen in training count as wrong" if strange else ""
    whole = "share of rows, all labels right" if several else "share of rows"
    found = [
        Score("accuracy", accuracy(targets, answers), whole + note, True),
        Score("macro_f1", macro_f1(targets, answers), "mean F1 of the labels, scikit-learn" + note, True),
    ]
    if several:
        found.append(Score("micro_f1", micro_f1(targets, answers), "F1 of all labels together" + note, True))
        confidences = np.maximum(probabilities, 1 - probabilities).ravel()
        right = (answers == targets[:, :-1]).ravel()
        said = f"{BINS} bins, each label of each row"
    else:
        confidences, right = probabilities.max(axis=1), answers == targets
        said = f"{BINS} bins of the likeliest label's probability"
    error = calibration_error(confidences, right)
    return [*found, Score("calibration_error", error, f"{said}, Guo et al. 2017{note}", False)]


def _alike(targets: np.ndarray, answers: np.ndarray) -> tuple[Any, Any]:
    """Both with as many columns, where rows may have several labels: nobody answers with an unseen one."""
    if targets.ndim == 2 and targets.shape[1] > answers.shape[1]:
        answers = np.pad(answers, ((0, 0), (0, targets.shape[1] - answers.shape[1])))
    return targets, answers
