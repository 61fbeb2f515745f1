"""From presets, a file and flags to one complete tree of settings that knows where each value came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from unrolled.base.errors import SettingsError, known
from unrolled.base.settings import Tree, assignment, complete, leaves, merge, read_yaml

USUAL_TASK = "translate"
"""The task of settings that name none."""

SECTIONS = ("task", "text", "data", "model", "train", "search")


@dataclass(frozen=True)
class Plan:
    """Complete settings, and the origin of each leaf by its dotted path (a preset, a file, a flag, the default)."""

    settings: Tree
    origins: dict[str, str]

    def table(self) -> list[tuple[str, Any, str]]:
        """(name, value, origin) of every setting, in order."""
        return [(path, value, self.origin(path)) for path, value in leaves(self.settings).items()]

    def origin(self, path: str) -> str:
        """Where the value at ``path`` came from; a kind that was given by its bare name has its part's origin."""
        return self.origins.get(path) or self.origins.get(path.removesuffix(".kind"), "default")


def preset_names() -> list[str]:
    """The presets that are built in."""
    folder = resources.files("unrolled") / "presets"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def read_preset(name: str) -> Tree:
    """The tree of a built-in preset; SettingsError with the nearest name for an unknown one."""
    names = preset_names()
    if name not in names:
        raise SettingsError(f"no preset is called '{name}'. {known(name, names)}")
    with resources.as_file(resources.files("unrolled") / "presets" / f"{name}.yaml") as path:
        tree = read_yaml(path)
    return {section: value for section, value in tree.items() if section in SECTIONS}


def task_of(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> str | None:
    """The kind of task that the layers name, the last one wins; None where none does."""
    kind = None
    for _, layer in layers:
        named = layer.get("task")
        named = named.get("kind") if isinstance(named, Mapping) else named
        kind = kind if named is None else str(named)
    return kind


SET = ("preset ", "file ", "flag")
"""How origins begin of what somebody has set."""


def data_of(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> Tree:
    """The complete section ``data`` of the layers, which does not depend on the task."""
    from unrolled.data.settings import DataSettings

    return _section(DataSettings, merge(layers)[0], "data")


def plan(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> Plan:
    """Lay trees over each other (the last wins), check every section, fill in every default."""
    from unrolled.tasks import TASKS

    layers = list(layers)
    for origin, layer in layers:
        for section in layer:
            if section not in SECTIONS:
                raise SettingsError(f"[{origin}] no section is called '{section}'. {known(section, SECTIONS)}")
    task = TASKS.build(task_of(layers) or USUAL_TASK, where="task")
    # What a section is where nothing says, so that ``model: {dropout: 0}`` needs no kind.
    kinds: Tree = {"task": {"kind": task_of(layers) or USUAL_TASK}, "model": {"kind": task.models[0]}}
    tree, origins = merge([("default", kinds), *layers])
    for setting, why in task.unused.items():
        if origins.get(setting, "").startswith(SET):
            section, _, name = setting.partition(".")
            raise SettingsError(f"[{setting}] {tree[section][name]} was given, and {why} Leave it out.")
    return Plan(complete_tree(tree), origins)


def complete_tree(tree: Mapping[str, Any]) -> Tree:
    """Every section of a tree checked against the signature of what it builds, with its defaults."""
    from unrolled.data.settings import DataSettings
    from unrolled.models import MODELS
    from unrolled.search import SearchSettings
    from unrolled.tasks import TASKS
    from unrolled.train.settings import TrainSettings

    task = TASKS.build(tree.get("task", USUAL_TASK), where="task")
    settings = {
        "task": TASKS.complete(tree.get("task", USUAL_TASK), "task"),
        "text": _section(task.text.settings, tree, "text"),
        "data": _section(DataSettings, tree, "data"),
        "model": MODELS.complete(tree.get("model", task.models[0]), "model"),
        "train": _section(TrainSettings, tree, "train"),
        "search": _section(SearchSettings, tree, "search"),
    }
    task.check(settings)
    return settings


def _section(build: Any, tree: Mapping[str, Any], name: str) -> Tree:
    values = tree.get(name, {})
    if not isinstance(values, Mapping):
        raise SettingsError(f"[{name}] {values!r} was given where a mapping of settings is expected.")
    settings = complete(build, values, name)
    try:
        build(**settings)
    except ValueError as error:
        raise SettingsError(f"[{name}] {error}") from None
    return settings


def layers_of(
    preset: str | None,
    config: str | None = None,
    flags: Mapping[str, Any] | None = None,
    assignments: Sequence[str] = (),
    resumed: Mapping[str, Any] | None = None,
) -> list[tuple[str, Mapping[str, Any]]]:
    """The layers in the order preset < resumed run < file < flag. A settings file may name its ``preset``.

    Where neither names one, there is none: see ``with_preset``.
    """
    written = read_yaml(config) if config else {}
    named = written.pop("preset", None)
    name = preset or named
    found: list[tuple[str, Mapping[str, Any]]] = []
    if name:
        found.append((f"preset {name}", read_preset(str(name))))
    if resumed:
        found.append(("resumed run", resumed))
    if config:
        found.append((f"file {config}", written))
    if flags:
        found.append(("flag", flags))
    found += [(f"flag --set {text}", assignment(text)) for text in assignments]
    return found


def with_preset(layers: Sequence[tuple[str, Mapping[str, Any]]], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The layers with a preset below them, where none is among them."""
    if any(origin.startswith("preset ") for origin, _ in layers):
        return list(layers)
    return [(f"preset {name}", read_preset(name)), *layers]
