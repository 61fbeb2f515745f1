"""Links between words, and how far found ones are from those of people (alignment error rate)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError

Link = tuple[int, int]
"""(source word, target word), both counted from 0."""


class Gold(NamedTuple):
    """Links that people drew. ``possible`` holds the sure ones too (Och & Ney 2003)."""

    sure: frozenset[Link]
    possible: frozenset[Link]


class AlignmentScore(NamedTuple):
    """Alignment error rate and what it is made of; ``aer`` is 0 for a perfect alignment, 1 for a useless one."""

    aer: float
    precision: float  # share of the found links that are possible
    recall: float  # share of the sure links that were found
    found: int
    sentences: int


def links_from_weights(
    weights: np.ndarray, *, threshold: float | None = None, end_column: np.ndarray | None = None
) -> frozenset[Link]:
    """Each target word's most attended source word, or every pair of at least ``threshold``.

    ``weights`` [target, source]. A target word that looks more at the end symbol (``end_column``) than at any word, or
    at nothing at all, gets no link. Of equal weights the first source word is taken.
    """
    weights = np.asarray(weights)
    if weights.shape[1] == 0:
        return frozenset()
    if threshold is not None:
        return frozenset((int(column), int(row)) for row, column in zip(*np.nonzero(weights >= threshold), strict=True))
    best = weights.argmax(1)
    top = weights.max(1)
    floor = np.zeros(len(weights)) if end_column is None else np.asarray(end_column)
    return frozenset((int(best[row]), row) for row in range(len(weights)) if top[row] > floor[row])


def diagonal_links(source: int, target: int) -> frozenset[Link]:
    """What someone would draw who reads neither language: the word at the same relative place. The baseline of AER."""
    if source == 0:
        return frozenset()
    return frozenset((min(source - 1, int((row + 0.5) * source / target)), row) for row in range(target))


def alignment_error_rate(found: Iterable[Set[Link]], gold: Iterable[Gold]) -> AlignmentScore:
    """1 - (|A∩S| + |A∩P|) / (|A| + |S|), summed over sentences first.

    Och & Ney 2003, doi 10.1162/089120103321337421, section 2.3; a sure link counts as possible too.

    UsageError where the number of sentences differs or nothing is to be compared.
    """
    hits_sure = hits_possible = size = sure_size = sentences = 0
    try:
        for links, truth in zip(found, gold, strict=True):
            possible = truth.possible | truth.sure
            hits_sure += len(links & truth.sure)
            hits_possible += len(links & possible)
            size += len(links)
            sure_size += len(truth.sure)
            sentences += 1
    except ValueError:
        raise UsageError("alignment error rate: the gold links are of another number of sentences.") from None
    if size + sure_size == 0:
        raise UsageError("alignment error rate: neither found nor sure links in any sentence; nothing to compare.")
    return AlignmentScore(
        aer=1 - (hits_sure + hits_possible) / (size + sure_size),
        precision=hits_possible / size if size else 0.0,
        recall=hits_sure / sure_size if sure_size else 0.0,
        found=size,
        sentences=sentences,
    )


_PAIR = re.compile(r"(\d{1,9})([-p?])(\d{1,9})")


def parse_links(line: str, where: str = "links", *, first: int = 0) -> Gold:
    """A line of Pharaoh format: ``0-0 1-2 3p4``; ``-`` is sure, ``p`` or ``?`` possible, source before target.

    ``first`` is the number of the first word in the file, 0 or 1. DataError that starts with ``where`` ("gold.txt:12").
    """
    sure, possible = set(), set()
    for item in line.split():
        match = _PAIR.fullmatch(item)
        if match is None:
            raise DataError(
                f"{where}: {item[:40]!r} is not a link. Write source-target, e.g. 0-0 1-2, with p for a link "
                "that is only possible, e.g. 3p4."
            )
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise DataError(f"{where}: {item!r} has a word 0 where words are counted from {first}.")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def check_links(gold: Gold, source: int, target: int, where: str) -> Gold:
    """``gold``, or DataError for a link outside a pair of ``source`` and ``target`` words."""
    for link in sorted(gold.possible):
        if link[0] >= source or link[1] >= target:
            raise DataError(
                f"{where}: the link {link[0]}-{link[1]} is outside a pair of {source} and {target} words, "
                "counted from 0. Check that the links belong to this line."
            )
    return gold
