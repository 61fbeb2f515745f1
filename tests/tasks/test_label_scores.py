"""Scores of labels by hand, and against scikit-learn and torchmetrics' definitions by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import classification_report

from unrolled.pipeline.label_tables import bootstrap, class_table, confused
from unrolled.tasks.label_scores import calibration_error, confusion, decided, label_scores


def values(scores):
    return {one.name: one.value for one in scores}


def test_scores_by_hand():
    said = np.array([[0.9, 0.1, 0.0], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    found = values(label_scores(said, np.array([0, 1, 1, 2]), several=False))
    # F1: label 0 has precision 1/2, recall 1; label 1 precision 1, recall 1/2; label 2 is right.
    assert found["accuracy"] == 0.75 and found["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    # Bins of 1/15: 0.9 alone, 0.6 alone, both 0.7 together: |1 - 0.9|, |0 - 0.6|, 2 · |1 - 0.7|.
    assert found["calibration_error"] == pytest.approx((0.1 + 0.6 + 0.6) / 4)


def test_a_row_of_an_unseen_label_is_wrong_and_said():
    said = np.array([[0.9, 0.1], [0.9, 0.1]])
    scores = label_scores(said, np.array([0, -1]), several=False)
    assert values(scores)["accuracy"] == 0.5 and "1 rows of labels unseen in training" in scores[0].protocol
    assert values(scores)["macro_f1"] == pytest.approx(2 / 3 / 2)
    both = np.array([[True, False, False], [True, False, True]])
    scores = label_scores(said, both, several=True)
    assert values(scores)["accuracy"] == 0.5 and values(scores)["micro_f1"] == pytest.approx(4 / 5)


def test_several_labels_by_hand():
    said = np.array([[0.9, 0.8, 0.1], [0.2, 0.6, 0.4]])
    targets = np.array([[True, True, False, False], [True, True, False, False]])
    found = values(label_scores(said, targets, several=True))
    assert found["accuracy"] == 0.5
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)  # the third label nobody has or is given
    assert found["micro_f1"] == pytest.approx(2 * 3 / (2 * 3 + 1))
    none = np.zeros((2, 4), dtype=bool)
    assert values(label_scores(said * 0.1, none, several=True))["macro_f1"] == 1.0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_tables_are_scikit_learns_report(pairs):
    targets, answers = np.array(pairs).T
    names = list("abcde")
    report = classification_report(
        targets, answers, labels=range(5), target_names=names, output_dict=True, zero_division=0
    )
    for row in class_table(targets, answers, names):
        one = report[row["label"]]
        assert (row["precision"], row["recall"], row["f1"], row["rows"]) == pytest.approx(
            (one["precision"], one["recall"], one["f1-score"], one["support"])
        )
    counts = confusion(targets, answers, 5)
    assert all(counts[i, j] == sum(pair == (i, j) for pair in pairs) for i in range(5) for j in range(5))
    mistakes = confused(targets, answers, names, most=100)
    assert sum(row["rows"] for row in mistakes) == (targets != answers).sum()
    assert [row["rows"] for row in mistakes] == sorted((row["rows"] for row in mistakes), reverse=True)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.booleans()), min_size=1, max_size=40))
def test_calibration_by_brute_force(rows):
    confidences, right = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    total = 0.0
    for place in range(15):
        inside = [row for row in rows if place / 15 < row[0] <= (place + 1) / 15]
        if inside:
            total += abs(sum(row[1] for row in inside) - sum(row[0] for row in inside))
    assert calibration_error(confidences, right) == pytest.approx(
        total / len(rows), abs=2e-2 if _on_a_border(rows) else 1e-9
    )


def _on_a_border(rows):
    return any(abs(row[0] * 15 - round(row[0] * 15)) < 1e-9 for row in rows)


def test_decisions():
    said = np.array([[0.5, 0.4], [0.1, 0.2]])
    assert decided(said, several=False).tolist() == [0, 1]
    assert decided(said, several=True).tolist() == [[True, False], [False, False]]


def test_the_bootstrap_sees_what_is_there():
    same = bootstrap(np.array([True, False] * 50), np.array([True, False] * 50))
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)
    better = bootstrap(np.ones(100, dtype=bool), np.array([True, True, False, True] * 25))
    assert better["difference"] == 0.25 and 0.1 < better["low"] < 0.25 < better["high"] < 0.4 and better["p"] == 0
