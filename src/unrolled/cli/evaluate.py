"""``unrolled evaluate``: the task's scores, each with its protocol; two models compared fairly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli import options

if TYPE_CHECKING:
    from unrolled.pipeline.model import Evaluated


def evaluate(
    model: options.Model,
    data: options.Data = None,
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Another beam than the saved one; 1 is argmax.")] = None,
    score: Annotated[
        list[str] | None, typer.Option(help="Another measure than those that suit, e.g. rouge1. Can be repeated.")
    ] = None,
    references: Annotated[
        str | None, typer.Option(help="each: every row its own; grouped: rows with one source share theirs.")
    ] = None,
    links: Annotated[
        str | None, typer.Option(help="Gold word links, line by line (0-0 1-2 2p3): adds the alignment error rate.")
    ] = None,
    boxes: Annotated[
        str | None,
        typer.Option(help="Captions: a table of images and a box for each word: adds whether attention lies there."),
    ] = None,
    compare: Annotated[str | None, typer.Option(help="Another model: paired bootstrap over the same rows.")] = None,
    ensemble: options.Ensemble = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="Also the first measure by source length.")] = False,
    ngram: Annotated[
        str | None, typer.Option(help="Running text: beside it a Kneser–Ney 5-gram learnt on this text.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, help="Forecasts: from every so many steps, 1 if not given.")
    ] = None,
    confusion: Annotated[
        str | None, typer.Option(help="Which labels are taken for which, as a picture: .svg, .png, .html, .json.")
    ] = None,
    as_json: options.Json = False,
    device: options.Device = "auto",
    precision: options.Precision = None,
) -> None:
    """Score the model on given data by its task's measures.

    Pairs: of sentences BLEU, chrF, TER, exact match, character error rate; of symbols set apart (phonemes) exact match
    and symbol error rate; of words exact match and character error rate. Running text: perplexity and bits.
    Labels: accuracy, macro-F1, calibration error, a table by label. Tags: accuracy, F1 of spans, a table by kind.
    Questions: accuracy, or of spans exact match and F1, beside the commonest answer.
    Series: MASE, sMAPE, pinball loss, coverage, beside the naive rules, by steps ahead.
    """
    from unrolled.explain.explanation import check_suffix
    from unrolled.pipeline import load
    from unrolled.workshop.sources import Sources, part_of

    if confusion is not None:
        check_suffix(confusion)
    opened = load(model, device=device)
    given = {
        "beam": beam, "score": score or None, "references": references, "links": links, "boxes": boxes,
        "by_length": by_length, "ngram": ngram, "confusion": confusion, "stride": stride, "precision": precision,
        "compare": load(compare, device=device) if compare else None,
        "ensemble": [load(one, device=device) for one in ensemble or ()] or None,
    }  # fmt: skip
    show, chosen = opened.showing("evaluate", given)
    found = show(part_of(Sources(data=data, source=source, target=target), opened.task, columns), **chosen)
    _tell(found, model, opened.task.noun, precision, as_json=as_json)


def _tell(found: Evaluated, model: str, noun: str, precision: str | None, *, as_json: bool) -> None:
    """Scores and tables, for people or for machines."""
    from unrolled.cli.output import number, table, tell_json

    if as_json:
        result: dict[str, Any] = {"model": model, f"{noun}s": found.rows}
        if precision is not None:
            result["precision"] = precision
        result["scores"] = [one._asdict() for one in found.scores]
        tell_json(result | {name: rows for name, (_, rows) in found.tables.items()})
        return
    searched = "" if precision is None else f", searched in {precision}"
    rows = [(one.name, number(one.value), one.protocol) for one in found.scores]
    table(("score", "value", "protocol"), rows, title=f"{model} on {found.rows} {noun}s{searched}", right=(1,))
    for title, lines in found.tables.values():
        cells = [[number(cell) if isinstance(cell, float) else cell for cell in line.values()] for line in lines]
        table(list(lines[0]), cells, title=title)
