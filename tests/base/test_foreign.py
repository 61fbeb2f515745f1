"""Parts in files of one's own: met by name in any command, once the environment names them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from unrolled.base.errors import SettingsError
from unrolled.base.foreign import VARIABLE, load_foreign_parts
from unrolled.layers import CELLS, Recurrent

SOURCE = '''
import torch
from torch import Tensor, nn
from unrolled.layers import CELLS, Cell

@CELLS.register("leaky")
class Leaky(Cell):
    """h' = h + u * (tanh(W x + U h + b) - h), u = σ(a)."""

    gates = ("hidden",)
    formula = "mn + n² + 2n"

    def __init__(self, input_size: int, /, *, hidden_size: int = 128) -> None:
        super().__init__(input_size, hidden_size, "orthogonal")
        self.rate = nn.Parameter(torch.zeros(hidden_size))

    def move(self, projected: Tensor, state: tuple[Tensor, ...], seen: Tensor | None) -> tuple[Tensor, ...]:
        (h,) = state
        new = self.add_past(projected, h, seen, self.rows("hidden")).tanh()
        return (torch.lerp(h, new.to(h.dtype), self.rate.sigmoid().to(h.dtype)),)
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    file = tmp_path / "cells_of_mine.py"
    monkeypatch.setenv(VARIABLE, str(file))
    load_foreign_parts.cache_clear()
    yield file
    load_foreign_parts.cache_clear()
    CELLS._kinds.pop("leaky", None)
    sys.modules.pop("cells_of_mine", None)


def test_a_cell_of_ones_own_is_found_by_its_name_and_runs_as_any_other(place: Path) -> None:
    place.write_text(SOURCE, encoding="utf-8")
    assert "leaky" not in list(CELLS)
    torch.manual_seed(0)
    network = Recurrent(3, cell={"kind": "leaky", "hidden_size": 4}, layers=2, bidirectional=True)
    x, mask = torch.randn(2, 5, 3), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    output, _ = network(x, mask)
    alone, _ = network(x[1:, :2])
    torch.testing.assert_close(output[1, :2], alone[0])
    assert "leaky" in list(CELLS)
    with pytest.raises(SettingsError, match=r"no cell is called 'leeky'\. Did you mean 'leaky'\?"):
        CELLS["leeky"]


def test_what_cannot_be_imported_is_named(place: Path) -> None:
    with pytest.raises(SettingsError, match=r"UNROLLED_PARTS names '.*cells_of_mine\.py', which .*FileNotFoundError"):
        CELLS["leaky"]
    place.write_text("import nowhere_to_be_found", encoding="utf-8")
    load_foreign_parts.cache_clear()
    with pytest.raises(SettingsError, match=r"cannot be imported \(ModuleNotFoundError: .*nowhere_to_be_found"):
        CELLS["leaky"]


def test_a_name_that_nobody_knows_says_how_to_bring_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(
        SettingsError, match=r"no cell is called 'mine'\. Known: .*, lstm\. A part of your own\? Name its"
    ):
        CELLS["mine"]
