"""A graph goes when its loss does: no hand-written node keeps itself alive until Python's collector comes by."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from unrolled.layers import CELLS, Recurrent
from unrolled.models import MODELS

MASK = torch.arange(9) < torch.tensor([[9], [7], [4], [2]])
IDS = (torch.arange(36).reshape(4, 9) * 5 % 9 + 2).masked_fill(~MASK, 0)


def nodes_left(step: Callable[[], Tensor]) -> list[str]:
    """The nodes of hand-written functions that are left for the collector after a step and its backward."""
    step().backward()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        step().backward()
        gc.collect()
        return [type(one).__name__ for one in gc.garbage if type(one).__name__.endswith("Backward")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", list(CELLS))
def test_recurrent_layers_leave_nothing(kind: str, bidirectional: bool, given: bool) -> None:
    layers = Recurrent(3, cell={"kind": kind, "hidden_size": 5}, layers=2, bidirectional=bidirectional)
    x = torch.randn(4, 9, 3, requires_grad=True)
    first = tuple(torch.randn(4, size, requires_grad=True) for size in layers.state_sizes) if given else None

    def step() -> Tensor:
        output, ends = layers(x, MASK, first)
        return output.sum() + sum(end.sum() for end in ends)

    assert nodes_left(step) == []


CELL = {"kind": "lstm", "hidden_size": 6}
DECODERS = [
    {"kind": "query_before", "cell": CELL, "attention": {"kind": "additive", "hidden_size": 4}},
    {"kind": "query_after", "cell": CELL, "attention": "bilinear"},
    {"kind": "query_after", "cell": CELL, "attention": "dot", "input_feeding": False},
    {"kind": "gnmt", "cell": CELL, "layers": 2},
    {"kind": "fixed", "cell": CELL},
    {"kind": "transformer", "layers": 2, "heads": 2, "feedforward_size": 7},
]


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda one: f"{one['kind']}-{one.get('input_feeding', '')}")
def test_models_leave_nothing(decoder: dict, dtype: torch.dtype | None) -> None:
    encoder = {"kind": "rnn", "cell": {"kind": "gru", "hidden_size": 3}}
    model = MODELS.build(
        {"kind": "seq2seq", "embedding_size": 6, "encoder": encoder, "decoder": decoder}, 12, 12, where="model"
    )

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            return model.loss(IDS, MASK, IDS, MASK)

    assert nodes_left(step) == []
