"""The classifier: every setting trains, padding and neighbours change nothing, losses are torch's own."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.settings import choices
from unrolled.models import ENCODERS, MODELS, POOLINGS, Classifier

BASE = {
    "kind": "classifier",
    "embedding_size": 6,
    "dropout": 0.0,
    "encoder": {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 3}},
}
SMALL = {
    "transformer": {"layers": 1, "heads": 2, "feedforward_size": 7, "dropout": 0.0},
    "cnn": {"layers": 1, "hidden_size": 4, "dropout": 0.0},
    "ngram": {"widest": 2, "hidden_size": 3},
    "feedforward": {"reach": 1, "hidden_size": 6},
    "pyramidal": {"cell": {"kind": "gru", "hidden_size": 3}},
}


def build(several=False, **given):
    torch.manual_seed(0)
    model = MODELS.build(BASE | given, 11, 3, several, where="model")
    assert isinstance(model, Classifier)
    return model


def batch(lengths):
    torch.manual_seed(1)
    lengths = torch.tensor(lengths)
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    return torch.randint(1, 11, mask.shape) * mask, mask


TRIED = [
    *({"encoder": {"kind": one, **SMALL.get(one, {})}, "pooling": pooling} for one in ENCODERS for pooling in POOLINGS),
    {"dropout": 0.4}, {"input_dropout": 0.4}, {"input_dropout": 0.4, "dropout_kind": "locked"}, {"word_dropout": 0.4},
    {"embedding_scale": "root"}, {"class_weights": "balanced"}, {"embedding_size": 4},
]  # fmt: skip


def test_every_setting_is_tried():
    assert {name for tree in TRIED for name in tree} == set(choices(MODELS["classifier"]))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("tree", TRIED, ids=str)
def test_every_value_of_every_setting_trains_two_steps(tree, several):
    model = build(several, **copy.deepcopy(tree))
    model.weigh([5, 2, 1], 8)
    ids, mask = batch([9, 4, 2])
    targets = torch.tensor([[1, 0, 1], [0, 1, 0], [0, 0, 0]]).bool() if several else torch.tensor([0, 1, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    before = [weight.detach().clone() for weight in model.parameters()]
    for _ in range(2):
        optimizer.zero_grad()
        loss = model.loss(model(ids, mask).logits, targets)
        loss.backward()
        optimizer.step()
    assert loss.isfinite()
    still = [
        name for (name, weight), old in zip(model.named_parameters(), before, strict=True) if torch.equal(weight, old)
    ]
    assert not still
    model.eval()
    found, weights = model.probabilities(ids, mask)
    assert torch.equal(found, model.probabilities(ids, mask)[0]) and ((found >= 0) & (found <= 1)).all()
    if weights is not None:
        assert weights.shape == ids.shape and torch.allclose(weights.sum(1), torch.ones(3), atol=1e-5)
        assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("pooling", list(POOLINGS))
@pytest.mark.parametrize("encoder", ["rnn", "pyramidal", "transformer"])
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4), more=st.integers(0, 5))
@settings(max_examples=10)
def test_a_row_hangs_neither_on_padding_nor_on_its_neighbours(pooling, encoder, lengths, more):
    model = build(pooling=pooling, encoder={"kind": encoder, **SMALL.get(encoder, BASE["encoder"])}).eval()
    ids, mask = batch(lengths)
    wide = functional.pad(ids, (0, more), value=5), functional.pad(mask, (0, more))
    found, weights = model(*wide)
    for row, length in enumerate(lengths):
        alone, read = model(ids[row : row + 1, :length], mask[row : row + 1, :length])
        assert torch.allclose(found[row], alone[0], atol=1e-5)
        if weights is not None:
            assert torch.allclose(weights[row, :length], read[0], atol=1e-5)


def test_pooling_by_hand():
    ids, mask = batch([5, 3])
    for kind in POOLINGS:
        model = build(pooling=kind).eval()
        encoded = model.encoder(model.embedding(ids), mask)
        vector, weights = model.pooling(encoded)
        for row, length in enumerate([5, 3]):
            states = encoded.output[row, :length]
            wanted = {
                "last": torch.cat([states[-1, :3], states[0, 3:]]),
                "mean": states.mean(0),
                "max": states.max(0).values,
                "attention": None if weights is None else weights[row, :length] @ states,
            }[kind]
            assert torch.allclose(vector[row], wanted, atol=1e-6), kind


def test_losses_are_torchs():
    logits = torch.randn(4, 3, dtype=torch.float64).float().requires_grad_()
    targets = torch.tensor([0, 2, 1, 0])
    counts, rows = [6, 3, 1], 10
    weights = torch.tensor([10 / (3 * 6), 10 / (3 * 3), 10 / 3])
    for smoothing in (0.0, 0.1):
        model = build()
        model.weigh(counts, rows)
        wanted = functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        _alike(model.loss(logits, targets, smoothing), wanted, logits)
        model = build(class_weights="balanced")
        model.weigh(counts, rows)
        each = functional.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
        _alike(model.loss(logits, targets, smoothing), (each * weights[targets]).sum(), logits)
        assert (weights * torch.tensor(counts)).sum() == pytest.approx(rows)
        model = build(True, class_weights="balanced")
        model.weigh(counts, rows)
        wanted_ids = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]])
        soft = wanted_ids * (1 - smoothing) + smoothing / 2
        positive = torch.tensor([4 / 6, 7 / 3, 9.0])
        by_hand = -(positive * soft * logits.sigmoid().log() + (1 - soft) * (1 - logits.sigmoid()).log()).sum()
        _alike(model.loss(logits, wanted_ids.bool(), smoothing), by_hand, logits)


def _alike(found, wanted, logits):
    assert torch.allclose(found, wanted, atol=1e-5)
    first, second = torch.autograd.grad(found, logits)[0], torch.autograd.grad(wanted, logits)[0]
    assert torch.allclose(first, second, atol=1e-5)
