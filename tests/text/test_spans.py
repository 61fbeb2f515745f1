"""Spans written as tags and read back, and what each scheme forbids, named with its place."""

import re
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.text.spans import Scheme, Span, allowed, converted, spans_of, tags_of

SCHEMES: tuple[Scheme, ...] = ("iob1", "iob2", "bioes")

# One sentence: A of two words, A of one, B of one, two outside, A of three.
WRITTEN: dict[Scheme, str] = {
    "iob1": "I-A I-A B-A I-B O O I-A I-A I-A",
    "iob2": "B-A I-A B-A B-B O O B-A I-A I-A",
    "bioes": "B-A E-A S-A S-B O O B-A I-A E-A",
}
SPANS = [Span(0, 2, "A"), Span(2, 3, "A"), Span(3, 4, "B"), Span(6, 9, "A")]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_as_its_papers_write_it(scheme: Scheme) -> None:
    assert tags_of(SPANS, 9, scheme) == WRITTEN[scheme].split()
    assert spans_of(WRITTEN[scheme].split(), scheme) == SPANS
    for other in SCHEMES:
        assert converted(WRITTEN[scheme].split(), scheme, other) == WRITTEN[other].split()


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[Span], int]:
    spans, at = [], 0
    for gap, size, label in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from("AB")))):
        spans.append(Span(at + gap, at + gap + size, label))
        at += gap + size
    return spans, at + draw(st.integers(0, 2))


@given(sentences(), st.sampled_from(SCHEMES))
def test_tags_hold_every_span(sentence: tuple[list[Span], int], scheme: Scheme) -> None:
    spans, length = sentence
    assert spans_of(tags_of(reversed(spans), length, scheme), scheme) == spans


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_pairs_that_are_allowed_are_those_that_spans_make(scheme: Scheme) -> None:
    """Three spans of up to four words in every way give every pair of tags that may be neighbours."""
    marks = "BIES" if scheme == "bioes" else "BI"
    tags = ["O", *(f"{mark}-{label}" for mark in marks for label in "AB")]
    made = set()
    for sizes in product(
        [(0, 1, "A"), (1, 1, "A"), (1, 1, "B"), (1, 2, "A"), (1, 4, "A"), (1, 4, "B"), (1, 2, "B")], repeat=3
    ):
        spans, at = [], 0
        for real, size, label in sizes:
            spans += [Span(at, at + size, label)] * real
            at += size
        written = ["O", *tags_of(spans, at, scheme), "O"]
        made |= set(pairwise(written))
    assert {pair for pair in product(tags, repeat=2) if allowed(*pair, scheme)} == made


@pytest.mark.parametrize(
    "scheme, tags, message",
    [
        ("iob2", "O I-A", "f:2: I-A after O, which iob2 does not allow"),
        ("iob2", "B-A I-B", "f:2: I-B after B-A, which"),
        ("iob2", "I-A", "f:1: I-A after the beginning"),
        ("iob1", "I-A B-B", "f:2: B-B after I-A, which iob1"),
        ("bioes", "B-A O", "f:2: O after B-A, which bioes"),
        ("bioes", "O B-A", "f:2: the sentence ends after B-A, which"),
        ("bioes", "S-A E-A", "f:2: E-A after S-A"),
        ("iob2", "O S-A", "f:2: S-A after O, which iob2"),
        ("iob2", "O A", "f:2: A after O"),
        ("iob2", "B-", "f:1: B- after the beginning"),
    ],
)
def test_what_a_scheme_forbids_is_named(scheme: Scheme, tags: str, message: str) -> None:
    places = [f"f:{number + 1}" for number in range(len(tags.split()))]
    with pytest.raises(DataError, match=re.escape(message)):
        spans_of(tags.split(), scheme, places)


def test_what_tags_cannot_say_is_refused() -> None:
    with pytest.raises(DataError, match="begins before the span in front of it ends, at 2"):
        tags_of([Span(0, 2, "A"), Span(1, 3, "B")], 3, "iob2")
    with pytest.raises(DataError, match="does not lie in a sentence of 3 words"):
        tags_of([Span(2, 4, "A")], 3, "iob2")
    with pytest.raises(DataError, match="word 1: I-A after the beginning"):
        spans_of(["I-A"], "iob2")
    with pytest.raises(UsageError, match=r"no scheme of tags is called 'bioe'\. Did you mean 'bioes'"):
        spans_of([], "bioe")  # type: ignore[arg-type]
