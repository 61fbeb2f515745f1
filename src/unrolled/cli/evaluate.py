"""``unrolled evaluate``: scores against references, each with its protocol; two models compared fairly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.base.errors import UsageError
from unrolled.cli import options

if TYPE_CHECKING:
    from unrolled.pipeline import Model


def evaluate(
    model: options.Model,
    data: options.Data = None,
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Another beam than the saved one; 1 is argmax.")] = None,
    links: Annotated[
        str | None, typer.Option(help="Gold word links, line by line (0-0 1-2 2p3): adds the alignment error rate.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(help="Another model: paired bootstrap over the same sentences.")
    ] = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="Also BLEU by source length.")] = False,
    as_json: options.Json = False,
    device: options.Device = "auto",
) -> None:
    """Score the model's outputs: BLEU, chrF, TER, exact match, character error rate."""
    from unrolled.cli.output import number, table, tell_json
    from unrolled.pipeline import Model
    from unrolled.tasks.translate import translation_scores
    from unrolled.workshop.sources import pairs_of

    opened = Model.load(model, device=device)
    sources, references = pairs_of(data, source, target, columns)
    outputs = opened.predict(sources, beam=beam)
    scores = translation_scores(outputs, references)
    if links:
        scores += alignment_scores(opened, sources, references, links)
    result: dict[str, Any] = {"model": model, "pairs": len(sources), "scores": [one._asdict() for one in scores]}
    if by_length:
        result["by_length"] = _by_length(sources, outputs, references)
    if compare:
        other = Model.load(compare, device=device).predict(sources, beam=beam)
        result["compare"] = _compare(outputs, other, references)
    if as_json:
        tell_json(result)
        return
    rows = [(one.name, number(one.value), one.protocol) for one in scores]
    table(("score", "value", "protocol"), rows, title=f"{model} on {len(sources)} pairs", right=(1,))
    titles = {"by_length": "By source length", "compare": f"Against {compare}: paired bootstrap, 95 % interval"}
    for name, title in titles.items():
        if name in result:
            cells = [
                [number(cell) if isinstance(cell, float) else cell for cell in row.values()] for row in result[name]
            ]
            table(list(result[name][0]), cells, title=title)


def _by_length(sources: list[str], outputs: list[str], references: list[str]) -> list[dict[str, Any]]:
    from unrolled.tasks.scores import by_length

    found = by_length([len(source.split()) for source in sources], outputs, references)
    return [
        {"words": f"{one.shortest}–{one.longest or ''}", "pairs": one.size, "bleu": one.score.value} for one in found
    ]


def _compare(outputs: list[str], other: list[str], references: list[str]) -> list[dict[str, Any]]:
    """This model's outputs against another's, by each measure."""
    from unrolled.tasks.comparison import compare

    rows = []
    for kind in ("bleu", "chrf", "exact_match", "cer"):
        found = compare(kind, other, outputs, references)
        rows.append(
            {
                "measure": kind,
                "this": found.system.value,
                "other": found.baseline.value,
                "difference": found.difference,
                "low": found.low,
                "high": found.high,
                "p": found.p_value,
            }
        )
    return rows


def alignment_scores(model: Model, sources: list[str], references: list[str], links: str) -> list[Any]:
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
