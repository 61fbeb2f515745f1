"""Settings that follow from files of vectors: words for a tokenizer, and an embedding as wide as the vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.settings import Tree, merge
from unrolled.data.vectors import width_of
from unrolled.tasks import TASKS
from unrolled.text.given import VECTORS

Layers = Sequence[tuple[str, Mapping[str, Any]]]

ORIGIN = "the vectors"


def with_vectors(layers: Layers, kind: str, file: str | None = None) -> list[tuple[str, Mapping[str, Any]]]:
    """The layers, and right above the preset what the vectors that they name say.

    ``file``: vectors that all words that are only read (where there are none, all words) start from and learn on.
    SettingsError where the files differ in width, or a layer above the preset wants another embedding size.
    """
    task: Any = TASKS[kind]
    if file is not None:
        layers = [*layers, ("flag --vectors", _started(task, kind, file))]
    whole = merge(layers)[0]
    tree: Tree = {}
    widths: dict[str, tuple[int, str]] = {}  # of each setting: width, file
    frozen = False
    for setting in sorted(set(task.read_by.values())):
        section, _, name = setting.partition(".")
        tokenizer = _below(_below(whole, section), name)
        if tokenizer.get("vectors") is None:
            continue
        given = VECTORS.build(tokenizer["vectors"], where=f"{setting}.vectors")
        widths[f"{setting}.vectors"] = width_of(given.file), given.file
        frozen |= given.frozen or bool(given.joined)
        if "kind" not in tokenizer:
            tree.setdefault(section, {})[name] = {"kind": "word"}
    if not widths:
        return list(layers)
    tree["model"] = {"embedding_size": _one(widths)}
    above = next((place + 1 for place, (origin, _) in enumerate(layers) if origin.startswith("preset ")), 0)
    _refuse_other_size(layers[above:], widths)
    return [*layers[:above], (ORIGIN, merge([("", tree), ("", task.frozen if frozen else {})])[0]), *layers[above:]]


def _started(task: Any, kind: str, file: str) -> Tree:
    columns = [column for column in task.embedded if column not in task.written] or list(task.embedded)
    if not columns:
        raise UsageError(f"--vectors: the task '{kind}' has no words that could start from a file. Leave it out.")
    tree: Tree = {}
    for column in columns:
        section, _, name = task.read_by[column].partition(".")
        tree.setdefault(section, {})[name] = {"vectors": {"kind": "tuned", "file": file}}
    return tree


def _below(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What stands under ``name``; nothing where it is no mapping, as whoever checks the settings will say."""
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}


def _one(widths: Mapping[str, tuple[int, str]]) -> int:
    """The width that all files share."""
    (first, (width, file)), *others = widths.items()
    for setting, (other, name) in others:
        if other != width:
            raise SettingsError(
                f"[{setting}] the vectors of {name} have {other} numbers, those of {file} ([{first}]) {width}, and "
                "both sides have one embedding size. Take files of one width."
            )
    return width


def _refuse_other_size(layers: Layers, widths: Mapping[str, tuple[int, str]]) -> None:
    size = _below(merge(layers)[0], "model").get("embedding_size")
    for setting, (width, file) in widths.items():
        if size is not None and size != width:
            raise SettingsError(
                f"[model.embedding_size] {size} was given, and the vectors of {file} ([{setting}]) have {width} "
                "numbers. Leave the size out, it follows from the vectors, or take another file."
            )
