"""The classifier as scikit-learn's own tools use it."""

import random
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import unrolled
from unrolled.base.errors import DataError, UsageError

SETTINGS = {
    "text": {"tokenizer": {"kind": "word", "min_count": 1}},
    "model": {"embedding_size": 8, "encoder": {"cell": {"kind": "gru", "hidden_size": 8}}, "dropout": 0.1},
    "train": {"epochs": 8, "batch_sentences": 8, "learning_rate": 0.03, "precision": "float32"},
}


@pytest.fixture(scope="module")
def data():
    draw = random.Random(1)
    labels = np.array([draw.choice([3, 7]) for _ in range(160)])
    words = {3: ["three", "few"], 7: ["seven", "many"]}
    return [
        f"there are {draw.choice(words[one])} of them {' '.join(draw.choices('abcdefg', k=3))}" for one in labels
    ], labels


@pytest.fixture(scope="module")
def fitted(data):
    return unrolled.Classifier(settings=SETTINGS, seed=1).fit(*data)


def test_labels_keep_their_kind_and_probabilities_their_order(fitted, data):
    texts, labels = data
    assert fitted.classes_.tolist() == [3, 7] and is_classifier(fitted)
    found = fitted.predict(texts)
    assert found.dtype == labels.dtype and fitted.score(texts, labels) == np.mean(found == labels) > 0.97
    said = fitted.predict_proba(texts)
    assert said.sum(axis=1) == pytest.approx(np.ones(len(texts)))
    assert (fitted.classes_[said.argmax(axis=1)] == found).all()
    assert fitted.predict([]).shape == (0,)
    assert type(fitted.model_) is unrolled.TextClassifier


def test_a_clone_has_the_parameters_and_nothing_learnt(fitted, data):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() and not hasattr(copy, "model_")
    assert set(copy.get_params()) == {"preset", "settings", "pooling", "minutes", "seed", "out", "quiet"}
    with pytest.raises(NotFittedError, match="call fit"):
        copy.predict(["a"])
    assert (copy.fit(*data).predict_proba(data[0]) == fitted.predict_proba(data[0])).all()


def test_cross_validation_and_grid_search(data):
    texts, labels = np.array(data[0]), data[1]
    scores = cross_val_score(unrolled.Classifier(settings=SETTINGS, seed=1), texts, labels, cv=2)
    assert scores.shape == (2,) and scores.min() > 0.9
    searched = GridSearchCV(unrolled.Classifier(settings=SETTINGS, seed=1), {"pooling": ["mean", "max"]}, cv=2)
    searched.fit(texts, labels)
    assert searched.best_score_ > 0.9
    kind = searched.best_estimator_.model_.plan.settings["model"]["pooling"]["kind"]
    assert kind == searched.best_params_["pooling"]


def test_wrong_data_is_said(tmp_path):
    with pytest.raises(DataError, match="have the label 'a': there is nothing to tell apart"):
        unrolled.Classifier().fit([f"text {n}" for n in range(30)], ["a"] * 30)
    with pytest.raises(UsageError, match=r"2 texts and labels of shape \[1\]; give a label a text"):
        unrolled.Classifier().fit(["a", "b"], ["x"])
    with pytest.raises(DataError, match="written alike"):
        unrolled.Classifier().fit(["a", "b"], np.array([1, "1 "], dtype=object).astype(str))
    with pytest.raises(UsageError, match="a list of texts is wanted"):
        unrolled.Classifier().fit("ab", ["x", "y"])


def test_it_is_opened_when_it_is_asked_for():
    code = "import sys, unrolled, unrolled.cli.main; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
