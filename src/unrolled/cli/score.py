"""``unrolled score``: how probable the model finds given data (forced decoding)."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli import options


def score(
    model: options.Model,
    data: options.Data = None,
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Also the log-probability of each symbol (with --json).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines; the last one sums up.")] = False,
    device: options.Device = "auto",
) -> None:
    """Print the natural log-probability and the perplexity per symbol of each row, then of all.

    Of pairs, the target is scored given the source. The end symbol is predicted and counted too; the protocol is
    printed with the sum.
    """
    from unrolled.base.errors import UsageError
    from unrolled.cli.output import tell, tell_json
    from unrolled.pipeline import load
    from unrolled.progress import say
    from unrolled.workshop.sources import Sources, part_of

    if tokens and not as_json:
        raise UsageError("--tokens has a list for each row, which only --json writes. Give both.")
    opened = load(model, device=device)
    show, chosen = opened.showing("score", {"tokens": tokens})
    part = part_of(Sources(data=data, source=source, target=target), opened.task, columns)
    for one in show(part, **chosen):
        if as_json:
            tell_json(one.tree)
        elif one.text:
            tell(one.text)
        for remark in one.remarks if not as_json else ():
            say(remark)
