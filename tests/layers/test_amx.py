"""When tile registers are used: the processor has them, the system lends them. Runs on every machine."""

import ctypes
import sys

import pytest
import torch

from unrolled.layers import LSTM
from unrolled.layers.kernels import compiled

pytest.importorskip("numba")
if not compiled.product_found(torch.bfloat16):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled import amx


class Library:
    """A C library whose system calls answer ``code``."""

    def __init__(self, code):
        self.code, self.asked = code, []

    def syscall(self, *numbers):
        self.asked.append(numbers)
        return self.code


@pytest.mark.parametrize(
    "system, machine, features, answer, expected",
    [
        ("linux", "x86_64", {"amx-tile": True, "amx-bf16": True}, 0, True),
        ("linux", "x86_64", {"amx-tile": True, "amx-bf16": True}, -1, False),  # an old kernel, or a closed container
        ("linux", "x86_64", {"amx-tile": True, "amx-bf16": False}, 0, False),
        ("linux", "x86_64", {}, 0, False),
        ("linux", "aarch64", {"amx-tile": True, "amx-bf16": True}, 0, False),
        ("darwin", "x86_64", {"amx-tile": True, "amx-bf16": True}, 0, False),
    ],
)
def test_where_tile_registers_are_found(system, machine, features, answer, expected, monkeypatch):
    library = Library(answer)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(amx.platform, "machine", lambda: machine)
    monkeypatch.setattr(amx.binding, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    assert amx.found.__wrapped__() is expected
    assert library.asked in ([], [(158, 0x1023, 18)])


def test_without_them_a_loop_and_a_search_take_the_librarys_products(monkeypatch):
    from unrolled.models import Seq2Seq, TorchStepper
    from unrolled.models.stepper import tiled

    monkeypatch.setattr(compiled, "tiles_found", lambda: False)
    monkeypatch.setattr(compiled, "panels_found", lambda: False)
    assert not compiled.tiles_worthwhile(torch.Size((32, 32)), torch.bfloat16, 9)
    torch.manual_seed(1)
    layer, x = LSTM(32, 32), torch.randn(9, 4, 32)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x)[0].isfinite().all()
    model = Seq2Seq(11, 13, embedding_size=32)
    stepper = TorchStepper(model, precision="bfloat16")
    assert {weight.dtype for weight in stepper.model.parameters() if weight.dim() > 1} == {torch.bfloat16}
    assert not any("Tiled" in type(weight).__name__ for weight in tiled(model).parameters())
