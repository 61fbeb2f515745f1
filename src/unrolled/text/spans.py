"""Spans of words as tags, one a word, and back: IOB2, IOB1 and BIOES, each as the pairs of tags that it allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from unrolled.base.errors import DataError, UsageError, known

OUTSIDE = "O"

Scheme = Literal["iob1", "iob2", "bioes"]
"""How a span of the kind X is written (Ramshaw and Marcus 1995; Tjong Kim Sang and Veenstra 1999).

``iob2`` (BIO): B-X, then I-X. ``iob1``: I-X throughout; B-X only where a span of X follows one of X at once.
``bioes``: B-X, I-X …, E-X; S-X for a span of one word.
"""


class Span(NamedTuple):
    """Words ``start`` to before ``stop`` of a sentence, counted from 0, and what they are."""

    start: int
    stop: int
    label: str


def spans_of(tags: Sequence[str], scheme: Scheme, places: Sequence[str] = ()) -> list[Span]:
    """The spans that a sentence's ``tags`` write, by their start.

    DataError names the first tag that the scheme forbids where it stands, by its place of ``places`` (as many as tags,
    e.g. "train.conll:12") or by the number of its word.
    """
    _check(scheme)
    spans: list[Span] = []
    start, before = 0, OUTSIDE
    for number, tag in enumerate([*tags, OUTSIDE]):
        if not allowed(before, tag, scheme):
            last = number == len(tags)
            at = number - 1 if last else number
            place = places[at] if places else f"word {at + 1}"
            what = f"the sentence ends after {before}" if last else f"{tag} after {_said(before, number)}"
            raise DataError(
                f"{place}: {what}, which {scheme} does not allow. Repair the tag, or name the scheme it is in."
            )
        if before != OUTSIDE and _begins(before, tag, scheme):
            spans.append(Span(start, number, before[2:]))
        if tag != OUTSIDE and _begins(before, tag, scheme):
            start = number
        before = tag
    return spans


def tags_of(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The tags of a sentence of ``length`` words with these ``spans``.

    DataError where a span is empty, outside the sentence or lies over another: tags cannot say that.
    """
    _check(scheme)
    tags = [OUTSIDE] * length
    end, label = 0, ""
    for span in sorted(spans):
        if not 0 <= span.start < span.stop <= length:
            raise DataError(f"{span} does not lie in a sentence of {length} words. Correct its start and stop.")
        if span.start < end:
            raise DataError(f"{span} begins before the span in front of it ends, at {end}. Tags hold no nested spans.")
        tags[span.start : span.stop] = [f"I-{span.label}"] * (span.stop - span.start)
        if scheme != "iob1" or (span.start == end and span.label == label):
            tags[span.start] = f"B-{span.label}"
        if scheme == "bioes":
            tags[span.stop - 1] = f"{'S' if span.stop - span.start == 1 else 'E'}-{span.label}"
        end, label = span.stop, span.label
    return tags


def converted(tags: Sequence[str], scheme: Scheme, to: Scheme, places: Sequence[str] = ()) -> list[str]:
    """The same spans in another scheme; errors as of ``spans_of``."""
    return tags_of(spans_of(tags, scheme, places), len(tags), to)


def allowed(before: str, tag: str, scheme: Scheme) -> bool:
    """Whether ``tag`` may follow ``before``; a sentence begins after, and ends before, ``"O"``."""
    if not (_known(before, scheme) and _known(tag, scheme)):
        return False
    same = before[2:] == tag[2:] and before != OUTSIDE and tag != OUTSIDE
    if scheme == "iob1":
        return tag[0] != "B" or same
    if scheme == "iob2":
        return tag[0] != "I" or same
    return (same and tag[0] in "IE") if before[0] in "BI" else tag[0] in "OBS"


def writes_span(tag: str) -> bool:
    """Whether a tag is O, or one of a word in a span in some scheme."""
    return _known(tag, "bioes")


def _begins(before: str, tag: str, scheme: Scheme) -> bool:
    """Whether no span reaches from the word of ``before`` to that of ``tag``, where the scheme allows the pair."""
    if scheme == "bioes":
        return tag[0] in "OBS"
    return tag[0] in "OB" or before == OUTSIDE or before[2:] != tag[2:]


def _known(tag: str, scheme: Scheme) -> bool:
    marks = "BIES" if scheme == "bioes" else "BI"
    return tag == OUTSIDE or (len(tag) > 2 and tag[0] in marks and tag[1] == "-")


def _said(before: str, number: int) -> str:
    return before if number else "the beginning"


def _check(scheme: str) -> None:
    if scheme not in get_args(Scheme):
        raise UsageError(f"no scheme of tags is called '{scheme}'. {known(scheme, get_args(Scheme))}")
