"""Every setting of a part at every value that it allows, for tests that no option is dead."""

from __future__ import annotations

import copy
import itertools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from annotated_types import Ge, Interval

from unrolled.base.registry import Registry
from unrolled.base.settings import choices

SIZE = 6
"""Of everything, so that every attention fits and every number of heads that is tried divides it."""

COUNTS, SIZES = [1, 3], [4, 6]
CELL = {"kind": "lstm", "hidden_size": SIZE}
STACK = {"layers": 2, "heads": 2, "feedforward_size": 7, "dropout": 0.0}
WRITING = {
    "embedding_size": SIZE,
    "dropout": 0.0,
    "encoder": {"kind": "rnn", "cell": CELL, "bidirectional": False},
    "decoder": {"kind": "query_before", "cell": CELL, "attention": {"kind": "additive", "hidden_size": 4}},
}
BASES: dict[str, dict[str, Any]] = {
    "model seq2seq": {"kind": "seq2seq", **WRITING},
    "model language_model": {
        "kind": "language_model",
        "embedding_size": SIZE,
        "dropout": 0.0,
        "history": {"kind": "rnn", "cell": CELL},
    },
    "history rnn": {"cell": CELL},
    "history feedforward": {"window": 2, "hidden_size": SIZE},
    "softmax adaptive": {"cutoffs": [4, 7], "shrink": 2.0},
    "encoder rnn": {"cell": CELL, "bidirectional": False},
    "encoder pyramidal": {"cell": {"kind": "lstm", "hidden_size": 3}},
    "encoder transformer": STACK,
    "encoder cnn": {"layers": 2, "hidden_size": 4, "dropout": 0.0},
    "encoder ngram": {"widest": 2, "hidden_size": 3},
    "encoder feedforward": {"reach": 1, "hidden_size": SIZE},
    "decoder query_before": {"cell": CELL},
    "decoder query_after": {"cell": CELL},
    "decoder gnmt": {"cell": CELL, "layers": 2},
    "decoder fixed": {"cell": CELL},
    "decoder transformer": STACK,
    "decoder feedforward": {"window": 2, "hidden_size": SIZE},
    "cell lstm": {"hidden_size": SIZE},
    "cell gru": {"hidden_size": SIZE},
    "cell elman": {"hidden_size": SIZE},
    "attention multi_head": {"heads": 2},
    "reach local_m": {"window": 2},
    "reach local_p": {"window": 2},
    "model numbers_to_text": {"kind": "numbers_to_text", **WRITING},
    "model classifier": {"embedding_size": SIZE, "dropout": 0.0, "encoder": {"kind": "rnn", "cell": CELL}},
    "model numbers_to_label": {"dropout": 0.0, "encoder": {"kind": "rnn", "cell": CELL}},
    "model tagger": {
        "embedding_size": SIZE,
        "character_size": 4,
        "character_hidden_size": 4,
        "dropout": 0.0,
        "encoder": {"kind": "rnn", "cell": CELL},
    },
    "front frames": {"size": SIZE},
    "front image": {"grid": {"kind": "convolutional", "sizes": [4, 6]}},
    "jitter affine": {"shift": 0.3},
    "grid convolutional": {"sizes": [4, 6]},
    "augmentation specaugment": {"time_share": 0.9, "channel_width": 1},
}
"""What a part is given beside the one setting that is tried."""

BESIDE: dict[str, dict[str, Any]] = {
    "residual": {"layers": 3},
    "dropout": {"layers": 3},
    "dropout_kind": {"layers": 3, "dropout": 0.4},
    "alignment_layer": {"layers": 3},
    "hidden_size": {"heads": 1},
    "readout_size": {"readout": "tanh"},
    "outer_bias": {"reset": "after"},
}
"""What a setting needs beside it in order to show."""

OPEN: dict[str, list[Any]] = {
    "positions": [10, 12],
    "fertility": [None, 1.5],
    "cutoffs": [[4, 7], [5]],
    "shrink": [1.5, 2.0],
    "sizes": [[4, 6], [2, 6]],
    "strides": [None, [1, 2]],
    "width": [1, 3],
    "turn": [0.0, 30.0],
    "time_share": [0.4, 0.9],
}
"""Values of settings whose own range begins elsewhere."""


def values(annotation: Any, whole: list[int]) -> list[Any]:
    """Every value of a closed choice, two of an open one; ``whole`` are those of a whole number."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return list(parts)
    if annotation is bool:
        return [False, True]
    if annotation is type(None):
        return [None]
    if annotation is int:
        return whole
    if annotation is float:
        return [0.0, 0.4]
    if hasattr(annotation, "__metadata__"):
        least = max((one.ge or 0 for one in annotation.__metadata__ if isinstance(one, Ge | Interval)), default=0)
        return [max(least, value) if parts[0] is int else value for value in values(parts[0], whole)]
    if origin is typing.Union or isinstance(annotation, types.UnionType):
        return [value for part in parts for value in values(part, whole)]
    raise TypeError(f"no values for {annotation}")


def registry_of(annotation: Any) -> Registry | None:
    return next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Registry)), None)


def put(tree: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dict(tree))
    at = changed
    for name in path[:-1]:
        at[name] = {"kind": at[name]} if isinstance(at.get(name), str) else at.get(name, {})
        at = at[name]
    at[path[-1]] = value
    return changed


class Kinds:
    """Some kinds of a registry."""

    def __init__(self, registry: Registry, *kinds: str) -> None:
        self.noun, self.registry, self.kinds = registry.noun, registry, kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __getitem__(self, kind: str) -> Any:
        return self.registry[kind]


def every(
    registry: Registry | Kinds, path: tuple[str, ...], tree: Mapping[str, Any], deep: set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, settings of a model): each kind of the part at ``path``, and each of its settings at each value.

    Parts inside a part show all their kinds everywhere, and all their settings where they are met first.
    """
    for kind in registry:
        part = {"kind": kind, **BASES.get(f"{registry.noun} {kind}", {})}
        base = put(tree, path, part) if path else part
        here = ".".join((*path, kind))
        yield here, base
        if registry.noun in deep:
            continue
        for name, (annotation, _) in choices(registry[kind]).items():
            beside = {key: value for key, value in BESIDE.get(name, {}).items() if key in choices(registry[kind])}
            given = base
            for key, value in beside.items():
                given = put(given, (*path, key), value)
            inner = registry_of(annotation)
            if inner is None:
                for value in OPEN.get(name) or values(annotation, SIZES if name.endswith("size") else COUNTS):
                    yield f"{here}.{name}={value}", put(given, (*path, name), value)
                continue
            if type(None) in typing.get_args(typing.get_args(annotation)[0]):
                yield f"{here}.{name}=None", put(given, (*path, name), None)
            yield from every(inner, (*path, name), given, deep)
            if path:
                deep.add(inner.noun)
    deep.add(registry.noun)


ALIKE = {
    "input_dropout": ({"None", "0.0"},),  # the same as dropout, which is 0 here
    "peephole": ({"True", "diagonal"}, {"False", "none"}),
    "residual": ({"True", "2"},),
    "bidirectional": ({"True", "first"},),  # there is one layer here
    **dict.fromkeys(("size", "hidden_size", "readout_size"), ({"None", str(SIZE)},)),
}
"""Two ways to say the same."""

SEEN = {"encoder", "decoder", "bridge", "cell", "attention", "reach", "normaliser", "coverage", "positions"}
"""Parts whose settings `CASES` tries: here all their kinds are."""


def refuse_alike(cases: Iterable[str], marks: Mapping[str, Any], train: Callable[[str], None]) -> None:
    """No two values of a setting and no two kinds of a part do the same, by the ``marks`` that ``train`` leaves."""
    groups: dict[str, dict[str, str]] = {}
    for name in cases:
        setting, equals, value = name.partition("=")
        group, value = (setting, value) if equals else name.rpartition(".")[::2]
        groups.setdefault(group, {})[value] = name
        if name not in marks:
            train(name)
    assert {len(group) for group in groups.values()} - {1}
    for group, found in groups.items():
        for (one, first), (other, second) in itertools.combinations(found.items(), 2):
            if {one, other} not in ALIKE.get(group.rpartition(".")[2], ()):
                assert marks[first] != marks[second], f"{group}: {one} and {other} do the same"
