"""Which scores suit a target, and what counts as its reference: the user's word, else tokenizer and references say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from unrolled.base.registry import Part
from unrolled.tasks.scores import MEASURES, References, Score, matched, score
from unrolled.text.tokenizer import Tokenizer

RUNNING = ("bleu", "chrf", "ter", "exact_match", "cer")
"""Measures of sentences."""

APART = ("exact_match", "ser")
"""Measures of a few symbols set apart by spaces: phonemes, letters, commands."""

LETTERS = ("exact_match", "cer")
"""Measures of words read letter by letter."""

FEW_SYMBOLS = 300
"""Symbols of a vocabulary of such a target, at most."""

Grouping = Literal["each", "grouped"]


class Judged(NamedTuple):
    """What is scored: each source once, or once a row, and its references. ``note`` ends the protocol."""

    sources: list[str]
    references: list[list[str]]
    note: str = ""


def suiting(target: Tokenizer, references: References) -> tuple[str, ...]:
    """The measures of targets that ``target`` reads, the first one the most telling."""
    if target.kind == "whitespace" and target.vocabulary_size <= FEW_SYMBOLS:
        return APART
    texts = [one if isinstance(one, str) else one[0] for one in references]
    if target.kind == "character" and sum(len(text.split()) for text in texts) < 2 * len(texts):
        return LETTERS
    return RUNNING


def judged(sources: Sequence[str], references: References, *, grouped: bool) -> Judged:
    """Rows as they are, or ``grouped``: the references of all rows with the same source are that source's.

    An output is then compared with the best of them, and a source with many counts once.
    """
    several = matched(sources, references)
    if not grouped:
        return Judged(list(sources), several)
    held: dict[str, list[str]] = {}
    for source, own in zip(sources, several, strict=True):
        held[source] = list(dict.fromkeys([*held.get(source, []), *own]))
    note = f"|{len(sources)} rows of {len(held)} sources" if len(held) < len(sources) else ""
    return Judged(list(held), list(held.values()), note)


def scored(measures: Sequence[Part], outputs: Sequence[str], given: Judged) -> list[Score]:
    """The outputs by each measure, named by its kind."""
    found = []
    for measure in measures:
        one = score(measure, outputs, given.references)
        found.append(one._replace(name=kind_of(measure), protocol=one.protocol + given.note))
    return found


def kind_of(measure: Part) -> str:
    return measure if isinstance(measure, str) else str(measure["kind"])


def checked(measures: Sequence[Any], where: str) -> list[dict[str, Any]]:
    """Measures with their settings; SettingsError for one that there is not."""
    return [MEASURES.complete(measure, where) for measure in measures]
