"""The torch model behind the step protocol offers what a brute-force log-softmax says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from small_parts import DECODERS, ENCODERS

from unrolled.base.protocol import BEGIN
from unrolled.models import MODELS as MODELS_OF_TEXT
from unrolled.models import Seq2Seq, TorchStepper

MODELS = {
    **{kind: {"decoder": decoder} for kind, decoder in DECODERS.items()},
    "copying": {"copy": True, "encoder": ENCODERS["pyramidal"], "decoder": DECODERS["query_before"]},
}


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest, small: Callable[..., Seq2Seq]) -> Seq2Seq:
    return small(double=False, **MODELS[request.param])


@pytest.mark.parametrize("k", [1, 3, 13, 50])
def test_the_k_best_are_those_of_the_whole_distribution(k: int, model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs([3, 1, 4], [2, 4, 0])
    stepper = TorchStepper(model)
    assert stepper.vocabulary_size == 13
    state = stepper.start(batch.source_ids.numpy(), batch.source_mask.numpy())
    last = np.full(3, BEGIN)
    for _ in range(3):
        with torch.no_grad():
            expected = model.step(torch.from_numpy(last), state).logits.double().log_softmax(dim=1).numpy()
        scores, ids, weights, state = stepper.step(last, state, k)
        order = np.argsort(-expected, axis=1)[:, :k]
        assert ids.dtype == np.int64
        assert scores.dtype == np.float32
        np.testing.assert_array_equal(ids, order)
        np.testing.assert_allclose(scores, np.take_along_axis(expected, order, axis=1), rtol=1e-5, atol=1e-5)
        if weights is not None:
            assert weights.dtype == np.float32
            np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)
            assert (weights[~batch.source_mask.numpy()] == 0).all()
        last = ids[:, 0]


def test_following_the_gold_symbols_gives_log_probs(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs([3, 1, 4], [2, 4, 0])
    stepper = TorchStepper(model)
    with torch.no_grad():
        expected = model.log_probs(*batch).numpy()
    state = stepper.start(batch.source_ids.numpy(), batch.source_mask.numpy())
    target, real = batch.target_ids.numpy(), batch.target_mask.numpy()
    for place in range(target.shape[1] - 1):
        scores, ids, _, state = stepper.step(target[:, place], state, 13)
        found = np.take_along_axis(scores, np.argmax(ids == target[:, place + 1, None], axis=1)[:, None], axis=1)[:, 0]
        rows = real[:, place + 1]
        np.testing.assert_allclose(found[rows], expected[rows, place], rtol=1e-4, atol=1e-5)


def test_select_repeats_and_reorders_rows(model: Seq2Seq, pairs: Callable) -> None:
    batch = pairs([3, 1, 4], [2, 4, 0])
    stepper = TorchStepper(model)
    state = stepper.start(batch.source_ids.numpy(), batch.source_mask.numpy())
    state = stepper.step(np.full(3, BEGIN), state, 1).state
    last, rows = np.array([4, 5, 6]), np.array([2, 2, 0, 1])
    one = stepper.step(last, state, 13)
    other = stepper.step(last[rows], stepper.select(state, rows), 13)
    np.testing.assert_allclose(other.scores, one.scores[rows], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(other.ids, one.ids[rows])


def test_it_ignores_autocast_gradients_and_training_mode(small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    model = small(dropout=0.5, double=False).train()
    batch = pairs([3], [2])
    stepper = TorchStepper(model)
    seen = []
    for precision in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision):
            state = stepper.start(batch.source_ids.numpy(), batch.source_mask.numpy())
            seen.append(stepper.step(np.array([BEGIN]), state, 13))
    np.testing.assert_array_equal(seen[0].scores, seen[1].scores)
    assert not any(part.requires_grad for part in seen[0].state)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_in_bfloat16_it_says_nearly_the_same(encoder: str, small: Callable[..., Seq2Seq], pairs: Callable) -> None:
    near(small(double=False, encoder=ENCODERS[encoder]), pairs([3, 1, 4], [2, 4, 0]))


def test_every_decoder_runs_in_bfloat16(model: Seq2Seq, pairs: Callable) -> None:
    near(model, pairs([3, 1, 4], [2, 4, 0]))


def near(model: Seq2Seq, batch: Any) -> None:
    """Forced log-probabilities of the model in bfloat16 beside those of its float32 self: a few rounding errors of
    2⁻⁸ apart, and not none; the model itself stays as it was."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stepper = TorchStepper(model, precision="bfloat16")
    with torch.no_grad():
        expected = model.log_probs(*batch).numpy()
    state = stepper.start(batch.source_ids.numpy(), batch.source_mask.numpy())
    target, real = batch.target_ids.numpy(), batch.target_mask.numpy()
    apart = []
    for place in range(target.shape[1] - 1):
        scores, ids, _, state = stepper.step(target[:, place], state, 13)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(np.exp(scores.astype(np.float64)).sum(axis=1), 1, atol=1e-5)
        found = np.take_along_axis(scores, np.argmax(ids == target[:, place + 1, None], axis=1)[:, None], axis=1)[:, 0]
        apart.append(np.abs(found - expected[:, place])[real[:, place + 1]])
    state = stepper.select(state, np.array([2, 0]))
    stepper.step(np.array([BEGIN, BEGIN]), state, 3)
    assert 0 < np.concatenate(apart).max() < 0.05
    for name, value in model.state_dict().items():
        assert value.dtype == before[name].dtype and torch.equal(value, before[name])


LSTM = {"kind": "lstm", "hidden_size": 32}
GRU = {"kind": "gru", "hidden_size": 64, "reset": "after"}
WIDE: dict[str, dict[str, Any]] = {
    "after": {"decoder": {"kind": "query_after", "cell": LSTM}, "tie": "target"},
    "before": {"decoder": {"kind": "query_before", "cell": GRU, "attention": {"kind": "additive", "hidden_size": 32}}},
    "gnmt": {"decoder": {"kind": "gnmt", "cell": LSTM, "layers": 3}},
    "transformer": {
        "encoder": {"kind": "transformer", "layers": 1, "heads": 2, "feedforward_size": 64},
        "decoder": {"kind": "transformer", "layers": 2, "heads": 2, "feedforward_size": 64},
    },
    "copying": {"decoder": {"kind": "query_after", "cell": LSTM}, "copy": True},
}


@pytest.mark.parametrize("kind", WIDE)
def test_with_sizes_of_whole_tiles_too(kind: str, pairs: Callable) -> None:
    torch.manual_seed(3)
    encoder = {"encoder": {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 32}}}
    model = Seq2Seq(11, 13, embedding_size=32, dropout=0.0, **{**encoder, **WIDE[kind]}).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)
    near(model, pairs([3, 1, 4], [2, 4, 0]))


@pytest.mark.parametrize("kind", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("size", [32, 50])
def test_a_language_model_says_nearly_the_same_in_bfloat16(kind: str, size: int) -> None:
    torch.manual_seed(5)
    history = {"kind": "rnn", "cell": {"kind": kind, "hidden_size": size}, "layers": 2}
    model = MODELS_OF_TEXT.build({"kind": "language_model", "embedding_size": 32, "history": history}, 45).eval()
    exact, fast = TorchStepper(model), TorchStepper(model, precision="bfloat16")
    ids, mask = np.array([[7, 9, 11], [8, 0, 0]]), np.array([[True, True, True], [True, False, False]])
    states = [stepper.start(ids, mask) for stepper in (exact, fast)]
    last = np.full(2, BEGIN)
    for _ in range(4):
        said = [stepper.step(last, state, 45) for stepper, state in zip((exact, fast), states, strict=True)]
        ordered = [np.take_along_axis(one.scores, one.ids.argsort(axis=1), axis=1) for one in said]
        np.testing.assert_allclose(*ordered, atol=0.05)
        states, last = [one.state for one in said], said[0].ids[:, 0]
