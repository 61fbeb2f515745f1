"""``unrolled evaluate``: scores against references, each with its protocol; two models compared fairly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.base.errors import UsageError

if TYPE_CHECKING:
    from unrolled.pipeline import Model


def evaluate(
    model: Annotated[str, typer.Argument(help="Folder of a saved model.")],
    data: Annotated[str | None, typer.Argument(help="Pairs: a table, as for train.")] = None,
    source: Annotated[str | None, typer.Option(help="Parallel files instead: the sources.")] = None,
    target: Annotated[str | None, typer.Option(help="Parallel files instead: the references.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns by name or number, e.g. 1,2.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Another beam than the saved one; 1 is argmax.")] = None,
    links: Annotated[
        str | None, typer.Option(help="Gold word links, line by line (0-0 1-2 2p3): adds the alignment error rate.")
    ] = None,
    compare: Annotated[str | None, typer.Option(help="Another model: paired bootstrap over the same sentences.")] = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="Also BLEU by source length.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
) -> None:
    """Score the model's outputs: BLEU, chrF, TER, exact match, character error rate."""
    from unrolled.cli.output import number, table, tell, tell_json
    from unrolled.pipeline import Model
    from unrolled.tasks import scores as scoring
    from unrolled.workshop.sources import pairs_of

    opened = Model.load(model, device=device)
    sources, references = pairs_of(data, source, target, columns)
    outputs = opened.predict(sources, beam=beam)
    scores = scoring.translation_scores(outputs, references)
    if links:
        scores += alignment_scores(opened, sources, references, links)
    result: dict[str, Any] = {"model": model, "pairs": len(sources), "scores": [one._asdict() for one in scores]}
    if by_length:
        result["by_length"] = [one._asdict() for one in scoring.bleu_by_length(sources, outputs, references)]
    if compare:
        other = Model.load(compare, device=device).predict(sources, beam=beam)
        result["compare"] = [one._asdict() for one in scoring.compare(outputs, other, references)]
    if as_json:
        tell_json(result)
        return
    rows = [(one.name, number(one.value), one.signature) for one in scores]
    table(("score", "value", "protocol"), rows, title=f"{model} on {len(sources)} pairs", right=(1,))
    for name in ("by_length", "compare"):
        if result.get(name):
            keys = list(result[name][0])
            rows = [[number(v) if isinstance(v, float) else v for v in row.values()] for row in result[name]]
            table(keys, rows, title="BLEU by source length" if name == "by_length" else f"against {compare}")
    if not sources:
        tell("no pairs")


def alignment_scores(model: Model, sources: list[str], references: list[str], links: str) -> list[Any]:
    """Alignment error rate of the attention on given pairs, read at step t and t + 1; words are what spaces separate."""
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
