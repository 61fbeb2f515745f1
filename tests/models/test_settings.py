"""No dead options: every setting of every part, at every value it allows, trains two steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from every_setting import SEEN, Kinds, every, put, refuse_alike

from unrolled.layers import cross_entropy
from unrolled.models import BRIDGES, DECODERS, ENCODERS, MODELS
from unrolled.models.language_model import LanguageModel
from unrolled.models.seq2seq import Seq2Seq


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


def test_no_two_values_of_a_setting_and_no_two_kinds_of_a_part_do_the_same(pairs: Any) -> None:
    refuse_alike(CASES, MARKS, lambda name: train_two_steps(name, pairs))


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
    refuse_alike(OTHERS, OTHER_MARKS, train_other)
