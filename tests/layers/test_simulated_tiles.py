"""The product in tiles on registers that are simulated, so that every machine tests its order of loads and stores."""

import ctypes
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.repeated import Repeated
from unrolled.layers.kernels.tiled import TiledWeight

pytest.importorskip("numba")
if not compiled.product_found(torch.bfloat16):
    pytest.skip("torch brings no products that compiled code could call on this machine", allow_module_level=True)

from unrolled.layers.kernels.compiled import amx, tiles
from unrolled.layers.kernels.compiled.arrays import laid_out


class Registers:
    """Eight tiles in memory, and the instructions as the processor's manual has them."""

    def __init__(self):
        self.tiles, self.rows = np.zeros((8, 16, 64), np.uint8), None

    def configure(self, address):
        self.rows = list((ctypes.c_uint8 * 64).from_address(address))[48:56]
        self.tiles[:] = 0

    def release(self):
        self.rows = None

    def clear(self, tile):
        self.tiles[tile] = 0

    def load(self, tile, address, apart):
        self.tiles[tile] = 0
        for row in range(self.rows[tile]):
            self.tiles[tile, row] = (ctypes.c_uint8 * 64).from_address(address + row * apart)

    def store(self, tile, address, apart):
        for row in range(self.rows[tile]):
            ctypes.memmove(address + row * apart, self.tiles[tile, row].tobytes(), 64)

    def multiply(self, total):
        x, weight = (
            torch.from_numpy(self.tiles[tile].copy()).view(torch.bfloat16).float().unflatten(1, (-1, 2))
            for tile in (4 + total // 2, 6 + total % 2)
        )
        added = torch.einsum("mkp,knp->mn", x, weight)
        self.tiles[total] = (torch.from_numpy(self.tiles[total].copy()).view(torch.float32) + added).view(torch.uint8)


@pytest.fixture
def registers(monkeypatch):
    found = Registers()
    for name, count in (("load", 8), ("store", 4), ("clear", 4), ("multiply", 4)):
        for tile in range(count):
            monkeypatch.setattr(tiles, f"{name}_{tile}", partial(getattr(found, name), tile))
    for name in ("configure", "release"):
        monkeypatch.setattr(tiles, name, getattr(found, name))
    for name in ("_multiply", "multiply_at"):
        monkeypatch.setattr(tiles, name, getattr(tiles, name).py_func)
    monkeypatch.setattr(tiles, "found", lambda: True)
    return found


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 31, 32, 33, 48, 63, 70])
def test_a_product_is_that_of_exact_numbers(rows, keep, turned, registers):
    torch.manual_seed(rows)
    x, weight, out = torch.randn(rows, 64).bfloat16(), torch.randn(64, 96).bfloat16(), torch.randn(rows, 99)
    wanted, beside = x.double() @ weight.double() + (out[:, :96].double() if keep else 0), out[:, 96:].clone()
    made = laid_out(weight.t().contiguous().t() if turned else weight, in_tiles=True)
    tiles.multiply_tiles.py_func(x.view(torch.uint16).numpy(), made, out.numpy()[:, :96], keep)
    torch.testing.assert_close(out[:, :96].double(), wanted, rtol=1e-6, atol=1e-4)
    assert torch.equal(out[:, 96:], beside), "nothing beside the columns is written"
    assert registers.rows is None, "the registers are given back"


def test_columns_are_gone_through_in_groups_and_each_way_in_turn(registers, monkeypatch):
    monkeypatch.setattr(tiles, "GROUP", 3 * 2 * 2 * amx.TILE)  # three pairs of columns, of five
    x, weight, bias = torch.randn(45, 64).bfloat16(), torch.randn(64, 160).bfloat16(), torch.randn(160)
    made = laid_out(weight, in_tiles=True)
    for _ in range(2):
        out = torch.empty(45, 160)
        tiles.project_tiles.py_func(x.view(torch.uint16).numpy(), made, bias.numpy(), out.numpy())
        torch.testing.assert_close(out.double(), x.double() @ weight.double() + bias.double(), rtol=1e-6, atol=1e-4)
    del registers


def test_a_weight_in_tiles_and_one_of_repeated_products(registers, monkeypatch):
    monkeypatch.setattr(compiled, "tiles_found", lambda: True)
    torch.manual_seed(2)
    weight, bias, x = torch.randn(70, 96), torch.randn(70), torch.randn(3, 2, 96)
    laid = TiledWeight.of(weight)
    given, rounded = x.bfloat16().double(), weight.bfloat16().double()
    for found, wanted in (
        (functional.linear(x, laid, bias), given @ rounded.t() + bias.double()),
        (functional.linear(x, laid[32:64]), given @ rounded[32:64].t()),
        (torch.mm(x[0], laid.t()), given[0] @ rounded.t()),
        (functional.linear(x.bfloat16(), laid.to(torch.bfloat16)), given @ rounded.t()),
    ):
        assert type(found) is torch.Tensor and found.dtype is torch.float32
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4)
    assert not laid.t().in_loops and laid[:64].t().to(torch.bfloat16).in_loops

    half, rows, gradient = weight[:64].bfloat16(), x[0].bfloat16(), torch.randn(2, 64).bfloat16()
    repeated, total = Repeated(half, 9), torch.randn(2, 64)
    before = total.double() + rows.double() @ half.double().t()
    repeated.add(rows, total)
    torch.testing.assert_close(total.double(), before, rtol=1e-5, atol=1e-4)
    back = repeated.back(gradient)
    torch.testing.assert_close(back.double(), gradient.double() @ half.double(), rtol=1e-5, atol=1e-4)
    with pytest.raises(RuntimeError, match=r"float32 of torch\.bfloat16 was given torch\.float32"):
        repeated.back(gradient.float())
