"""Saved models of contextual vectors that a run reads its text by: their sizes, their making, their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import SettingsError
from unrolled.base.settings import Tree, merge
from unrolled.pipeline import ContextualModel, load
from unrolled.tasks import TASKS, Task
from unrolled.tasks.vectors import contextual_sides

if TYPE_CHECKING:
    from torch import nn

Layers = Sequence[tuple[str, Mapping[str, Any]]]

ORIGIN = "the contextual vectors"

LONGEST = 4096
"""Symbols of a text that are read where they are characters, if the settings do not say."""


def with_contextual(layers: Layers, kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The layers, and right above the preset what the saved models that they name say: how wide an embedding is."""
    whole = merge(layers)[0]
    tree: Tree = {}
    for setting, place in TASKS[kind].contextual.items():  # type: ignore[attr-defined]
        section, _, name = setting.partition(".")
        tokenizer = whole.get(section, {}).get(name) if isinstance(whole.get(section), Mapping) else None
        if isinstance(tokenizer, Mapping) and tokenizer.get("kind") == "contextual" and "model" in tokenizer:
            opened = _opened(str(tokenizer["model"]), setting)
            if place.endswith("embedding"):
                tree = {"model": {"embedding_size": opened.network.output_size}, "data": {"max_length": LONGEST}}
    if not tree:
        return list(layers)
    above = next((place + 1 for place, (origin, _) in enumerate(layers) if origin.startswith("preset ")), 0)
    return [*layers[:above], (ORIGIN, tree), *layers[above:]]


def _opened(folder: str, setting: str) -> ContextualModel:
    found = load(folder, device="cpu")
    if not isinstance(found, ContextualModel):
        raise SettingsError(
            f"[{setting}.model] {folder} is a model of the task '{found.kind}', and contextual vectors are wanted. "
            "Train a model of them first: unrolled train text.txt --preset elmo-small."
        )
    return found


def take_readers(task: Task[Any], text: Any, folder: Path) -> None:
    """Note in tokenizers what the saved models are that they name, and keep the weights of these in ``folder``."""
    from unrolled.ship.weights import write_weights

    for side in contextual_sides(task, text):
        opened = _opened(side.tokenizer.settings["model"], side.setting)
        side.tokenizer.read_by(opened.plan.settings["model"])
        folder.mkdir(parents=True, exist_ok=True)
        write_weights(folder / f"{side.setting}.safetensors", opened.network.reader.state_dict())


def put_readers(task: Task[Any], text: Any, network: nn.Module, folder: Path) -> None:
    """Let a network read by the weights that ``take_readers`` kept."""
    from unrolled.ship.weights import read_weights

    for side in contextual_sides(task, text):
        path = folder / f"{side.setting}.safetensors"
        if path.is_file():
            side.module(network).reader.load_state_dict(read_weights(path, "cpu"))
