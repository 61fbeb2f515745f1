"""Where a symbol stands in the user's own text, whatever normalisation did to it."""

from __future__ import annotations

import unicodedata

from unrolled.base.errors import DataError

SPACE = "▁"
"""Stands for the space before a word inside a symbol, as in SentencePiece (Kudo and Richardson 2018)."""


Span = tuple[int, int]


def whole_spans(text: str, spans: list[Span]) -> list[Span]:
    """The library's offsets with what normalisation composed put back.

    Where NFC makes one character of several, the library points at the first of them only; the rest lies between this
    symbol's end and the next one's start.
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return spans
    starts = [start for start, _ in spans[1:]] + [len(text)]
    return [(start, max(end, after)) for (start, end), after in zip(spans, starts, strict=True)]


def spans_without_space(text: str, tokens: list[str], spans: list[Span]) -> list[Span]:
    """``spans`` with outer white space cut off. A symbol that is a space alone gets an empty span before the next
    word."""
    exact = []
    for token, (start, end) in zip(tokens, spans, strict=True):
        if token == SPACE:
            end = start
            while end < len(text) and _blank(text[end]):
                end += 1
        while start < end and _blank(text[start]):
            start += 1
        while start < end and _blank(text[end - 1]):
            end -= 1
        exact.append((start, end))
    return exact


def _blank(character: str) -> bool:
    return character.isspace() or character == SPACE


def valid(text: str) -> str:
    """``text``, or DataError for a lone surrogate, which no file can hold."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            near = text[max(0, error.start - 10) : error.start + 10]
            raise DataError(
                f"the text {near!r} holds a lone surrogate ({text[error.start]!r}), which is not valid Unicode. Remove "
                "it, or write the whole character."
            ) from None
    return text
