"""``unrolled predict``: what the model makes of each line of a file."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from unrolled.cli import options

Given = Annotated[
    str, typer.Argument(help="Lines, a table, an image or a recording, a folder of them; - for standard input.")
]
Batch = Annotated[
    int | None, typer.Option(min=1, help="Lines worked on together; in float32 the outputs do not depend on it.")
]


def predict(
    model: options.Model,
    file: Given = "-",
    search: Annotated[str | None, typer.Option(help="argmax, beam or sampling.")] = None,
    beam: Annotated[int | None, typer.Option(help="Prefixes kept a sentence.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Outputs a line: index, score and text, separated by tabs.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Exponent of the length normalisation.")] = None,
    coverage_penalty: Annotated[float | None, typer.Option(help="Weight of the coverage penalty.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Symbols at least.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Symbols at most.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n symbols in a row twice.")] = None,
    replace_unknown: Annotated[
        bool | None,
        typer.Option("--replace-unknown/--keep-unknown", help="Unknown symbols become the most attended word."),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="A file with the beginning of each output, line by line.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling: above 1 more varied, below 1 less.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sampling: only the k best symbols.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sampling: only the best symbols with this mass.")] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling: another seed, other draws.")] = None,
    batch: Batch = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Forecasts: steps ahead, the horizon at most.")] = None,
    spaces: Annotated[
        bool,
        typer.Option("--spaces", help="Tagging plain lines: words are what white space parts, marks stay on them."),
    ] = False,
    ensemble: options.Ensemble = None,
    attention: Annotated[bool, typer.Option("--attention", help="JSON lines with words, weights and scores.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines with texts and scores.")] = False,
    device: options.Device = "auto",
    precision: options.Precision = None,
) -> None:
    """Write what the model makes of each line, row or file that is given, in order; an empty line stays empty.

    The same comes out whatever the batch size, the order or the padding (in bfloat16 but for near ties).
    """
    from unrolled.cli.output import tell, tell_json
    from unrolled.pipeline import load

    given = {
        "search": search, "beam": beam, "nbest": nbest, "length_penalty": length_penalty, "min_length": min_length,
        "coverage_penalty": coverage_penalty, "max_length": max_length, "no_repeat_ngram": no_repeat_ngram,
        "replace_unknown": replace_unknown, "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed,
        "prefix": prefix, "batch": batch, "precision": precision,
        "steps": steps, "spaces": spaces, "attention": attention,
        "ensemble": [load(one, device=device) for one in ensemble or ()] or None,
    }  # fmt: skip
    show, chosen = load(model, device=device).showing("predict", given)
    count, started = 0, time.monotonic()
    remarks: dict[str, list[str]] = {}
    for one in show(file, **chosen):
        count += 1
        if as_json or attention:
            tell_json(one.tree)
        else:
            tell(one.text, one.end)
        for remark in one.remarks:
            remarks.setdefault(re.sub(r"[\d.e-]*\d", "#", remark), []).append(remark)
    _sum_up(count, time.monotonic() - started, remarks)


def _sum_up(count: int, seconds: float, remarks: Mapping[str, Sequence[str]]) -> None:
    """``remarks`` by what they say, numbers aside."""
    from unrolled.progress import say

    for alike in sorted(remarks.values(), key=len, reverse=True)[:5]:
        say(f"{len(alike)} of {count} outputs{', e.g.' if len(set(alike)) > 1 else ':'} {alike[0]}")
    if sys.stderr.isatty():
        say(f"{count} lines in {seconds:.1f} s, {count / max(seconds, 1e-9):.1f} lines/s")
