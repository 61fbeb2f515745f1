"""Scores of tags: the quick F1 is nervaluate's, and numbers that can be counted by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.tasks.tag_scores import by_kind, counts, exact_f1, span_scores, word_scores
from unrolled.text.labelled import Labels
from unrolled.text.spans import Span, spans_of, tags_of
from unrolled.text.tagged import Tags

PART = st.tuples(st.integers(1, 3), st.sampled_from(["", "A", "B"]))


@st.composite
def pairs(draw):
    """Right and answered spans of some sentences of eight words."""
    found = ([], [])
    for _ in range(draw(st.integers(1, 4))):
        for side in found:
            spans, at = [], 0
            for length, label in draw(st.lists(PART, max_size=4)):
                if label and at + length <= 8:
                    spans.append(Span(at, at + length, label))
                at += length
            side.append(spans)
    return found


@settings(max_examples=60)
@given(pairs())
def test_exact_spans_are_counted_as_nervaluate_counts_them(made):
    scores = {score.name: score.value for score in span_scores(*made)} if any(map(any, made)) else {"f1": 0.0}
    assert exact_f1(*made) == pytest.approx(scores["f1"], abs=1e-12)
    right, answered, there = map(sum, zip(*counts(*made), strict=True))
    if answered and there:
        assert scores["precision"] == pytest.approx(right / answered) and scores["recall"] == pytest.approx(
            right / there
        )
    for row in by_kind(*made) if any(map(any, made)) else ():
        alone = [[[span for span in spans if span.label == row.kind] for spans in side] for side in made]
        assert row.f1 == pytest.approx(exact_f1(*alone)) and row.spans == sum(map(len, alone[0]))


def test_half_right_spans_by_hand():
    gold = [[Span(0, 2, "A"), Span(3, 4, "B"), Span(5, 6, "A")]]
    said = [[Span(0, 2, "A"), Span(3, 4, "A"), Span(5, 7, "A")]]
    scores = {score.name: score.value for score in span_scores(gold, said)}
    assert scores["f1"] == pytest.approx(1 / 3) and scores["exact_f1"] == pytest.approx(2 / 3)
    assert scores["partial_f1"] == pytest.approx(2.5 / 3) and scores["ent_type_f1"] == pytest.approx(2 / 3)
    assert counts(gold, said) == [(1, 3, 3)]


def test_words_by_hand():
    plain = Tags(Labels({"N": 2, "V": 1}), None, None)
    targets, answers = [["N", "V", "N"], ["X"]], [["N", "N", "N"], ["N"]]
    scores = {score.name: score.value for score in word_scores(targets, answers, plain)}
    assert scores["accuracy"] == 0.5 and scores["macro_f1"] == pytest.approx((2 * 2 / 6) / 3)
    spans = Tags(Labels({"A": 1}), "iob2", "bioes")
    assert [score.name for score in word_scores(targets, answers, spans)] == ["accuracy"]


def test_neighbouring_spans_of_one_kind_are_two_in_every_scheme():
    spans = [Span(0, 1, "A"), Span(1, 3, "A")]
    for scheme in ("iob1", "iob2", "bioes"):
        assert spans_of(tags_of(spans, 3, scheme), scheme) == spans
