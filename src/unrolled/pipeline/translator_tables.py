"""A translator's numbers as rows of tables: pair by pair, by length, against another model, against gold links."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import UsageError
from unrolled.base.registry import Part
from unrolled.pipeline.model import Shown
from unrolled.tasks.judging import Judged, kind_of

if TYPE_CHECKING:
    from unrolled.pipeline.translator import Translator
    from unrolled.tasks.scores import Score
    from unrolled.workshop.seeing import Forced


LARGE = 1e6
"""From here on a perplexity is written with an exponent."""


def scored(found: Sequence[Forced], names: Callable[[int], list[str]] | None, protocol: str) -> Iterator[Shown]:
    """Log-probability, symbols and perplexity of each pair, then of all; ``names`` gives a pair's symbols."""
    total, symbols = 0.0, 0
    for number, forced in enumerate(found):
        log_prob, count = float(forced.log_probs.sum()), len(forced.log_probs)
        total, symbols = total + log_prob, symbols + count
        ppl = math.exp(min(700.0, -log_prob / count))
        row: dict[str, Any] = {"line": number, "log_prob": log_prob, "symbols": count, "perplexity": ppl}
        if names is not None:
            row["tokens"] = [[name, float(one)] for name, one in zip(names(number), forced.log_probs, strict=True)]
        said = f"{ppl:.4f}" if ppl < LARGE else f"{ppl:.4g}"
        yield Shown(f"{log_prob:.4f}\t{count}\t{said}", row)
    overall = math.exp(min(700.0, -total / max(symbols, 1)))
    remarks = (
        f"{len(found)} pairs, {symbols} symbols: log-probability {total:.2f}, perplexity {overall:.3f}",
        f"({protocol})",
    )
    yield Shown("", {"log_prob": total, "symbols": symbols, "perplexity": overall, "protocol": protocol}, remarks)


def by_length(given: Judged, outputs: list[str], measure: Part) -> list[dict[str, Any]]:
    """One measure by the words of the source."""
    from unrolled.tasks.scores import by_length as divided

    lengths = [len(source.split()) for source in given.sources]
    found = divided(lengths, outputs, given.references, measure=measure)
    return [
        {"words": f"{one.shortest}–{one.longest or ''}", "pairs": one.size, kind_of(measure): one.score.value}
        for one in found
    ]


def compared(outputs: list[str], other: list[str], given: Judged, measures: Sequence[Part]) -> list[dict[str, Any]]:
    """This model's outputs against another's, by each measure."""
    from unrolled.tasks.comparison import compare

    rows = []
    for measure in measures:
        found = compare(measure, other, outputs, given.references)
        rows.append(
            {
                "measure": kind_of(measure),
                "this": found.system.value,
                "other": found.baseline.value,
                "difference": found.difference,
                "low": found.low,
                "high": found.high,
                "p": found.p_value,
            }
        )
    return rows


def alignment_scores(model: Translator, sources: list[str], references: list[str], links: str) -> list[Score]:
    """Alignment error rate of the attention on given pairs, read at t and t + 1; words are what spaces separate."""
    import re

    from unrolled.data.lines import lines_of
    from unrolled.explain.links import (
        alignment_error_rate,
        check_links,
        diagonal_links,
        links_from_weights,
        parse_links,
    )
    from unrolled.tasks.scores import Score

    lines = list(lines_of(links))
    if len(lines) != len(sources):
        raise UsageError(f"{links}: {len(lines)} lines of links for {len(sources)} pairs. Give one line a pair.")
    words = [[match.span() for match in re.finditer(r"\S+", line)] for line in (*sources, *references)]
    source_words, target_words = words[: len(sources)], words[len(sources) :]
    gold = []
    for row, line in enumerate(lines):
        where = f"{links}:{row + 1}"
        gold.append(check_links(parse_links(line, where), len(source_words[row]), len(target_words[row]), where))
    found = []
    for read_at, name in ((0, "aer"), (1, "aer_next")):
        pictures = model.align(sources, references, source_words, target_words, read_at=read_at)
        score = alignment_error_rate([links_from_weights(one.weights) for one in pictures], gold)
        protocol = f"Och & Ney 2003, argmax of forced attention at step t{'+1' if read_at else ''}"
        found.append(Score(name, score.aer, protocol, False))
    guess = [diagonal_links(len(left), len(right)) for left, right in zip(source_words, target_words, strict=True)]
    found.append(Score("aer_diagonal", alignment_error_rate(guess, gold).aer, "the same, of the plain diagonal", False))
    return found
