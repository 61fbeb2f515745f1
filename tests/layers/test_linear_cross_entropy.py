"""The loss that never holds all logits is torch's linear and cross-entropy, values and gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.layers import loss
from unrolled.layers.kernels import compiled
from unrolled.layers.loss import linear_cross_entropy

Loss = Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]


def oracle(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    logits = functional.linear(hidden, weight, bias)
    return functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)


def case(rows: int, size: int, vocabulary: int, dtype: torch.dtype, seed: int = 0) -> tuple[list[Tensor], Tensor]:
    draw = torch.Generator().manual_seed(seed)
    shapes = ((rows, size), (vocabulary, size), (vocabulary,))
    tensors = [torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype) for shape in shapes]
    return tensors, torch.randint(0, vocabulary, (rows,), generator=draw)


def found(function: Loss, tensors: list[Tensor], targets: Tensor, smoothing: float) -> list[Tensor]:
    """The loss and the gradients of it times 0.7."""
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    total = function(*leaves, targets, smoothing)
    return [total.detach(), *torch.autograd.grad(0.7 * total, leaves)]


@pytest.fixture(params=["compiled", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of walking over rows."""
    if request.param == "torch":
        monkeypatch.setattr(compiled, "possible", lambda tensor: False)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Portions of two rows, blocks of one, slabs of three symbols."""
    for name, value in {"ROUND": 2, "HELD": 2 * 11, "BLOCK": 11, "SLAB": 3}.items():
        monkeypatch.setattr(loss, name, value)


@pytest.mark.parametrize("dtype, within", [(torch.float64, 1e-10), (torch.float32, 1e-6)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.usefixtures("small", "way")
def test_equals_torch_across_portions(rows: int, smoothing: float, dtype: torch.dtype, within: float) -> None:
    tensors, targets = case(rows, 5, 11, dtype)
    mine = found(linear_cross_entropy, tensors, targets, smoothing)
    exact = found(oracle, [tensor.double() for tensor in tensors], targets, smoothing)
    for one, other in zip(mine, exact, strict=True):
        assert one.dtype is dtype
        torch.testing.assert_close(one.double(), other, rtol=within, atol=within)


@settings(max_examples=15, deadline=None)
@given(rows=some.integers(0, 9), size=some.integers(1, 4), vocabulary=some.integers(1, 13), held=some.integers(1, 400))
def test_any_cut_adds_up_to_the_same(rows: int, size: int, vocabulary: int, held: int) -> None:
    tensors, targets = case(rows, size, vocabulary, torch.float64, seed=rows)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ROUND": 1, "HELD": held, "BLOCK": held, "SLAB": 1 + held % 5}.items():
            patch.setattr(loss, name, value)
        mine = found(linear_cross_entropy, tensors, targets, 0.0)
    for one, other in zip(mine, found(oracle, tensors, targets, 0.0), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_gradient_check_and_no_bias() -> None:
    (hidden, weight, bias), targets = case(3, 2, 5, torch.float64)
    leaves = tuple(tensor.requires_grad_() for tensor in (hidden, weight, bias))
    assert torch.autograd.gradcheck(lambda h, w, b: linear_cross_entropy(h, w, b, targets, 0.2), leaves)
    assert torch.autograd.gradcheck(lambda h, w: linear_cross_entropy(h, w, None, targets), leaves[:2])


def test_gradients_add_up_over_calls_and_over_shared_weights() -> None:
    """A tied weight is read twice: once as vectors, once as the output layer."""
    (hidden, weight, bias), targets = case(7, 5, 11, torch.float64)

    def total(function: Loss, weight: Tensor) -> Tensor:
        vectors = functional.embedding(targets, weight) + hidden
        return function(vectors, weight, bias, targets, 0.1) / 3 + function(hidden, weight, bias, targets, 0.0)

    gradients = []
    for function in (linear_cross_entropy, oracle):
        leaf = weight.clone().requires_grad_()
        total(function, leaf).backward()
        total(function, leaf).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [7, 64, 70])
def test_under_autocast_products_are_bfloat16_and_sums_are_not(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "HELD", 64 * 11)
    tensors, targets = case(rows, 5, 11, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        mine = found(linear_cross_entropy, tensors, targets, 0.1)
    exact = found(oracle, tensors, targets, 0.1)
    for one, other in zip(mine, exact, strict=True):
        assert one.dtype is torch.float32
        assert 0 < float((one - other).norm() / other.norm()) < 1e-2


def test_only_what_is_asked_for_is_computed() -> None:
    (hidden, weight, bias), targets = case(3, 2, 5, torch.float32)
    assert linear_cross_entropy(hidden, weight, bias, targets).grad_fn is None
    leaf = bias.clone().requires_grad_()
    (mine,) = torch.autograd.grad(linear_cross_entropy(hidden, weight, leaf, targets), leaf)
    (theirs,) = torch.autograd.grad(oracle(hidden, weight, leaf, targets, 0.0), leaf)
    torch.testing.assert_close(mine, theirs)


def test_not_all_logits_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest number of logits that anything is computed of at a time."""
    held = []
    plain = functional.linear

    def linear(*operands: Tensor) -> Tensor:
        held.append(plain(*operands))
        return held[-1]

    monkeypatch.setattr(loss.functional, "linear", linear)
    monkeypatch.setattr(loss, "HELD", 64 * 11)
    tensors, targets = case(200, 5, 11, torch.float32)
    found(linear_cross_entropy, tensors, targets, 0.0)
    assert [len(logits) for logits in held] == [64, 64, 64, 8]


@pytest.mark.parametrize(
    "shapes, smoothing, message",
    [
        (((3, 2), (5, 4), (5,), (3,)), 0.0, r"hidden has shape \[3, 2\], weight \[5, 4\] .* \[vocabulary, size\]"),
        (((3, 2), (5, 2), (5,), (4,)), 0.0, r"targets \[4\]"),
        (((3, 2), (5, 2), (4,), (3,)), 0.0, r"bias has shape \[4\]; with this weight it must be \[5\]"),
        (((3, 2), (5, 2), (5,), (3,)), 1.0, r"smoothing 1\.0 was given"),
    ],
)
def test_what_does_not_fit_is_refused(shapes: tuple[tuple[int, ...], ...], smoothing: float, message: str) -> None:
    hidden, weight, bias, targets = (torch.zeros(shape) for shape in shapes)
    with pytest.raises(UsageError, match=message):
        linear_cross_entropy(hidden, weight, bias, targets.long(), smoothing)


@pytest.mark.parametrize("rows", [64, 70])
def test_a_hidden_state_whose_columns_lie_apart(rows: int) -> None:
    tensors, targets = case(rows, 32, 17, torch.float32)
    turned = [tensors[0].t().contiguous().t(), *tensors[1:]]
    assert turned[0].stride() == (1, rows)
    with torch.autocast("cpu", torch.bfloat16):
        one, other = (found(linear_cross_entropy, given, targets, 0.0) for given in (tensors, turned))
    torch.testing.assert_close(other, one, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_weight_and_a_bias_whose_numbers_lie_apart(dtype: torch.dtype) -> None:
    (hidden, weight, bias), targets = case(70, 32, 100, dtype)
    plain = found(linear_cross_entropy, [hidden, weight, bias], targets, 0.1)
    hidden, turned, apart = hidden.requires_grad_(), weight.t().contiguous().t().requires_grad_(), bias.repeat(2, 1).t()
    rows = apart.flatten()[::2].detach().requires_grad_()
    assert turned.stride() == (1, 100) and rows.stride() == (2,)
    total = linear_cross_entropy(hidden, turned, rows, targets, 0.1)
    lie = [total.detach(), *torch.autograd.grad(0.7 * total, [hidden, turned, rows])]
    for one, other in zip(lie, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
