"""From the model's symbols to the user's words: columns of one word add up, rows of one word are averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.explain.explanation import Explanation, Tokens

Span = tuple[int, int]
"""Character offsets [start, end) in a text."""

End = Literal["keep", "drop", "renormalise"]


class Side(NamedTuple):
    """One side of a pair: its text, the model's symbols in it (END not among them) and the user's words in it."""

    text: str
    tokens: Sequence[str]
    token_spans: Sequence[Span]
    word_spans: Sequence[Span]
    aside: int = 0  # how many of the first words are features of the text

    def words(self) -> tuple[str, ...]:
        """The words as the user wrote them."""
        return tuple(self.text[start:end] for start, end in self.word_spans)


class Merged(NamedTuple):
    """Attention between words. ``end_column`` [target] and ``end_row`` [source] hold what concerns the end symbols."""

    weights: np.ndarray  # float32 [target words, source words]
    end_column: np.ndarray
    end_row: np.ndarray | None


def explain_tokens(
    source: Side,
    target: Side,
    weights: np.ndarray,
    *,
    log_probs: Sequence[float] | np.ndarray | None = None,
    read_at: Literal[0, 1] = 0,
    end: End = "keep",
    method: str = "attention",
) -> Explanation:
    """An Explanation on the user's own words, from the rows of one hypothesis.

    ``weights`` [target symbols (+1 for END), source symbols (+1 for END)], ``log_probs`` one for each row.
    ``read_at=1`` reads for each word the row of the step after the one that predicted it.
    """
    spread = shares(target.token_spans, target.word_spans)
    merged = merge(weights, shares(source.token_spans, source.word_spans), spread, read_at=read_at, end=end)
    rows, columns = np.asarray(weights).shape
    names = [*target.tokens, "</s>"][:rows], [*source.tokens, "</s>"][:columns]
    own = None if log_probs is None else np.asarray(log_probs, dtype=np.float64)
    kept = None if own is None else tuple(own.tolist())
    return Explanation(
        source=source.words(),
        target=target.words(),
        weights=merged.weights,
        method=method,
        source_text=source.text,
        target_text=target.text,
        end_column=None if end != "keep" else merged.end_column,
        end_row=merged.end_row,
        log_probs=None if own is None else (own[: len(target.tokens)] @ spread).tolist(),
        aside=source.aside,
        tokens=Tokens(tuple(names[1]), tuple(names[0]), np.asarray(weights, np.float32), kept),
    )


def shares(token_spans: Sequence[Span], word_spans: Sequence[Span]) -> np.ndarray:
    """How much of each symbol belongs to each word: float64 [symbols, words], each row sums to 1.

    A symbol across two words is split by its characters in each; one that touches no word (a space) goes to the
    nearest. Without any word the result is [symbols, 0].
    """
    overlap = np.zeros((len(token_spans), len(word_spans)))
    for row, (start, end) in enumerate(token_spans):
        for column, (first, last) in enumerate(word_spans):
            overlap[row, column] = max(0, min(end, last) - max(start, first))
        if word_spans and not overlap[row].any():
            gaps = [max(first - end, start - last, 0) for first, last in word_spans]
            overlap[row, int(np.argmin(gaps))] = 1
    return overlap / overlap.sum(1, keepdims=True) if word_spans else overlap


def merge(
    weights: np.ndarray, source: np.ndarray, target: np.ndarray, *, read_at: int = 0, end: End = "keep"
) -> Merged:
    """Rows between symbols as rows between words.

    ``weights`` [target symbols (+1), source symbols (+1)]; ``source`` and ``target`` from ``shares``. The extra row
    is the step that predicted END, the extra column what lies on the source's END. ``end`` says what becomes of that
    column: "keep" it apart, so that a row and its end sum to 1, "drop" it, or "renormalise" the rows to 1 without it.
    A target word without a symbol gets a row of zeros. With ``read_at=1`` the last word of a hypothesis that was cut
    off (no END row) keeps its own row, for there is none after it.
    """
    rows = np.asarray(weights, dtype=np.float64)
    symbols, places = len(target), len(source)
    if rows.ndim != 2 or rows.shape[0] not in (symbols, symbols + 1) or rows.shape[1] not in (places, places + 1):
        raise UsageError(
            f"alignment: attention of shape {rows.shape} does not fit {symbols} target and {places} source symbols "
            "(each may have one more, for the end)."
        )
    last = rows[symbols] if len(rows) > symbols else None
    following = np.minimum(np.arange(symbols) + read_at, len(rows) - 1)
    read = rows[following]
    onto_words = read[:, :places] @ source
    onto_end = read[:, places] if rows.shape[1] > places else np.zeros(symbols)
    share = target.sum(0)
    average = target / np.where(share > 0, share, 1)
    merged, end_column = average.T @ onto_words, average.T @ onto_end
    if end == "renormalise":
        total = merged.sum(1, keepdims=True)
        merged = merged / np.where(total > 0, total, 1)
    end_row = None if last is None else (last[:places] @ source).astype(np.float32)
    return Merged(merged.astype(np.float32), end_column.astype(np.float32), end_row)


def spans_by_prefix(decode: Callable[[list[int]], str], ids: Sequence[int]) -> list[Span]:
    """Where each symbol lies in ``decode(ids)``: what the text grows by when the symbol is added.

    Never overlapping and in order, also where a symbol changes what stands before it.
    """
    spans, done, length = [], 0, len(decode(list(ids)))
    for count in range(1, len(ids) + 1):
        grown = max(done, min(length, len(decode(list(ids[:count])))))
        spans.append((done, grown))
        done = grown
    return spans
