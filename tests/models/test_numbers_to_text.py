"""A text written of numbers: rows alone as in a batch, step by step as in one pass, and it learns."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import BEGIN, END, PAD
from unrolled.models import MODELS, NumbersToText

CHANNELS, SYMBOLS = 3, 11


def model(**settings: object) -> NumbersToText:
    torch.manual_seed(1)
    small = {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 5}}
    tree = {"kind": "numbers_to_text", "front": {"kind": "frames", "size": 7}, "embedding_size": 5, "encoder": small}
    found = MODELS.build(tree | settings, CHANNELS, SYMBOLS, where="model")
    assert isinstance(found, NumbersToText)
    return found.eval()


def batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    frames = torch.randn(3, 9, CHANNELS)
    mask = torch.arange(9) < torch.tensor([9, 4, 7])[:, None]
    target = torch.tensor([[BEGIN, 5, 6, 7, END], [BEGIN, 8, END, PAD, PAD], [BEGIN, 9, 10, END, PAD]])
    return frames, mask, target, target != PAD


ENCODERS = ["rnn", {"kind": "pyramidal", "cell": {"kind": "lstm", "hidden_size": 5}, "layers": 2}, "cnn"]


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: one if isinstance(one, str) else one["kind"])
def test_rows_stand_alone_and_steps_make_the_whole(encoder):
    one, (frames, mask, target, target_mask) = model(encoder=encoder), batch()
    together = one.log_probs(frames, mask, target, target_mask)
    weights = one(frames, mask, target, target_mask).weights
    assert weights.shape == (3, 4, 9)
    torch.testing.assert_close(weights.sum(dim=2)[target_mask[:, 1:]], torch.ones(int(target_mask[:, 1:].sum())))
    assert (weights[~mask[:, None].expand_as(weights)] == 0).all()
    for row, (length, said) in enumerate(zip([9, 4, 7], [5, 3, 4], strict=True)):
        own = frames[row : row + 1, :length], mask[row : row + 1, :length]
        alone = one.log_probs(*own, target[row : row + 1, :said], target_mask[row : row + 1, :said])
        torch.testing.assert_close(together[row, : said - 1], alone[0], atol=1e-5, rtol=1e-5)
        state, steps = one.start(*own), []
        for place in range(said - 1):
            logits, _, state = one.step(target[row : row + 1, place], state)
            steps.append(logits.log_softmax(dim=-1)[0, target[row, place + 1]])
        torch.testing.assert_close(torch.stack(steps), alone[0], atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_differences():
    one, (frames, mask, target, target_mask) = model().double(), batch()
    frames = frames.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda given: one.loss(given, mask, target, target_mask), frames)


def test_noise_and_dropout_are_for_training_alone():
    one, given = model(front={"kind": "frames", "size": 7, "noise": 0.5, "dropout": 0.3}), batch()
    assert one.loss(*given).item() == one.loss(*given).item()
    one.train()
    assert one.loss(*given).item() != one.loss(*given).item()


def test_what_does_not_fit_is_named():
    one, (frames, mask, target, target_mask) = model(), batch()
    with pytest.raises(UsageError, match=r"source have the shape \[0, 9, 3\]; they must be \[batch, …\] of numbers"):
        one.loss(frames[:0], mask[:0], target[:0], target_mask[:0])
    with pytest.raises(UsageError, match=r"source_mask is torch.bool \[2, 9\]; it must be torch.bool \[3, positions\]"):
        one.loss(frames, mask[:2], target, target_mask)
    with pytest.raises(SettingsError, match=r"coverage_loss.*this decoder has no attention"):
        model(decoder="fixed", coverage_loss=1.0)


def test_the_doubly_stochastic_term_is_that_of_the_paper_and_of_training_alone():
    torch.manual_seed(4)
    model = NumbersToText(2, 9, encoder="plain", dropout=0.0, doubly_stochastic=0.5)
    weights = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    held = torch.tensor([[[1.0] * 4] * 3, [[1.0, 1.0, 0.0, 0.0]] * 3])  # the second row has two real positions
    real = torch.tensor([[True] * 4, [True, True, True, False]])  # a target of three symbols, one of two
    found = model.train().penalty(weights * held, real)
    first = sum((1 - weights[0, :, place].sum()) ** 2 for place in range(4))
    second = sum((1 - weights[1, :2, place].sum()) ** 2 for place in range(2))
    torch.testing.assert_close(found, 0.5 * (first + second))
    slope = torch.autograd.grad(found, weights)[0]
    assert (slope[1, :, 2:] == 0).all() and (slope[1, 2] == 0).all()
    assert model.eval().penalty(weights, real) is None
    with pytest.raises(SettingsError, match=r"\[doubly_stochastic\] it was asked for, and this decoder has no"):
        NumbersToText(2, 9, decoder="fixed", doubly_stochastic=1.0)
