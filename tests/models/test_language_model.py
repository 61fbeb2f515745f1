"""A language model's numbers: pieces equal the whole, gradients stop where they should, chances add up."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN
from unrolled.layers import CELLS
from unrolled.layers.weights import to_torch
from unrolled.models import LanguageModel
from unrolled.models.stepper import TorchStepper

SYMBOLS = 11
HISTORIES: dict[str, dict[str, Any]] = {
    **{f"rnn of {cell}": {"kind": "rnn", "cell": {"kind": cell, "hidden_size": 5}, "layers": 2} for cell in CELLS},
    "rnn, last layer wider": {"kind": "rnn", "cell": {"kind": "gru", "hidden_size": 3}, "layers": 2, "last_size": 7},
    "rnn with skips": {"kind": "rnn", "cell": {"kind": "gru", "hidden_size": 3}, "layers": 2, "skips": True},
    "window": {"kind": "feedforward", "window": 3, "hidden_size": 5},
    "window of one": {"kind": "feedforward", "window": 1, "hidden_size": 5},
}  # fmt: skip
SOFTMAXES: dict[str, dict[str, Any]] = {
    "tied": {"tie": True},
    "own": {"tie": False},
    "adaptive": {"tie": False, "softmax": {"kind": "adaptive", "cutoffs": [4, 7], "shrink": 2.0}},
}


def build(history: dict[str, Any], **settings: Any) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel(SYMBOLS, **{"embedding_size": 3, "history": history, "dropout": 0.0, **settings}).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
    return model.eval()


def text(rows: int, time: int, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    ids = torch.randint(4, SYMBOLS, (rows, time + 1))
    ids[:, 0] = BEGIN
    return ids


def log_probs(model: LanguageModel, ids: Tensor, state: Any = None, mask: Tensor | None = None) -> tuple[Tensor, Any]:
    given, targets = ids[:, :-1], ids[:, 1:]
    mask = torch.ones_like(given, dtype=torch.bool) if mask is None else mask
    return model.log_probs(given, mask, targets, model.initial(len(ids)) if state is None else state)


@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("history", HISTORIES)
def test_pieces_with_the_state_carried_are_the_whole(history: str, softmax: str) -> None:
    model, ids = build(HISTORIES[history], **SOFTMAXES[softmax]), text(2, 7)
    whole, end = log_probs(model, ids)
    first, state = log_probs(model, ids[:, :4])
    second, last = log_probs(model, ids[:, 3:], state)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-6)
    for one, other in zip(last, end, strict=True):
        assert torch.allclose(one, other)


@pytest.mark.parametrize("history", HISTORIES)
def test_padding_and_neighbours_change_nothing(history: str) -> None:
    model, ids = build(HISTORIES[history]), text(3, 5)
    mask = torch.arange(5) < torch.tensor([[5], [2], [3]])
    together, ends = log_probs(model, ids, mask=mask)
    assert (together[~mask] == 0).all()
    for row, length in enumerate((5, 2, 3)):
        alone, end = log_probs(model, ids[row : row + 1, : length + 1])
        assert torch.allclose(together[row, :length], alone[0], atol=1e-6)
        for one, other in zip(ends, end, strict=True):
            assert torch.allclose(one[row], other[0])


@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("history", HISTORIES)
def test_steps_say_what_the_whole_pass_says(history: str, softmax: str) -> None:
    model, ids = build(HISTORIES[history], **SOFTMAXES[softmax]), text(2, 5)
    whole, _ = log_probs(model, ids)
    state = model.start(ids[:, :1], torch.ones(2, 1, dtype=torch.bool))
    for place in range(5):
        logits, weights, state = model.step(ids[:, place], state)
        said = logits.log_softmax(1)
        assert weights is None and torch.allclose(said.exp().sum(1), torch.ones(2, dtype=said.dtype))
        assert torch.allclose(said.gather(1, ids[:, place + 1 : place + 2])[:, 0].float(), whole[:, place], atol=1e-5)


@pytest.mark.parametrize("history", HISTORIES)
def test_a_beginning_of_any_length_is_read_before_the_first_step(history: str) -> None:
    model, ids = build(HISTORIES[history]).float(), text(3, 4)
    mask = torch.arange(5) < torch.tensor([[5], [1], [3]])
    engine = TorchStepper(model)
    state = engine.start(ids.numpy(), mask.numpy())
    found = engine.step(torch.full((3,), BEGIN).numpy(), state, SYMBOLS)
    for row, length in enumerate((5, 1, 3)):
        alone = engine.start(ids[row : row + 1, :length].numpy(), mask[row : row + 1, :length].numpy())
        one = engine.step(torch.full((1,), BEGIN).numpy(), alone, SYMBOLS)
        assert torch.allclose(torch.from_numpy(found.scores[row]), torch.from_numpy(one.scores[0]), atol=1e-5)
        after = model.step(torch.tensor([5]), model.select(found.state, torch.tensor([row])))
        plain, _ = log_probs(model, torch.cat([ids[row : row + 1, :length], torch.tensor([[5, 6]])], 1))
        assert float(after.logits.detach().log_softmax(1)[0, 6]) == pytest.approx(
            float(plain[0, -1].detach()), abs=1e-4
        )


@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("history", HISTORIES)
def test_the_loss_is_minus_the_log_probabilities_with_their_gradient(history: str, softmax: str) -> None:
    model, ids = build(HISTORIES[history], **SOFTMAXES[softmax]), text(2, 5)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    total, _ = model.loss(ids[:, :-1], mask, ids[:, 1:], model.initial(2))
    said, _ = log_probs(model, ids, mask=mask)
    assert total.item() == pytest.approx(-said.sum().item(), rel=1e-5)
    own = torch.autograd.grad(total, list(model.parameters()))
    plain = torch.autograd.grad(-said.sum(), list(model.parameters()))
    for one, other in zip(own, plain, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_a_uniform_model_is_as_perplexed_as_it_has_symbols() -> None:
    model, ids = build(HISTORIES["rnn of gru"]), text(2, 5)
    with torch.no_grad():
        for weight in model.softmax.parameters():
            weight.zero_()
    said, _ = log_probs(model, ids)
    assert math.exp(-said.mean().item()) == pytest.approx(SYMBOLS, rel=1e-5)


def test_the_lstm_of_a_language_model_is_torch_s() -> None:
    """An oracle that nobody here wrote: torch.nn.LSTM with the same weights, and an untied output."""
    model = build(HISTORIES["rnn of lstm"], tie=False)
    ids = text(2, 6)
    other = nn.LSTM(3, 5, num_layers=2, batch_first=True).double()
    other.load_state_dict(to_torch(model.history.stacks[0]))
    hidden, _ = other(model.embedding(ids[:, :-1]))
    output = model.softmax.output
    logits = hidden @ output.weight.T + output.bias
    wanted = logits.log_softmax(2).gather(2, ids[:, 1:, None])[:, :, 0]
    assert torch.allclose(log_probs(model, ids)[0], wanted.float(), atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.5},
        {"dropout": 0.5, "dropout_kind": "locked"},
        {"input_dropout": 0.5},
        {"embedding_dropout": 0.5},
        {"word_dropout": 0.5},
        {"history": {**HISTORIES["rnn of lstm"], "weight_dropout": 0.5}},
        {"history": {**HISTORIES["rnn of gru"], "dropout": 0.5, "dropout_kind": "locked"}},
        {"history": {**HISTORIES["window"], "dropout": 0.5}},
        {"activation_penalty": 2.0},
        {"slowness_penalty": 1.0},
    ],
    ids=str,
)
def test_what_is_left_to_chance_is_so_in_training_alone(options: dict[str, Any]) -> None:
    model = build(**{"history": HISTORIES["rnn of lstm"], **options})
    ids = text(2, 6)
    mask = torch.ones(2, 6, dtype=torch.bool)

    def loss() -> float:
        torch.manual_seed(3)
        return float(model.loss(ids[:, :-1], mask, ids[:, 1:], model.initial(2))[0])

    plain = loss()
    assert plain == loss() == pytest.approx(-float(log_probs(model, ids)[0].sum()), rel=1e-5)
    model.train()
    assert loss() != pytest.approx(plain, rel=1e-6)


def test_weight_dropout_drops_weights_of_the_hidden_product_once_a_piece() -> None:
    model = build({**HISTORIES["rnn of elman"], "layers": 1, "weight_dropout": 0.4}).train()
    cell = model.history.stacks[0].cells[0]
    before = cell.hidden_weight.detach().clone()
    total, _ = model.loss(
        *(text(2, 6)[:, :-1], torch.ones(2, 6, dtype=torch.bool), text(2, 6)[:, 1:], model.initial(2))
    )
    gradient = torch.autograd.grad(total, [cell.hidden_weight])[0]
    assert torch.equal(cell.hidden_weight, before) and isinstance(cell.hidden_weight, nn.Parameter)
    dropped = int((gradient == 0).sum())
    assert 0 < dropped < gradient.numel()  # the same weights at every step, or none would be without a gradient


def test_penalties_are_those_of_the_paper() -> None:
    history = HISTORIES["rnn of lstm"]
    ids, mask = text(2, 6), torch.ones(2, 6, dtype=torch.bool)
    given = (ids[:, :-1], mask, ids[:, 1:])
    plain = build(history).train()
    base = float(plain.loss(*given, plain.initial(2))[0])
    output, _ = plain.history(plain.embedding(ids[:, :-1]), mask, plain.initial(2))
    for name, wanted in (
        ("activation_penalty", output.square().mean() * 12),
        ("slowness_penalty", (output[:, 1:] - output[:, :-1]).square().mean() * 10),
    ):
        model = build(history, **{name: 2.0}).train()
        found = float(model.loss(*given, model.initial(2))[0]) - base
        assert found == pytest.approx(2 * float(wanted.detach()), rel=1e-4)


@settings(max_examples=20)
@given(seed=st.integers(0, 99), cuts=st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_an_adaptive_softmax_gives_chances(seed: int, cuts: list[int]) -> None:
    cuts = sorted(set(cuts))
    model = build(HISTORIES["window"], tie=False, softmax={"kind": "adaptive", "cutoffs": cuts, "shrink": 1.5})
    said = model.softmax(torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))
    assert torch.allclose(said.exp().sum(1), torch.ones(3, dtype=torch.float64))


def test_scaled_vectors_are_those_of_a_larger_embedding() -> None:
    scaled, plain = (build(HISTORIES["window"], tie=False, embedding_scale=scale) for scale in ("root", "none"))
    with torch.no_grad():
        plain.embedding.weight.mul_(3**0.5)
    assert torch.allclose(log_probs(scaled, text(2, 4))[0], log_probs(plain, text(2, 4))[0])


def test_weights_are_tied_where_there_are_more_symbols_than_numbers_in_a_vector() -> None:
    history = HISTORIES["window"]
    for size, softmax, tied in ((10, "full", True), (11, "full", False), (3, SOFTMAXES["adaptive"]["softmax"], False)):
        model = LanguageModel(SYMBOLS, embedding_size=size, history=history, softmax=softmax)
        assert any(weight is model.embedding.weight for weight in model.softmax.parameters()) == tied


def test_an_adaptive_softmax_says_what_does_not_fit() -> None:
    adaptive = {"kind": "adaptive", "cutoffs": [4, 7]}
    with pytest.raises(SettingsError, match=r"\[tie\] true was given, and the softmax 'adaptive' has no weights"):
        build(HISTORIES["window"], tie=True, softmax=adaptive)
    with pytest.raises(SettingsError, match=r"\[softmax.cutoffs\] \[7, 4\] was given; cutoffs are rising numbers"):
        build(HISTORIES["window"], tie=False, softmax=adaptive | {"cutoffs": [7, 4]})
    with pytest.raises(SettingsError, match=r"the vocabulary has 11 symbols: no cluster is left"):
        build(HISTORIES["window"], tie=False, softmax=adaptive | {"cutoffs": [2000]})
    with pytest.raises(SettingsError, match=r"\[softmax.shrink\] 4 was given, and a vector of 5 shrunk 2 times"):
        build(HISTORIES["window"], tie=False, softmax=adaptive)
