"""``unrolled selfcheck``: does this model, on this device, keep the promises that every model makes?"""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.base.errors import GateError
from unrolled.cli import options


def selfcheck(
    model: options.Model,
    file: Annotated[
        str | None, typer.Argument(help="Lines to check with; none: random ones of the vocabulary.")
    ] = None,
    lines: Annotated[int, typer.Option(min=2, help="How many lines at most.")] = 64,
    as_json: options.Json = False,
    device: options.Device = "auto",
) -> None:
    """Check: batch of 1 = batch of N, any order and padding, beam 1 = argmax, steps = whole pass, saved = loaded.

    Exit code 4 if one does not hold.
    """
    from unrolled.cli.output import table, tell_json
    from unrolled.pipeline import load

    opened = load(model, device=device)
    found = opened.promises(file, lines)
    if as_json:
        tell_json({"model": model, "device": str(opened.device), "checks": [one._asdict() for one in found]})
    else:
        rows = [(SAID[one.holds], one.name, one.detail) for one in found]
        table(("", "promise", "measured"), rows, title=f"{model} on {opened.device}")
    broken = [one.name for one in found if one.holds is False]
    if broken:
        raise GateError(f"{model}: {len(broken)} of {len(found)} promises broken: {', '.join(broken)}.")


SAID = {True: "holds", False: "BROKEN", None: "not seen"}
