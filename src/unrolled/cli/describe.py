"""``unrolled describe``: what a model or a preset is made of, with the formula of each part's parameters."""

from __future__ import annotations

from collections.abc import Sequence
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
    config: options.Config = None,
    set_: options.Settings = None,
    as_json: options.Json = False,
) -> None:
    """Show the parts, their parameters with the formula, and the memory they need.

    A preset is shown as train would take it, with the settings of --config and --set over it.
    """
    from unrolled.cli.output import size, table, tell, tell_json
    from unrolled.workshop.parts import flat_parts

    network, said = _open(model, config, set_ or [], source_vocabulary, target_vocabulary)
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


def _open(
    model: str, config: str | None, assignments: Sequence[str], source: int, target: int
) -> tuple[nn.Module, list[str]]:
    from unrolled.workshop.plan import preset_names

    if model in preset_names() and not Path(model).exists():
        return _sketch(model, config, assignments, source, target)
    if not Path(model).exists():
        raise UsageError(f"no folder and no preset is called '{model}'. {known(model, preset_names())}")
    if config or assignments:
        raise UsageError(
            f"describe: {'--config' if config else '--set'} changes a preset, and {model} is a saved model, which has "
            "the settings that it was trained with. Leave it out, or name a preset."
        )
    from unrolled.pipeline import load

    opened = load(model, device="cpu")
    said = [f"Task: {opened.kind}. It does: {', '.join(opened.verbs())}."]
    said += [f"The {name} is read as {how}." for name, how in opened.text.about().items()]
    said += [f"{score.name} {score.value:.3f} ({score.protocol})" for score in opened.scores]
    return opened.network, said


def _sketch(
    preset: str, config: str | None, assignments: Sequence[str], source: int, target: int
) -> tuple[nn.Module, list[str]]:
    """The network that train would make of a preset and what is set over it, for so many symbols."""
    from unrolled.runs.choosing import before_data
    from unrolled.workshop.plan import layers_of

    _, found, task = before_data(layers_of(preset, config, assignments=assignments))
    for setting in task.contextual:
        section, _, name = setting.partition(".")
        tokenizer = found.settings[section][name]
        if tokenizer["kind"] == "contextual":
            raise UsageError(
                f"describe: [{setting}] lets the saved model {tokenizer['model']} read the words, and how large that "
                "is depends on the data. Train it, and describe the model."
            )
    network, sizes = task.sketch(found.settings, source, target)
    changed = " with your settings" if config or assignments else ""
    return network, [f"A preset{changed}, shown with {sizes}."]
