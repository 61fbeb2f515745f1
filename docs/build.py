"""The reference pages, made from the registries: ``python docs/build.py`` writes them, ``--check`` compares.

What a part does is its docstring, its settings are its signature; neither is written twice.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"


def registries() -> dict[str, tuple[str, Any]]:
    """Heading → (where it stands in a settings file, registry)."""
    from unrolled.data.builtin import BUILTIN
    from unrolled.layers import ATTENTIONS, CELLS, COVERAGES, DROPOUTS, NORMALISERS, REACHES
    from unrolled.models import (
        ALIGNMENTS,
        BRIDGES,
        DECODERS,
        ENCODERS,
        FRONTS,
        GRIDS,
        HISTORIES,
        JITTERS,
        MODELS,
        POOLINGS,
        POSITIONS,
        SOFTMAXES,
    )
    from unrolled.search import SEARCHERS
    from unrolled.tasks import TASKS
    from unrolled.tasks.scores import MEASURES
    from unrolled.text.given import VECTORS
    from unrolled.text.reading import READERS
    from unrolled.text.tokenizer import TOKENIZERS
    from unrolled.train.averaging import AVERAGES
    from unrolled.train.optimizers import OPTIMIZERS
    from unrolled.train.schedules import SCHEDULES

    return {
        "Tasks": ("task", TASKS),
        "Tokenizers": ("text.source, text.target, text.tokenizer", TOKENIZERS),
        "Readers of what is no text": ("text.source", READERS),
        "Vectors from files": ("text.source.vectors, text.target.vectors, text.tokenizer.vectors", VECTORS),
        "Models": ("model", MODELS),
        "Encoders": ("model.encoder", ENCODERS),
        "Grids": ("model.grid", GRIDS),
        "Jitters": ("model.jitter", JITTERS),
        "Bridges": ("model.bridge", BRIDGES),
        "Decoders": ("model.decoder", DECODERS),
        "Alignments": ("model.alignment", ALIGNMENTS),
        "Histories": ("model.history", HISTORIES),
        "Softmaxes": ("model.softmax", SOFTMAXES),
        "Fronts": ("model.front", FRONTS),
        "Poolings": ("model.pooling", POOLINGS),
        "Positions": ("model.encoder.positions, model.decoder.positions", POSITIONS),
        "Attention": ("model.decoder.attention", ATTENTIONS),
        "Reach of an attention": ("model.decoder.attention.reach", REACHES),
        "Normalisers of an attention": ("model.decoder.attention.normaliser", NORMALISERS),
        "Coverage of an attention": ("model.decoder.attention.coverage", COVERAGES),
        "Cells": ("model.encoder.cell, model.decoder.cell, model.history.cell", CELLS),
        "Dropout": ("dropout_kind", DROPOUTS),
        "Searchers": ("search.kind", SEARCHERS),
        "Optimizers": ("train.optimizer", OPTIMIZERS),
        "Schedules": ("train.schedule", SCHEDULES),
        "Averages": ("train.average", AVERAGES),
        "Measures": ("unrolled evaluate", MEASURES),
        "Built-in data": ("unrolled demo", BUILTIN),
    }


def parts_page() -> str:
    """Every registered part: its docstring and its settings."""
    lines = [
        "# Parts",
        "",
        "Made from the registries by `make docs`. A setting is written where its part stands, e.g.",
        "",
    ]
    lines += [
        "```yaml",
        "model: {decoder: {kind: query_before, attention: {kind: additive, hidden_size: 256}}}",
        "```",
        "",
    ]
    for heading, (where, registry) in registries().items():
        lines += [f"## {heading}", "", f"In a settings file: `{where}`.", ""]
        for kind in registry:
            lines += [f"### `{kind}`", "", "```text", inspect.getdoc(registry[kind]) or "", "```", ""]
            lines += settings_table(registry[kind])
    return "\n".join(lines).rstrip() + "\n"


def settings_page() -> str:
    """The groups of settings that are no parts."""
    from unrolled.data.settings import DataSettings
    from unrolled.search import SearchSettings
    from unrolled.text.counted import CountedSettings
    from unrolled.text.labelled import LabelledSettings
    from unrolled.text.running import RunningSettings
    from unrolled.text.texts import TextSettings
    from unrolled.train.settings import TrainSettings
    from unrolled.workshop.plan import preset_names

    lines = [
        "# Settings",
        "",
        "Made from the signatures by `make docs`. Precedence: flag > file > resumed run > preset > default;",
        "`unrolled train DATA --explain-settings` shows every value with its origin.",
        "",
    ]
    lines += [f"Presets: {', '.join(f'`{name}`' for name in preset_names())}.", ""]
    for name, group in {
        "text": TextSettings,
        "text (language_model)": RunningSettings,
        "text (classify)": LabelledSettings,
        "text (word_vectors)": CountedSettings,
        "data": DataSettings,
        "train": TrainSettings,
        "search": SearchSettings,
    }.items():
        lines += [f"## `{name}`", "", "```text", inspect.getdoc(group) or "", "```", "", *settings_table(group)]
    return "\n".join(lines).rstrip() + "\n"


def tasks_page() -> str:
    """Which verb each task has; why not, and what does it, where there is none."""
    from unrolled.pipeline import TRAINED
    from unrolled.pipeline.model import VERBS

    head = [
        "# Tasks and verbs",
        "",
        "Made from the classes of trained models by `make docs`. Every model is also trained, described,",
    ]
    head += ["checked (`selfcheck`), saved and loaded.", "", f"| task | {' | '.join(f'`{verb}`' for verb in VERBS)} |"]
    lines = [*head, f"|---|{'---|' * len(VERBS)}"]
    for kind in TRAINED:
        model: Any = TRAINED[kind]
        cells = ["yes" if verb in model.verbs() else f"no: {model.lacks[verb]}" for verb in VERBS]
        lines.append(f"| `{kind}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def settings_table(build: Callable[..., Any]) -> list[str]:
    """A Markdown table of the settings that ``build`` takes; nothing where it takes none."""
    from unrolled.base.settings import choices

    found = choices(build)
    if not found:
        return []
    rows = [f"| `{name}` | {kind_of(annotation)} | `{default!r}` |" for name, (annotation, default) in found.items()]
    return ["| setting | kind | default |", "|---|---|---|", *rows, ""]


def kind_of(annotation: Any) -> str:
    """An annotation in words: the noun of a part, the choices of a literal, the name of a type."""
    arguments = typing.get_args(annotation)
    for owner in getattr(annotation, "__metadata__", ()):
        if hasattr(owner, "noun"):
            return f"{'an' if owner.noun[0] in 'aeiou' else 'a'} {owner.noun}"
    if hasattr(annotation, "__metadata__"):
        return kind_of(arguments[0])
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in arguments)
    if typing.get_origin(annotation) is list:
        inner = kind_of(arguments[0])
        return f"list of ({inner})" if " or " in inner else f"list of {inner}"
    if arguments:
        return " or ".join(kind_of(part) for part in arguments if part is not ...)
    return "nothing" if annotation is type(None) else getattr(annotation, "__name__", str(annotation))


def main() -> int:
    pages = {"parts.md": parts_page(), "settings.md": settings_page(), "tasks.md": tasks_page()}
    stale = []
    for name, text in pages.items():
        path = REFERENCE / name
        if "--check" in sys.argv:
            stale += [name] if not path.exists() or path.read_text(encoding="utf-8") != text else []
        else:
            REFERENCE.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}\n")
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}. Run: make docs\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
