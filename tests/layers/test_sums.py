"""Gradients of weights in bfloat16 are sums of exact products, by each way that the processor knows."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unrolled.layers.kernels import compiled

pytest.importorskip("numba")
if not compiled.product_found(torch.bfloat16):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled import amx, blocks, sums

WAYS = ["library", *(["pairs"] if blocks.HAS_PAIRS else []), "float32 by library", "float32 in panels"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    monkeypatch.setattr(sums, "PORTION", {torch.bfloat16: 64, torch.float32: 48})
    monkeypatch.setattr(sums, "COLUMNS", 32)
    monkeypatch.setattr(amx, "found", lambda: False)
    monkeypatch.setattr(blocks, "LIBRARY_LAGS", request.param == "float32 in panels")
    if request.param == "library":
        monkeypatch.setattr(blocks, "HAS_PAIRS", False)
    return request.param


def kind(way):
    return torch.float32 if way.startswith("float32") else torch.bfloat16


def summed(rows, width, size, keep, dtype):
    """The sum that is made, and what it is exactly; both factors are columns of wider tensors."""
    numbers = torch.Generator().manual_seed(rows + width + size)
    gradient = torch.randn(rows, width + 7, generator=numbers).to(dtype)[:, 3 : 3 + width]
    given = torch.randn(rows, size + 32, generator=numbers).to(dtype)[:, :size]
    out = torch.randn(width, size, generator=numbers)
    exact = gradient.double().t() @ given.double() + (out.double() if keep else 0)
    sums.sum_of_products(gradient, given, out if keep else out.fill_(torch.nan), keep=keep)
    return out, exact


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(0, 150), width=st.integers(1, 70), size=st.integers(1, 4), odd=st.booleans(), keep=st.booleans()
)
def test_a_sum_is_that_of_exact_numbers(rows, width, size, odd, keep, way):
    out, exact = summed(rows, width, 16 * size + odd, keep, kind(way))
    torch.testing.assert_close(out.double(), exact, rtol=1e-5, atol=1e-4)


def test_our_own_product_is_taken_where_it_is_faster_and_fits(way, monkeypatch):
    made = []
    monkeypatch.setattr(sums, "_sum_by_columns", lambda *given: made.append(given))
    summed(9, 5, 32, False, kind(way))
    assert bool(made) is (way in ("pairs", "float32 in panels"))
    made.clear()
    summed(9, 5, 31, False, kind(way))
    assert not made, "sizes that are no whole panels are the library's"


def test_a_number_that_is_none_stays_where_it_is(way):
    gradient, given = torch.ones(40, 20, dtype=kind(way)), torch.ones(40, 16, dtype=kind(way))
    gradient[33, 7], out = torch.nan, torch.empty(20, 16)
    sums.sum_of_products(gradient, given, out)
    assert out[7].isnan().all() and (out[:7] == 40).all() and (out[8:] == 40).all()


def test_columns_that_lie_apart_are_refused(way):
    with pytest.raises(RuntimeError, match="side by side"):
        sums.sum_of_products(torch.ones(5, 9).t(), torch.ones(9, 16), torch.empty(5, 16))
