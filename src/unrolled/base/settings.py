"""Settings: plain trees, checked against the signatures of what they build, merged with their origins kept."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import SettingsError, known

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Tree = dict[str, Any]


@cache
def choices(build: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The settings that ``build`` takes: name → (annotation, default), read from its keyword-only parameters."""
    target = build.__init__ if inspect.isclass(build) else build
    hints = typing.get_type_hints(target, include_extras=True)
    return {
        name: (hints.get(name, Any), parameter.default)
        for name, parameter in inspect.signature(build).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def complete(build: Callable[..., Any], values: Mapping[str, Any], where: str = "", what: str = "") -> Tree:
    """``values`` checked against the signature of ``build``, defaults filled in, in the signature's order.

    Raises SettingsError, which names the place, what came, and the nearest or allowed values.
    """
    known_choices = choices(build)
    what = what or f"'{where or getattr(build, '__name__', 'settings')}'"
    place = f"[{where}] " if where else ""
    for name in values:
        if name not in known_choices:
            raise SettingsError(f"{place}no setting of {what} is called '{name}'. {known(str(name), known_choices)}")
    tree: Tree = {}
    for name, (annotation, default) in known_choices.items():
        if name not in values and default is inspect.Parameter.empty:
            raise SettingsError(f"{place}{what} needs the setting '{name}'.")
        tree[name] = check(annotation, values.get(name, default), f"{where}.{name}" if where else name)
    return tree


def check(annotation: Any, value: Any, where: str) -> Any:
    """``value`` as the annotated type, or SettingsError. A part (``Annotated[Part, REGISTRY]``) completes itself."""
    for owner in getattr(annotation, "__metadata__", ()):
        if hasattr(owner, "complete"):
            if value is None and type(None) in typing.get_args(typing.get_args(annotation)[0]):
                return None
            return owner.complete(value, where)
    if isinstance(value, bool) and not _takes_bool(annotation):
        raise SettingsError(f"[{where}] {_yaml(value)} was given where {_words(annotation)} is expected.")
    from pydantic import ValidationError

    try:
        return _adapter(annotation).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise SettingsError(f"[{where}] {_short(value)} was given; {reason[0].lower()}{reason[1:]}.") from None


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    """What checks values of an annotated type; making it takes longer than a step of a search."""
    from pydantic import TypeAdapter

    return TypeAdapter(annotation, config={"allow_inf_nan": False})


def _short(value: Any) -> str:
    """A value as Python writes it, its end left out where it is long."""
    written = repr(value)
    return written if len(written) <= 100 else f"{written[:100]}…"


def _takes_bool(annotation: Any) -> bool:
    parts = typing.get_args(annotation)
    return annotation in (bool, Any) or any(_takes_bool(part) or isinstance(part, bool) for part in parts)


def _words(annotation: Any) -> str:
    """What values of ``annotation`` are called."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _words(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, typing.get_args(annotation))))
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(map(str, typing.get_args(annotation)))
    kind = typing.get_origin(annotation) or annotation
    known = {int: "a whole number", float: "a number", str: "text", types.NoneType: "null"}
    return known.get(kind) or ("a mapping" if issubclass(kind, Mapping) else "a list")


def _yaml(value: bool) -> str:
    return "true" if value else "false"


def read_yaml(path: str | Path) -> Tree:
    """A settings file as a tree; SettingsError with the line for what is not YAML or not a mapping."""
    import yaml

    try:
        tree = yaml.safe_load(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"{path}: the settings file cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: the settings file is not UTF-8 text.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SettingsError(f"{path}{line}: not YAML ({getattr(error, 'problem', None) or error}).") from None
    _refuse_endless(tree, f"{path}")
    if tree is None:
        return {}
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise SettingsError(f"{path}: a settings file is a mapping of names to values, e.g. 'model: bahdanau'.")
    return tree


SIGNS = re.compile(r"[^\w\s\[\]{}~\"']+")
"""A value of marks alone, as a separator is: most of them begin something in YAML."""


def assignment(text: str) -> Tree:
    """``"train.minutes=3"`` as the tree ``{"train": {"minutes": 3}}``; the value is read as YAML, marks alone (a comma)
    as they are."""
    import yaml

    path, equals, raw = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise SettingsError(f"--set {text!r}: write it as name.name=value, e.g. --set train.learning_rate=0.001.")
    try:
        value: Any = raw if SIGNS.fullmatch(raw) else yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError):
        if raw[:1] not in ("%", "@", "`"):  # signs that no plain text of YAML begins with, as a format of times does
            raise SettingsError(f"--set {text!r}: the value is not YAML.") from None
        value = raw
    _refuse_endless(value, f"--set {text!r}")
    for key in reversed(keys):
        value = {key: value}
    return value


def _refuse_endless(tree: Any, where: str) -> None:
    """SettingsError for values that hold themselves, or that grow without end by naming each other (``*name``)."""
    left, count = [(tree, 0)], 0
    while left:
        value, depth = left.pop()
        count += 1
        if depth > MOST_DEEP or count > MOST_VALUES:
            what = f"values {MOST_DEEP} deep" if depth > MOST_DEEP else f"more than {MOST_VALUES:,} values"
            raise SettingsError(f"{where}: {what}. Does something name itself (&name, *name)? Write it out.")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(each, depth + 1) for each in inner]


MOST_DEEP, MOST_VALUES = 50, 100_000


def merge(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[Tree, dict[str, str]]:
    """Lay trees over each other, the last one wins; also each leaf's origin, by dotted path.

    A part that changes its ``kind`` starts afresh: settings of the other kind below it are dropped.
    """
    tree: Tree = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        _lay(tree, layer, origin, origins, "")
    return tree, origins


def _lay(tree: Tree, layer: Mapping[str, Any], origin: str, origins: dict[str, str], path: str) -> None:
    for name, value in layer.items():
        here = f"{path}{name}"
        below = tree.get(name)
        if isinstance(below, str) and isinstance(value, Mapping) and below == value.get("kind", below):
            below = tree[name] = {"kind": below}
            origins[f"{here}.kind"] = origins.pop(here)
        if isinstance(below, dict) and isinstance(value, str) and "kind" in below:
            value = {"kind": value}
        if isinstance(value, Mapping):
            same = isinstance(below, dict) and below.get("kind") == value.get("kind", below.get("kind"))
            if not same:
                for old in [key for key in origins if key == here or key.startswith(f"{here}.")]:
                    del origins[old]
                tree[name] = {}
            _lay(tree[name], value, origin, origins, f"{here}.")
            if not value:
                origins.setdefault(here, origin)
        else:
            for old in [key for key in origins if key.startswith(f"{here}.")]:
                del origins[old]
            tree[name] = value
            origins[here] = origin


def leaves(tree: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """A tree as dotted paths: ``{"train.seed": 1}``."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= leaves(value, f"{path}{name}.")
        else:
            flat[f"{path}{name}"] = value
    return flat
