"""Products with a vocabulary's weight, a slab at a time: those of exact numbers, whatever the slabs are."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unrolled.layers.kernels import compiled, slabs

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled import arrays, blocks


@pytest.fixture
def lagging(monkeypatch):
    """A processor on which ours are faster; the calls of `multiply_at` are counted."""
    monkeypatch.setattr(blocks, "LIBRARY_LAGS", True)
    monkeypatch.setattr(slabs, "SLAB", 32)
    made = []
    real = arrays.multiply_at
    monkeypatch.setattr(arrays, "multiply_at", lambda *told: made.append(told) or real(*told))
    return made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(256, 300), words=st.integers(16, 120), panels=st.integers(1, 3), apart=st.booleans())
def test_slabs_together_are_the_whole(rows, words, panels, apart, lagging):
    lagging.clear()
    numbers = torch.Generator().manual_seed(rows + words)
    x, weight = (torch.randn(size, 16 * panels, generator=numbers) for size in (rows, words))
    gradient = torch.randn(rows, words + 5 * apart, generator=numbers)[:, :words]
    torch.testing.assert_close(slabs.linear(x, weight).double(), x.double() @ weight.double().t(), rtol=1e-5, atol=1e-4)
    back = slabs.input_gradient(gradient, weight)
    torch.testing.assert_close(back.double(), gradient.double() @ weight.double(), rtol=1e-5, atol=1e-4)
    assert len(lagging) == -(-(words - words % 16) // 32) + -(-words // 32), "both by slabs"


@pytest.mark.parametrize(
    ("rows", "size", "dtype"), [(20, 32, torch.float32), (300, 33, torch.float32), (300, 32, torch.float64)], ids=str
)
def test_what_does_not_pay_or_fit_is_the_librarys(rows, size, dtype, lagging):
    x, weight = torch.randn(rows, size, dtype=dtype), torch.randn(64, size, dtype=dtype)
    assert torch.equal(slabs.linear(x, weight), torch.nn.functional.linear(x, weight))
    gradient = torch.randn(rows, 64, dtype=dtype)
    assert torch.equal(slabs.input_gradient(gradient, weight), gradient.mm(weight))
    assert not lagging
