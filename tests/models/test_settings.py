"""No dead options: every setting of every part, at every value it allows, trains two steps."""

from __future__ import annotations

import copy
import itertools
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest
import torch
from annotated_types import Ge, Interval

from unrolled.base.registry import Registry
from unrolled.base.settings import choices
from unrolled.layers import cross_entropy
from unrolled.models import BRIDGES, DECODERS, ENCODERS, MODELS
from unrolled.models.language_model import LanguageModel
from unrolled.models.seq2seq import Seq2Seq

SIZE = 6
"""Of everything, so that every attention fits and every number of heads that is tried divides it."""

COUNTS, SIZES = [1, 3], [4, 6]
CELL = {"kind": "lstm", "hidden_size": SIZE}
STACK = {"layers": 2, "heads": 2, "feedforward_size": 7, "dropout": 0.0}
BASES: dict[str, dict[str, Any]] = {
    "model seq2seq": {
        "kind": "seq2seq",
        "embedding_size": SIZE,
        "dropout": 0.0,
        "encoder": {"kind": "rnn", "cell": CELL, "bidirectional": False},
        "decoder": {"kind": "query_before", "cell": CELL, "attention": {"kind": "additive", "hidden_size": 4}},
    },
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
    "model numbers_to_text": {
        "kind": "numbers_to_text",
        "embedding_size": SIZE,
        "dropout": 0.0,
        "encoder": {"kind": "rnn", "cell": CELL, "bidirectional": False},
        "decoder": {"kind": "query_before", "cell": CELL, "attention": {"kind": "additive", "hidden_size": 4}},
    },
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


def fitting(name: str, tree: dict[str, Any]) -> dict[str, Any]:
    """Copying a state needs equal layouts."""
    if name == "bridge.copy":
        tree = put(tree, ("decoder", "layers"), 1)
    return tree


CASES = dict(every(Kinds(MODELS, "seq2seq"), (), {}, set()))
READING = dict(every(Kinds(MODELS, "language_model"), (), {}, {"cell"}))


def test_every_registered_part_is_among_them() -> None:
    assert {f"{noun}.{kind}" for noun, registry in (("encoder", ENCODERS), ("decoder", DECODERS), ("bridge", BRIDGES))
            for kind in registry} <= set(CASES)  # fmt: skip
    assert len(CASES) > 250


MARKS: dict[str, tuple[float, ...]] = {}
"""What each case was seen to do: parameters, first loss, first gradient, and where it looked."""


def train_two_steps(name: str, pairs: Any) -> None:
    batch = pairs([9, 4], [2, 4])  # so long that three halvings leave two positions
    tree = fitting(name, CASES[name])
    torch.manual_seed(0)
    model = MODELS.build(tree, *((13, 13) if tree.get("tie") == "all" else (11, 13)), where="model")
    assert isinstance(model, Seq2Seq)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = [weight.detach().clone() for weight in model.parameters()]
    gold = batch.target_ids[:, 1:][batch.target_mask[:, 1:]]
    torch.manual_seed(1)
    for step in range(2):
        optimizer.zero_grad()
        forced = model(*batch)
        loss = cross_entropy(forced.logits, gold) + (0 if forced.penalty is None else forced.penalty)
        loss.backward()
        if step == 0:
            slopes = sum(weight.grad.double().abs().sum().item() for weight in model.parameters())
            looked = 0.0 if forced.weights is None else (forced.weights * torch.arange(10)).sum().item()
            size, drawn = (sum(part) for part in zip(*((one.numel(), one.sum().item()) for one in before), strict=True))
            MARKS[name] = (size, round(drawn, 5), round(loss.item(), 5), round(slopes, 4), round(looked, 4))
        optimizer.step()
    assert loss.isfinite()
    learnt = zip(model.named_parameters(), before, strict=True)
    assert not [key for (key, weight), old in learnt if torch.equal(weight, old)]
    assert torch.equal(model.eval()(*batch).logits, model(*batch).logits)


@pytest.mark.parametrize("name", list(CASES))
def test_every_value_of_every_setting_trains_two_steps(name: str, pairs: Any) -> None:
    train_two_steps(name, pairs)


ALIKE = {
    "input_dropout": ({"None", "0.0"},),  # the same as dropout, which is 0 here
    "peephole": ({"True", "diagonal"}, {"False", "none"}),
    "residual": ({"True", "2"},),
    "bidirectional": ({"True", "first"},),  # there is one layer here
    **dict.fromkeys(("size", "hidden_size", "readout_size"), ({"None", str(SIZE)},)),
}
"""Two ways to say the same."""


def test_no_two_values_of_a_setting_and_no_two_kinds_of_a_part_do_the_same(pairs: Any) -> None:
    groups: dict[str, dict[str, str]] = {}
    for name in CASES:
        setting, equals, value = name.partition("=")
        group, value = (setting, value) if equals else name.rpartition(".")[::2]
        groups.setdefault(group, {})[value] = name
        if name not in MARKS:
            train_two_steps(name, pairs)
    for group, cases in groups.items():
        for (one, first), (other, second) in itertools.combinations(cases.items(), 2):
            if {one, other} not in ALIKE.get(group.rpartition(".")[2], ()):
                assert MARKS[first] != MARKS[second], f"{group}: {one} and {other} do the same"
    assert {len(cases) for cases in groups.values()} - {1}


@pytest.mark.parametrize("name", list(READING))
def test_every_value_of_a_language_model_trains_two_steps(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS.build(READING[name], 11, where="model")
    assert isinstance(model, LanguageModel)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = [weight.detach().clone() for weight in model.parameters()]
    ids, targets = torch.randint(1, 11, (4, 6)), torch.arange(24).reshape(4, 6) % 11
    mask = torch.arange(6) < torch.tensor([[6], [4], [5], [6]])
    state = model.initial(4)
    for _ in range(2):
        optimizer.zero_grad()
        loss, after = model.loss(ids, mask, targets, state)
        loss.backward()
        optimizer.step()
        state = tuple(tensor.detach() for tensor in after)
    assert loss.isfinite()
    learnt = zip(model.named_parameters(), before, strict=True)
    assert not [key for (key, weight), old in learnt if torch.equal(weight, old)]
    model.eval()
    found = [model.log_probs(ids, mask, targets, state)[0] for _ in range(2)]
    assert torch.equal(found[0], found[1]) and (found[0][mask] < 0).all()


# --- networks of other tasks ------------------------------------------------------------------------------------------

SEEN = {"encoder", "decoder", "bridge", "cell", "attention", "reach", "normaliser", "coverage", "positions"}
"""Parts whose settings `CASES` tries: here all their kinds are."""

OTHERS = {
    name if name.startswith(kind) else f"{kind}.{name}": tree
    for kind in ("numbers_to_text", "numbers_to_label", "classifier", "tagger")
    for name, tree in every(Kinds(MODELS, kind), (), {}, set(SEEN))
    if (kind, name) != ("tagger", "encoder.pyramidal")  # each word needs a place of its own
}
LENGTHS = torch.tensor([[12], [9], [11], [12]])
REAL = torch.arange(12) < LENGTHS
IDS = torch.arange(48).reshape(4, 12) * 7 % 9 + 2
OTHER_MARKS: dict[str, tuple[float, ...]] = {}


def loss_of(model: torch.nn.Module, tree: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, what is said) of one batch."""
    kind = tree["kind"]
    if kind in ("numbers_to_text", "numbers_to_label"):
        front = tree.get("front", "frames")
        draw = torch.Generator().manual_seed(3)
        given, mask = torch.randn(4, 12, 3, generator=draw), REAL
        if "image" in (front, front["kind"] if isinstance(front, Mapping) else ""):
            pixels = torch.randn(4, 8, 8, 3, generator=draw) * 60 + 127
            given, mask = torch.cat((pixels, torch.ones(4, 8, 8, 1)), dim=3), torch.ones(4, 4, dtype=torch.bool)
        if kind == "numbers_to_label":
            logits = model(given, mask).logits
            return model.loss(logits, torch.tensor([0, 4, 1, 1])), logits
        target = IDS[:, :5]
        loss = model.loss(given, mask, target, target > 0)
        return loss, model.log_probs(given, mask, target, target > 0)
    if kind == "tagger":
        spelt = torch.arange(24).reshape(1, 6, 4) % 9 + 4
        scores = model(IDS, REAL, spelt, IDS % 6)
        return model.loss(scores, IDS % 5, REAL), scores
    logits = model(IDS, REAL).logits
    return model.loss(logits, torch.tensor([0, 4, 1, 1])), logits


def built(tree: Mapping[str, Any]) -> torch.nn.Module:
    sizes: tuple[Any, ...] = {
        "numbers_to_text": (3, 13),
        "classifier": (13, 5, False),
        "numbers_to_label": (3, 5, False),
        "tagger": (13, 14, 5, None, torch.ones(13, dtype=torch.bool)),
    }[tree["kind"]]
    model = MODELS.build(tree, *sizes, where="model")
    if hasattr(model, "weigh"):
        model.weigh([1, 2, 3, 4, 5], 15)
    return model


def train_other(name: str) -> None:
    tree = fitting(name.removeprefix("numbers_to_text."), OTHERS[name])
    torch.manual_seed(0)
    model = built(tree)
    learning = [(key, weight) for key, weight in model.named_parameters() if weight.requires_grad]
    before = [weight.detach().clone() for _, weight in learning]
    optimizer = torch.optim.Adam([weight for _, weight in learning], lr=0.01)
    torch.manual_seed(1)
    for step in range(2):
        optimizer.zero_grad()
        loss, _ = loss_of(model, tree)
        loss.backward()
        if step == 0:
            slopes = sum(weight.grad.double().abs().sum().item() for _, weight in learning if weight.grad is not None)
            size, drawn = (sum(part) for part in zip(*((one.numel(), one.sum().item()) for one in before), strict=True))
            OTHER_MARKS[name] = (size, round(drawn, 5), round(loss.item(), 5), round(slopes, 4))
        optimizer.step()
    assert loss.isfinite()
    assert not [key for (key, weight), old in zip(learning, before, strict=True) if torch.equal(weight, old)]
    model.eval()
    assert torch.equal(loss_of(model, tree)[1], loss_of(model, tree)[1])


@pytest.mark.parametrize("name", list(OTHERS))
def test_every_value_of_other_networks_trains_two_steps(name: str) -> None:
    train_other(name)


def test_no_two_values_of_other_networks_do_the_same() -> None:
    groups: dict[str, dict[str, str]] = {}
    for name in OTHERS:
        setting, equals, value = name.partition("=")
        group, value = (setting, value) if equals else name.rpartition(".")[::2]
        groups.setdefault(group, {})[value] = name
        if name not in OTHER_MARKS:
            train_other(name)
    for group, cases in groups.items():
        for (one, first), (other, second) in itertools.combinations(cases.items(), 2):
            if {one, other} not in ALIKE.get(group.rpartition(".")[2], ()):
                assert OTHER_MARKS[first] != OTHER_MARKS[second], f"{group}: {one} and {other} do the same"
