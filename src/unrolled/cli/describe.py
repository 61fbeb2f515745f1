"""``unrolled describe``: what a model or a preset is made of, with the formula of each part's parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.base.errors import UsageError, known
from unrolled.cli import options

if TYPE_CHECKING:
    from torch import nn


def describe(
    model: Annotated[str, typer.Argument(help="Folder of a saved model, or the name of a preset.")],
    source_vocabulary: Annotated[int, typer.Option(min=5, help="A preset's source symbols.")] = 8000,
    target_vocabulary: Annotated[int, typer.Option(min=5, help="A preset's target symbols.")] = 8000,
    as_json: options.Json = False,
) -> None:
    """Show the parts, their parameters with the formula, and the memory they need."""
    from unrolled.cli.output import size, table, tell, tell_json
    from unrolled.workshop.parts import flat_parts

    network, said = _open(model, source_vocabulary, target_vocabulary)
    rows = flat_parts(network)
    total = sum(tensor.numel() for tensor in network.parameters())
    if as_json:
        tell_json({"model": model, "parameters": total, "bytes": 4 * total, "parts": [row._asdict() for row in rows]})
        return
    cells = [
        ("  " * row.depth + row.path.rsplit(".", 1)[-1], row.note, f"{row.parameters:,}", row.formula) for row in rows
    ]
    table(("part", "kind and sizes", "parameters", "formula"), cells, title=model, right=(2,))
    for sentence in said:
        tell(sentence)
    tell(f"{total:,} parameters: {size(4 * total)} saved; {size(16 * total)} in training (gradients, moments).")


def _open(model: str, source: int, target: int) -> tuple[nn.Module, list[str]]:
    from unrolled.workshop.plan import layers_of, plan, preset_names

    if model in preset_names() and not Path(model).exists():
        from unrolled.tasks import TASKS

        settings = plan(layers_of(model)).settings
        network, sizes = TASKS.build(settings["task"]).sketch(settings, source, target)
        return network, [f"A preset, shown with {sizes}."]
    if not Path(model).exists():
        raise UsageError(f"no folder and no preset is called '{model}'. {known(model, preset_names())}")
    from unrolled.pipeline import load

    opened = load(model, device="cpu")
    said = [f"Task: {opened.kind}. It does: {', '.join(opened.verbs())}."]
    said += [f"The {name} is read as {how}." for name, how in opened.text.about().items()]
    said += [f"{score.name} {score.value:.3f} ({score.protocol})" for score in opened.scores]
    return opened.network, said
