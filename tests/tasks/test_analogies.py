"""Files of questions and of rated pairs, and how answers are scored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from unrolled.base.errors import DataError
from unrolled.data.vectors import Vectors
from unrolled.tasks.analogies import Question, Rated, Space, analogy_scores, exam, likeness_scores

WORDS = ["man", "woman", "king", "queen", "apple"]
VECTORS = np.array([[1, 0, 0], [1, 1, 0], [2, 0, 2], [2, 2, 2], [0, -1, -3]], np.float32)
SPACE = Space(Vectors(WORDS, VECTORS))


def numbered(text):
    return [(f"q:{number}", line) for number, line in enumerate(text.split("\n"), 1)]


def test_questions_have_sections():
    found = exam(numbered(": family\nMan Woman King Queen\n\n: two words\na b c d\n"), lowercase=True)
    assert found.rated == []
    assert found.questions == [
        Question("family", ("man", "woman", "king", "queen")),
        Question("two words", ("a", "b", "c", "d")),
    ]


def test_two_words_and_a_number_are_a_rated_pair_and_other_lines_are_text():
    assert exam(numbered("King queen 8.5\nman\tapple\t-1"), lowercase=False).rated == [
        Rated(("King", "queen"), 8.5),
        Rated(("man", "apple"), -1.0),
    ]
    for text in ("a b c d\n", "some text\n: x", "", "two 2 words"):
        assert exam(numbered(text), lowercase=False) is None


@pytest.mark.parametrize("text, message", [
    (": a\nx y z w\nx y z", r"q:3: four words, or ': ' and the name of a section are expected, and there is 'x y z'"),
    ("x y 1\nx y z", "q:2: two words and a number are expected, and there is 'x y z'"),
    (": a\nx y 1", "q:2: four words"),
])  # fmt: skip
def test_a_line_of_another_kind_is_named(text, message):
    with pytest.raises(DataError, match=message):
        exam(numbered(text), lowercase=False)


def test_an_analogy_is_answered_by_direction():
    questions = [
        Question("royal", ("man", "woman", "king", "queen")),
        Question("royal", ("king", "queen", "man", "woman")),
        Question("fruit", ("man", "king", "woman", "apple")),
        Question("fruit", ("man", "king", "woman", "pear")),
    ]
    (score,), table = analogy_scores(SPACE, questions)
    assert score.value == pytest.approx(2 / 3) and "3 of 4 questions" in score.protocol
    assert table == [
        {"section": "royal", "asked": 2, "known": 2, "accuracy": 1.0},
        {"section": "fruit", "asked": 2, "known": 1, "accuracy": 0.0},
    ]
    with pytest.raises(DataError, match="of 1 questions none has four known words"):
        analogy_scores(SPACE, questions[3:])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 5)), min_size=3, max_size=20))
def test_likeness_is_spearmans(pairs):
    rated = [Rated((WORDS[one], WORDS[two]), float(rating)) for one, two, rating in pairs]
    cosines = [float(np.dot(SPACE.unit[one], SPACE.unit[two])) for one, two, _ in pairs]
    if len(set(cosines)) < 2 or len({one.rating for one in rated}) < 2:
        return
    wanted = spearmanr(cosines, [one.rating for one in rated]).statistic
    assert likeness_scores(SPACE, rated)[0].value == pytest.approx(wanted)


def test_unknown_words_have_a_nearest_spelling():
    assert [word for word, _ in SPACE.near(VECTORS[3], 2, [3])] == ["woman", "king"]
    assert len(SPACE.near(VECTORS[0], 99)) == 5
    with pytest.raises(DataError, match=r"neighbours: 'qeen' is none of the 5 words. Did you mean 'queen'\?"):
        SPACE.place("qeen", "neighbours")
    with pytest.raises(DataError, match="of 2 pairs 1 are of known words, and three are needed"):
        likeness_scores(SPACE, [Rated(("man", "pear"), 1.0), Rated(("man", "king"), 1.0)])
