"""What a search does in one compiled call is what the single calls give, number by number."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.layers import CELLS
from unrolled.layers.kernels import compiled, steps
from unrolled.layers.kernels.tiled import TiledWeight, lay_out
from unrolled.layers.likeliest import likeliest
from unrolled.models.decoders.readout import Readout

pytest.importorskip("numba")
if not compiled.product_found(torch.float32):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled.amx import found as in_registers

PRECISIONS = ["float32", pytest.param("bfloat16", marks=pytest.mark.skipif(in_registers(), reason="tiles, no panels"))]


@pytest.mark.parametrize("precision", PRECISIONS)
@given(
    rows=st.integers(1, 30), inner=st.sampled_from([32, 64]), first=st.integers(1, 64), width=st.sampled_from([64, 57])
)
@settings(deadline=None, max_examples=25)
def test_a_product_of_parts_is_that_of_the_whole(precision, rows, inner, first, width):
    parts = torch.randn(rows, inner).split([min(first, inner), max(inner - first, 0)], dim=1)
    parts = tuple(part.contiguous() for part in parts if part.numel())
    laid, bias = TiledWeight.of(torch.randn(width, inner), precision), torch.nn.Parameter(torch.randn(width))
    with torch.inference_mode():
        wanted = functional.linear(torch.cat(parts, dim=1), laid, bias)
        made = steps.product(parts, laid, bias)
        assert torch.equal(made, wanted) and made.is_contiguous()
        assert torch.equal(steps.product(parts, laid, bias, apart=True), wanted)
        assert torch.equal(steps.product(parts, laid, bias, squashed=True), steps.tanh(wanted))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("rows", [1, 7, 64, 150])
@pytest.mark.parametrize(("width", "k"), [(64, 1), (57, 3), (200, 64), (57, 57)])
def test_the_likeliest_symbols_without_their_logits(precision, rows, width, k):
    laid, bias, x = TiledWeight.of(torch.randn(width, 32), precision), torch.randn(width), torch.randn(rows, 32)
    with torch.inference_mode():
        wanted = likeliest(steps.product((x,), laid, bias), k)
        made = steps.likeliest(x, laid, bias, k)
        assert all(torch.equal(one, other) for one, other in zip(made, wanted, strict=True))
        assert steps.likeliest(x, laid, bias, width + 1) is None and steps.likeliest(x, laid, bias, 0) is None
        assert steps.likeliest(x[:, :31], laid, bias, 1) is None and steps.likeliest(x.double(), laid, bias, 1) is None
    assert steps.likeliest(x, laid, bias, k) is None


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_an_lstms_step_in_one_call(precision, rows):
    cell = CELLS.build({"kind": "lstm", "hidden_size": 32}, 5).eval()
    lay_out(cell, precision)
    h, memory, projected = torch.randn(rows, 32), torch.randn(rows, 32), torch.randn(rows, 128)
    kept = projected.clone()
    with torch.inference_mode():
        total = torch.addmm(projected, h, cell.hidden_weight.t())
        wanted = steps.lstm(total, memory)
        made = steps.lstm_step(projected, h, memory, cell.hidden_weight)
        stepped = cell.advance(projected, (h, memory))
    for one, other, third in zip(made, wanted, stepped, strict=True):
        assert torch.equal(one, other) and torch.equal(third, other)
    assert torch.equal(projected, kept)


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64], ids=str)
def test_it_is_float32_whatever_others_are_unasked(default):
    laid, bias, x = TiledWeight.of(torch.randn(48, 8), "float32"), torch.randn(48), torch.randn(5, 8)
    with torch.inference_mode():
        wanted = steps.product((x,), laid, bias)
        torch.set_default_dtype(default)
        try:
            assert torch.equal(steps.product((x,), laid, bias), wanted)
        finally:
            torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", ["tanh", "maxout"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_readout_in_one_call(kind, precision):
    readout = Readout((6, 10), kind=kind, size=16)
    parts = torch.randn(3, 6), torch.randn(3, 10)
    with torch.no_grad():
        words = readout(parts)
    lay_out(readout, precision)
    with torch.inference_mode():
        made = readout(parts)
    torch.testing.assert_close(made.clone(), words, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    "change",
    ["training", "three", "rows", "size", "double", "autocast", "plain", "cube"],
)
def test_others_are_left_to_their_callers(change):
    weight, bias = torch.randn(48, 8), torch.randn(48)
    laid = weight if change == "plain" else TiledWeight.of(weight, "float32")
    x, y = torch.randn(5, 6), torch.randn(4 if change == "rows" else 5, 1 if change == "size" else 2)
    if change == "double":
        x = x.double()
    parts = (x[:, :4].contiguous(), x[:, 4:].contiguous(), y) if change == "three" else (x, y)
    if change == "cube":
        parts = (torch.randn(5, 1, 8),)
    with torch.inference_mode(change != "training"), torch.autocast("cpu", enabled=change == "autocast"):
        assert steps.product(parts, laid, bias) is None


def test_an_lstms_step_of_other_sizes_is_left_to_its_caller():
    laid = TiledWeight.of(torch.randn(64, 16), "float32")
    right = torch.randn(3, 64), torch.randn(3, 16), torch.randn(3, 16)
    with torch.inference_mode():
        assert steps.lstm_step(*right, laid) is not None
        assert steps.lstm_step(right[0][:1], *right[1:], laid) is None
        assert steps.lstm_step(right[0], right[1][:1], right[2], laid) is None
        assert steps.lstm_step(*right, laid[:48]) is None
    assert steps.lstm_step(*right, laid) is None
