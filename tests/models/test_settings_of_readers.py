"""No dead options in readers, the forecaster and handwriting: every setting at every value trains two steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from every_setting import ALIKE, BASES, BESIDE, CELL, OPEN, SEEN, SIZE, STACK, Kinds, every, refuse_alike

from unrolled.base.protocol import END
from unrolled.models import MODELS, Asked
from unrolled.models.forecaster import Extent, pinball

RNN = {"kind": "rnn", "cell": CELL, "bidirectional": False}
BASES |= {
    "model reader": {"embedding_size": SIZE, "size": SIZE, "dropout": 0.0, "encoder": RNN},
    "model deep_reader": {"embedding_size": SIZE, "dropout": 0.0, "cell": CELL},
    "model forecaster": {
        "size": SIZE,
        "dropout": 0.0,
        "encoder": RNN,
        "decoder": {"kind": "query_after", "cell": CELL},
    },
    "model handwriting": {"history": {"kind": "rnn", "cell": CELL}, "components": 3, "label_size": 4},
    "reading attentive": {"attention": {"kind": "additive", "hidden_size": 4}},
    "reading impatient": {"attention": {"kind": "additive", "hidden_size": 4}},
    "decoder transformer": STACK,
}
BESIDE["skips"] = {"layers": 3}
ALIKE["last_size"] = ({"None", str(SIZE)},)  # None: the others' own
ALIKE["question_encoder"] = ({"None", "rnn"},)  # None: as the encoder
OPEN["quantiles"] = [(0.1, 0.5, 0.9), (0.5,)]

REFUSED = ("encoder.pyramidal", "attention.dot", "attention.scaled_dot", "pointer.dot", "pointer.scaled_dot")
"""Each word needs a place of its own, and query and memory have different sizes in a reader."""

UNSEEN = ("pointers.1.value", "pointers.1.output")
"""What the last pointer would read is not looked at, only where."""

CASES = {
    f"{kind}.{name.removeprefix(f'{kind}.')}": tree
    for kind in ("reader", "deep_reader", "forecaster", "handwriting")
    for name, tree in every(Kinds(MODELS, kind), (), {}, set(SEEN))
    if not (kind == "reader" and name.endswith(REFUSED))
}
VOCABULARY, ANSWERS = 17, 3
EXTENT = Extent(2, 5, 4, 1, 6, 5, 3, "refuse")
MARKS: dict[str, tuple[float, ...]] = {}


def built(kind: str, tree: Mapping[str, Any], *, spans: bool) -> torch.nn.Module:
    if kind == "forecaster":
        return MODELS.build(tree, EXTENT, where="model")
    if kind == "handwriting":
        return MODELS.build(tree, 2, 2.0, 0.1, where="model")
    model = MODELS.build(tree, VOCABULARY, 0 if spans else ANSWERS, 0, where="model")
    model.spell([-1] * 12 + [place % ANSWERS for place in range(5)])
    return model


def question() -> Asked:
    """Four documents of up to nine symbols, answers among them, and questions."""
    draw = torch.Generator().manual_seed(4)
    sides = []
    for lengths in ([9, 7, 9, 8], [5, 3, 4, 5]):
        size = torch.tensor(lengths)
        mask = torch.arange(max(lengths)) < size.unsqueeze(1)
        ids = torch.randint(4, VOCABULARY, mask.shape, generator=draw)
        ids[torch.arange(4), size - 1] = END
        sides += [ids * mask, mask]
    sides[0][:, 0], sides[0][:, 1], sides[0][:, 2] = 12, 13, 14  # each answer stands there
    return Asked(*sides, torch.full((4, 2), -1))


def loss_of(kind: str, model: Any, *, spans: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, what is said) of one batch."""
    draw = torch.Generator().manual_seed(5)
    if kind == "forecaster":
        mask = torch.arange(6) < torch.tensor([[6], [4], [6]])
        past = torch.randn(3, 6, EXTENT.channels, generator=draw) * mask.unsqueeze(2)
        seen = mask.unsqueeze(2).expand(-1, -1, EXTENT.numbers).clone()
        future = torch.randn(3, EXTENT.horizon, EXTENT.ahead, generator=draw)
        said = model(past, mask, seen, future)
        gold = torch.randn(said.quantiles.shape[:3], generator=draw)
        return pinball(said, model.quantiles, gold, torch.ones_like(gold, dtype=torch.bool)), said.quantiles
    if kind == "handwriting":
        points = torch.randn(4, 6, 3, generator=draw)
        points[..., 2] = torch.randint(0, 2, (4, 6), generator=draw)
        said = model(points, torch.arange(6) < torch.tensor([[6], [4], [5], [6]]), torch.tensor([1, 2, 0, 1]))
        return -said.sum(), said
    said = model(question()).logits
    target = torch.tensor([[1, 3], [0, 2], [2, 2], [1, 1]])
    return model.loss(said, target if spans else target[:, :1]), said


def train(name: str) -> None:
    kind, _, setting = name.partition(".")
    spans = setting.startswith("pointer")
    torch.manual_seed(0)
    model = built(kind, CASES[name], spans=spans)
    before = [weight.detach().clone() for weight in model.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(1)
    for step in range(2):
        optimizer.zero_grad()
        loss, _ = loss_of(kind, model, spans=spans)
        loss.backward()
        if step == 1:  # the first finds weights that begin at zero
            given = [weight.grad for weight in model.parameters() if weight.grad is not None]
            slopes = sum(grad.double().abs().sum().item() for grad in given)
            MARKS[name] = (sum(map(torch.numel, before)), round(loss.item(), 5), round(slopes, 4))
        optimizer.step()
    assert loss.isfinite()
    still = [
        key for (key, weight), old in zip(model.named_parameters(), before, strict=True) if torch.equal(weight, old)
    ]
    assert not [key for key in still if not key.startswith(UNSEEN)]
    model.eval()
    assert torch.equal(*(loss_of(kind, model, spans=spans)[1] for _ in range(2)))


@pytest.mark.parametrize("name", list(CASES))
def test_every_value_trains_two_steps(name: str) -> None:
    train(name)


def test_no_two_values_do_the_same() -> None:
    refuse_alike(CASES, MARKS, train)
