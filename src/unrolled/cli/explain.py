"""``unrolled explain``: where the model looked, drawn, with a number that says how far to trust the drawing."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli import options


def explain(
    model: options.Model,
    text: Annotated[
        str, typer.Argument(help="A line of text; or FILE, or FILE#NUMBER of a row in it, where rows are no lines.")
    ],
    target: Annotated[str | None, typer.Option(help="Explain this output instead of the model's own.")] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="Features of the text, for a model that reads some; once a column.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Words on a plane: pca or tsne.")] = None,
    word: Annotated[
        int | None, typer.Option(min=1, help="Tagging: from which of its characters this word's tag was read, from 1.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Reading: words (and sentences) of the document, or steps of the reading.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Write a picture, a page or numbers: .svg, .png, .html, .json.")
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trust/--no-trust", help="Measure how far the weights can be trusted.")
    ] = True,
    as_json: options.Json = False,
    device: options.Device = "auto",
) -> None:
    """Show what an output rests on: which words each of its words looked at, from which moments, regions, points or
    sentences an answer was read, and how far to trust that; or how words lie."""
    from unrolled.cli.output import draw, tell, tell_json
    from unrolled.explain.explanation import check_suffix
    from unrolled.pipeline import load
    from unrolled.progress import say

    if to:
        check_suffix(to)
    given = {
        "target": target,
        "features": features or None,
        "untrusted": not trusted,
        "method": method,
        "word": word,
        "by": by,
    }
    opened = load(model, device=device)
    show, chosen = opened.showing("explain", given)
    found = show(text, **chosen)
    for sentence in opened.asides:
        say(sentence)
    if to:
        say(f"written: {found.to(to)}")
    if as_json:
        tell_json(found.to_dict())
    else:
        tell(found.target_text)
        draw(found)
