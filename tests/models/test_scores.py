"""The compiled derivative of the additive score equals the torch calls, in every type of products."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.models.kernels.scores import HandAdditive

BATCH, SOURCE, TIME, QUERY = 3, 5, 2, 7


def walk(inner: int, product: torch.dtype, by_compiler: bool) -> list[Tensor]:
    """All that a score gives, for weights of ``product``'s type; the last place of each row is padding."""
    sums = torch.promote_types(product, torch.float32)
    draw = torch.Generator().manual_seed(5)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64).to(sums)

    keys, weight, vector = numbers(BATCH, SOURCE, inner), numbers(inner, QUERY).to(product), numbers(inner)
    queries, slopes = numbers(TIME, BATCH, QUERY).to(product), numbers(TIME, BATCH, SOURCE)
    slopes[:, :, -1] = 0
    score = HandAdditive(keys, weight, vector, TIME)
    assert score.compiled
    score.compiled = by_compiler
    found = [score.forward(step, queries[step]) for step in range(TIME)]
    found += [score.backward(step, slopes[step]) for step in reversed(range(TIME))]
    return [*found, *(part for part in score.gradients(queries, slopes) if part is not None)]


@pytest.mark.parametrize("inner", [1, 6, 67])
@pytest.mark.parametrize(
    ("product", "near"), [(torch.float64, 1e-11), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)], ids=str
)
def test_compiled_equals_torch(inner: int, product: torch.dtype, near: float) -> None:
    if not compiled.product_found(product):
        pytest.skip("torch was built without the product that compiled loops call")
    for one, other in zip(walk(inner, product, False), walk(inner, product, True), strict=True):
        assert other.dtype is one.dtype
        torch.testing.assert_close(other, one, rtol=near, atol=near)
