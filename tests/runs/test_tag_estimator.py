"""The tagger as scikit-learn's own tools use it."""

import random

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import unrolled
from unrolled.base.errors import DataError, UsageError

SETTINGS = {
    "model": {
        "embedding_size": 8,
        "character_size": 6,
        "character_hidden_size": 8,
        "encoder": {"cell": {"kind": "gru", "hidden_size": 8}},
        "dropout": 0.1,
    },
    "train": {"epochs": 6, "batch_sentences": 8, "learning_rate": 0.03, "precision": "float32"},
}


@pytest.fixture(scope="module")
def data():
    """Numbers and words; a city is what follows "to" (its tag a span)."""
    draw = random.Random(1)
    words, tags = [], []
    for _ in range(120):
        city = ["New", "York"] if draw.random() < 0.5 else ["Rome"]
        words.append([draw.choice(["go", "fly", "walk"]), "to", *city, str(draw.randint(1, 99))])
        tags.append(["O", "O", "B-city", *["I-city"] * (len(city) - 1), "O"])
    return words, tags


def test_fit_predict_score_and_clone(data):
    fitted = unrolled.Tagger(settings=SETTINGS, seed=1).fit(*data)
    assert fitted.kinds_ == ("city",) and type(fitted.model_) is unrolled.TextTagger
    assert fitted.score(*data) > 0.97
    assert fitted.predict([["fly", "to", "New", "York", "7"], []]) == [["O", "O", "B-city", "I-city", "O"], []]
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() and not hasattr(copy, "model_")
    with pytest.raises(NotFittedError, match="call fit"):
        copy.predict([["a"]])


def test_cross_validation_and_a_grid(data):
    scores = cross_val_score(unrolled.Tagger(settings=SETTINGS, seed=1), *data, cv=2)
    assert scores.shape == (2,) and scores.min() > 0.95
    searched = GridSearchCV(unrolled.Tagger(settings=SETTINGS, seed=1), {"characters": ["none"], "crf": [False]}, cv=2)
    searched.fit(*data)
    chosen = searched.best_estimator_.model_.plan.settings["model"]
    assert searched.best_score_ > 0.9 and chosen["characters"] == "none" and chosen["crf"] is False


def test_wrong_data_is_said(data):
    with pytest.raises(UsageError, match="sentence 1 has 2 words and 1 tags; give one a word"):
        unrolled.Tagger().fit([["a"], ["b", "c"]], [["X"], ["Y"]])
    with pytest.raises(UsageError, match=r"X is the text|sentences is the text 'ab'"):
        unrolled.Tagger().fit("ab", ["x", "y"])
    with pytest.raises(DataError, match=r"^fit: X\[\d\], word 2: I-x after O"):
        unrolled.Tagger().fit([["a", "b"], ["c", "d"]] * 9, [["O", "I-x"], ["B-x", "I-x"]] * 9)


def test_a_sentence_without_words_counts_where_an_error_says_which():
    sentences, tags = [["a", "b"], [], ["c", "d"]] * 9, [["B-x", "I-x"], [], ["O", "I-x"]] * 9
    with pytest.raises(DataError, match=r"^fit: X\[2\], word 2: I-x after O"):
        unrolled.Tagger().fit(sentences, tags)
