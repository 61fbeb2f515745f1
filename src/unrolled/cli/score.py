"""``unrolled score``: how probable the model finds given pairs (forced decoding)."""

from __future__ import annotations

import math
from typing import Annotated, Any

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
    """Print the natural log-probability and the perplexity per symbol of each pair, then of all.

    The end symbol is predicted and counted too; the protocol is printed with the sum.
    """
    from unrolled.cli.output import tell, tell_json
    from unrolled.pipeline import Model
    from unrolled.progress import say
    from unrolled.workshop.sources import pairs_of

    opened = Model.load(model, device=device)
    sources, targets = pairs_of(data, source, target, columns)
    total, symbols = 0.0, 0
    for number, forced in enumerate(opened.score(sources, targets)):
        log_prob, count = float(forced.log_probs.sum()), len(forced.log_probs)
        total, symbols = total + log_prob, symbols + count
        ppl = math.exp(min(700.0, -log_prob / count))
        if as_json:
            row: dict[str, Any] = {"line": number, "log_prob": log_prob, "symbols": count, "perplexity": ppl}
            if tokens:
                names = [*opened.text.target.encode(targets[number]).tokens, "</s>"]
                row["tokens"] = [[name, float(value)] for name, value in zip(names, forced.log_probs, strict=True)]
            tell_json(row)
        else:
            tell(f"{log_prob:.4f}\t{count}\t{ppl:.4f}")
    overall = math.exp(min(700.0, -total / max(symbols, 1)))
    protocol = f"{opened.text.target.kind} symbols, end included, natural log"
    if as_json:
        tell_json({"log_prob": total, "symbols": symbols, "perplexity": overall, "protocol": protocol})
    else:
        say(f"{len(sources)} pairs, {symbols} symbols: log-probability {total:.2f}, perplexity {overall:.3f}")
        say(f"({protocol})")
