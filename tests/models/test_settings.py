"""No dead options: every setting of every part, at every value it allows, trains two steps."""

from __future__ import annotations

import copy
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest
import torch

from unrolled.base.registry import Registry
from unrolled.base.settings import choices
from unrolled.layers import cross_entropy
from unrolled.models import BRIDGES, DECODERS, ENCODERS, MODELS
from unrolled.models.seq2seq import Seq2Seq

SMALL: dict[str, Any] = {
    "kind": "seq2seq",
    "embedding_size": 5,
    "dropout": 0.0,
    "encoder": {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 3}, "bidirectional": True},
    "bridge": {"kind": "projection"},
    "decoder": {"kind": "query_before", "cell": {"kind": "lstm", "hidden_size": 6}, "attention": {"kind": "additive"}},
}
TWO_LAYERS = {"residual", "dropout", "dropout_kind"}
"""Settings that show with more than one layer only."""


def values(annotation: Any, default: Any) -> list[Any]:
    """Every value of a closed choice, two of an open one; a part's kinds come one by one."""
    for owner in getattr(annotation, "__metadata__", ()):
        if isinstance(owner, Registry):
            return list(owner)
    base = typing.get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    if typing.get_origin(base) is Literal:
        return list(typing.get_args(base))
    if base is bool:
        return [False, True]
    if base is float:
        return [0.0, 0.4]
    if base is int:
        return [1, 3]
    inner = [part for part in typing.get_args(base) if part is not type(None)]
    return [None, *values(inner[0], default)]


def nested(tree: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dict(tree))
    at = changed
    for name in path[:-1]:
        at[name] = {"kind": at[name]} if isinstance(at.get(name), str) else at.get(name, {})
        at = at[name]
    at[path[-1]] = value
    return changed


def every() -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, settings of a model): one setting away from a small model."""
    registries = {(): MODELS, ("encoder",): ENCODERS, ("bridge",): BRIDGES, ("decoder",): DECODERS}
    for path, registry in registries.items():
        for kind in registry:
            base = SMALL
            if path and kind != SMALL[path[0]]["kind"]:
                part = {"kind": kind}
                if path == ("decoder",):
                    part["cell"] = SMALL["decoder"]["cell"]
                base = nested(SMALL, path, part)
            if kind == "copy":
                base = nested(base, ("encoder", "cell", "hidden_size"), 6)
                base = nested(base, ("encoder", "bidirectional"), False)
            yield f"{'.'.join(path)} {kind}", base
            for name, (annotation, default) in choices(registry[kind]).items():
                for value in values(annotation, default):
                    at = (*path, name)
                    changed = nested(base, at, value)
                    if name in TWO_LAYERS and path in (("encoder",), ("decoder",)):
                        changed = nested(changed, (*path, "layers"), 2)
                    if name == "dropout_kind":
                        changed = nested(changed, (*path, "dropout"), 0.4)
                    yield f"{'.'.join(at)}={value}", fitting(changed, name, value)


def fitting(tree: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """What a value needs beside it: sizes that agree, a readout that has a size."""
    if name == "readout_size" and value is not None:
        return nested(tree, ("decoder", "readout"), "tanh") if tree["decoder"]["kind"] == "fixed" else tree
    if name == "attention":
        return nested(tree, ("decoder", "cell", "hidden_size"), 6)
    if name == "cell":
        width = 6 if tree["decoder"].get("cell") == value else 3
        side = "decoder" if width == 6 else "encoder"
        return nested(tree, (side, "cell", "hidden_size"), width)
    if name == "bridge" and value == "copy":
        tree = nested(tree, ("encoder", "cell", "hidden_size"), 6)
        return nested(tree, ("encoder", "bidirectional"), False)
    return tree


CASES = list(every())


def test_the_list_is_as_long_as_the_registries_say() -> None:
    settings = sum(
        len(choices(registry[kind])) for registry in (MODELS, ENCODERS, BRIDGES, DECODERS) for kind in registry
    )
    assert len(CASES) > 2 * settings


@pytest.mark.parametrize("name, tree", CASES, ids=[name for name, _ in CASES])
def test_every_value_of_every_setting_trains_two_steps(name: str, tree: dict[str, Any], pairs: Any) -> None:
    batch = pairs([3, 1], [2, 4])
    sizes = (13, 13) if tree.get("tie") == "all" else (11, 13)
    torch.manual_seed(0)
    model = MODELS.build(tree, *sizes, where="model")
    assert isinstance(model, Seq2Seq)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = [weight.detach().clone() for weight in model.parameters()]
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        gold = batch.target_ids[:, 1:][batch.target_mask[:, 1:]]
        loss = cross_entropy(model(*batch).logits, gold)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(torch.tensor(losses).isfinite())
    moved = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    unmoved = [key for (key, _), changed in zip(model.named_parameters(), moved, strict=True) if not changed]
    assert not unmoved
    assert torch.equal(model.eval()(*batch).logits, model(*batch).logits)
