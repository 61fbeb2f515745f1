"""The loss by blocks of rows is torch's cross-entropy, values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.layers import cross_entropy, loss
from unrolled.layers.kernels import compiled


def both(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Our loss and gradient, torch's loss and gradient; the loss is weighted so that its gradient is not 1."""
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    ours = cross_entropy(mine, targets, smoothing)
    (ours * 0.7).backward()
    wide = theirs.to(torch.promote_types(logits.dtype, torch.float32))
    other = functional.cross_entropy(wide, targets, reduction="sum", label_smoothing=smoothing)
    (other * 0.7).backward()
    return ours, mine.grad, other, theirs.grad


@pytest.fixture(params=["compiled", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of walking over rows."""
    if request.param == "torch":
        monkeypatch.setattr(compiled, "possible", lambda tensor: False)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [0, 1, 5, 6, 7])
@pytest.mark.usefixtures("way")
def test_equals_torch_across_blocks(
    rows: int, dtype: torch.dtype, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "BLOCK", 3 * 11)  # three rows a block
    torch.manual_seed(rows)
    logits = (4 * torch.randn(rows, 11)).to(dtype)
    ours, mine, other, theirs = both(logits, torch.randint(0, 11, (rows,)), smoothing)
    assert ours.dtype == (torch.float64 if dtype is torch.float64 else torch.float32)
    torch.testing.assert_close(ours, other)
    assert mine.dtype is dtype
    rounding = {"rtol": 2e-2, "atol": 1e-5} if dtype is torch.bfloat16 else {}
    torch.testing.assert_close(mine, theirs, **rounding)


def test_a_vocabulary_larger_than_a_block_and_extreme_logits() -> None:
    torch.manual_seed(0)
    logits = torch.randn(2, loss.BLOCK + 3)
    logits[0, 5], logits[1, 7] = 300.0, -300.0
    ours, mine, other, theirs = both(logits, torch.tensor([9, 7]), 0.0)
    torch.testing.assert_close(ours, other)
    torch.testing.assert_close(mine, theirs)


def test_gradient_check_and_a_second_backward() -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 4, 2])
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x, targets, 0.2), (logits,))
    total = cross_entropy(logits, targets)
    (first,) = torch.autograd.grad(total, logits, retain_graph=True)
    (second,) = torch.autograd.grad(3 * total, logits)
    torch.testing.assert_close(second, 3 * first)


def test_without_gradients_nothing_is_kept() -> None:
    assert cross_entropy(torch.randn(3, 5), torch.tensor([0, 4, 2])).grad_fn is None


@pytest.mark.parametrize(
    "logits, targets, smoothing, message",
    [
        (torch.zeros(2, 3, 5), torch.zeros(2), 0.0, r"logits have shape \[2, 3, 5\] .* \[n, vocabulary\] and \[n\]"),
        (torch.zeros(2, 5), torch.zeros(3).long(), 0.0, r"targets \[3\]"),
        (torch.zeros(2, 5), torch.zeros(2).long(), 1.0, r"smoothing 1\.0 was given; .* below 1"),
    ],
)
def test_what_does_not_fit_is_refused(logits: Tensor, targets: Tensor, smoothing: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cross_entropy(logits, targets, smoothing)


@pytest.mark.parametrize("vocabulary", [1, 63, 64, 65, 200])
@pytest.mark.usefixtures("way")
def test_any_size_of_vocabulary(vocabulary: int) -> None:
    torch.manual_seed(vocabulary)
    logits = 4 * torch.randn(3, vocabulary, dtype=torch.float64)
    ours, mine, other, theirs = both(logits, torch.randint(0, vocabulary, (3,)), 0.1)
    torch.testing.assert_close((ours, mine), (other, theirs), rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("way")
def test_a_logit_that_is_no_number_makes_a_loss_that_is_none() -> None:
    logits = torch.zeros(2, 70)
    logits[1, 66] = torch.nan
    assert cross_entropy(logits, torch.tensor([0, 1])).isnan()


@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_target_that_is_not_of_the_vocabulary_is_refused(wrong: int) -> None:
    with pytest.raises(UsageError, match="targets hold a number that is not of a vocabulary of 5 symbols"):
        cross_entropy(torch.zeros(2, 5), torch.tensor([0, wrong]))
