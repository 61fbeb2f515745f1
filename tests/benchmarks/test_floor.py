"""The multiply-adds that the floor is counted by are those that are done."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.floor import COUNTED, cost
from unrolled.layers import Recurrent
from unrolled.models import Seq2Seq

EMBEDDING, VOCABULARY, SOURCE, TARGET, ROWS = 3, 11, 5, 4, 2
SIZES = {512: 7}
UNKNOWN = {torch.ops.aten.mv: lambda matrix, vector, **_: 2 * matrix[0] * matrix[1]}  # not among torch's own counts


def small(settings: Any) -> Any:
    """The same model in a few units."""
    if isinstance(settings, dict):
        return {name: small(value) for name, value in settings.items()}
    return SIZES.get(settings, settings) if not isinstance(settings, str | bool) else settings


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_counts_are_those_of_the_operations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recurrent, "path", "plain")
    settings = small(COUNTED[name])
    torch.manual_seed(0)
    model = Seq2Seq(VOCABULARY, VOCABULARY, embedding_size=EMBEDDING, dropout=0.0, **settings).eval()
    ids = torch.randint(4, VOCABULARY, (ROWS, SOURCE))
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=UNKNOWN) as counter:
        state = model.start(ids, torch.ones_like(ids, dtype=torch.bool))
        for _ in range(TARGET):
            state = model.step(torch.full((ROWS,), 2), state).state
    expected = cost(settings, EMBEDDING, VOCABULARY).of([SOURCE] * ROWS, [TARGET] * ROWS)
    assert counter.get_total_flops() == 2 * expected
