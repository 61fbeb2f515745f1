"""``unrolled generate``: text that goes on from a prompt, or drawings."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli import options


def generate(
    model: options.Model,
    prompt: Annotated[
        str, typer.Option(help="What the text begins with; for drawings FILE or FILE#NUMBER of one to go on from.")
    ] = "",
    length: Annotated[
        int | None, typer.Option(min=1, help="Symbols at most: 200, or 10 with --likeliest. Points of a drawing: 1000.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="How many texts are drawn.")] = None,
    likeliest: Annotated[
        int | None, typer.Option(min=1, help="No draws: the n likeliest continuations with their log-probabilities.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Above 1 more varied, below 1 less.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the k best symbols.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the best symbols with this mass.")] = None,
    bias: Annotated[
        float | None, typer.Option(help="Drawings: above 0 only what is more probable, about 1 for neat ones.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Drawings: what is to be drawn, a label of the training rows.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Drawings: a page (.svg, .png), a folder of .svg, or data (.jsonl, .npz).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, other draws.")] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End before this text; \\n is an end of line. Can be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines with symbols and log-probabilities.")] = False,
    device: options.Device = "auto",
    precision: options.Precision = None,
) -> None:
    """Write text that begins with the prompt, drawn from the model, or its likeliest continuations; or draw, with
    a model of drawings.

    A sample depends on the seed and on its number alone. It ends where the model ends the text, before a stop, or after
    the length.
    """
    from unrolled.cli.output import tell, tell_json
    from unrolled.pipeline import load
    from unrolled.progress import say

    given = {
        "length": length, "samples": samples, "likeliest": likeliest, "temperature": temperature, "top_k": top_k,
        "top_p": top_p, "bias": bias, "label": label, "to": to, "seed": seed, "precision": precision,
        "stop": [one.replace("\\n", "\n") for one in stop or ()] or None,
    }  # fmt: skip
    opened = load(model, device=device)
    show, chosen = opened.showing("generate", given)
    for one in show(prompt, **chosen):
        if as_json:
            tell_json(one.tree)
        elif one.text or to is None:
            tell(one.text)
        for remark in one.remarks:
            say(remark)
    for sentence in opened.asides:
        say(sentence)
