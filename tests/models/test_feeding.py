"""Input feeding as one operation is the loop as written, values and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unrolled.models.decoders.query_after import QueryAfter
from unrolled.models.encoders import Encoded

EMBEDDING, MEMORY, HIDDEN, OUTPUT, SOURCE, TIME, ROWS = 3, 5, 4, 6, 7, 4, 3
CELLS: list[dict[str, Any]] = [
    {"kind": "lstm"},
    {"kind": "lstm", "coupled": True},
    {"kind": "gru"},
    {"kind": "gru", "reset": "after"},
    {"kind": "elman"},
]
ATTENTIONS: list[dict[str, Any]] = [
    {"kind": "bilinear"},
    {"kind": "dot"},
    {"kind": "scaled_dot"},
    {"kind": "additive", "hidden_size": 6},
    {"kind": "additive", "hidden_size": 6, "normalised": True},
]


def decoder(cell: dict[str, Any], attention: dict[str, Any], dtype: torch.dtype = torch.float64) -> QueryAfter:
    torch.manual_seed(1)
    memory = HIDDEN if "dot" in attention["kind"] else MEMORY
    built = QueryAfter(
        EMBEDDING, memory, cell={**cell, "hidden_size": HIDDEN}, attention=attention, readout_size=OUTPUT
    ).to(dtype)
    for weight in built.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return built


def case(built: QueryAfter, lengths: list[int], steps: int = TIME) -> list[Tensor]:
    """Embedded symbols, memory, and a state in which even the first fed output is not zero."""
    torch.manual_seed(2)
    like = next(built.parameters())
    size = MEMORY if built.attention.context_size == MEMORY else HIDDEN
    shapes = [(ROWS, steps, EMBEDDING), (ROWS, SOURCE, size), (ROWS, OUTPUT)]
    shapes += [(ROWS, one) for one in built.recurrent.state_sizes]
    return [torch.randn(shape, dtype=like.dtype).requires_grad_() for shape in shapes]


def run(built: QueryAfter, tensors: list[Tensor], lengths: list[int], *, by_hand: bool) -> list[Tensor]:
    """Outputs, weights and the gradients of everything, each number with a part of its own in the loss."""
    embedded, encoded, fed, *moving = tensors
    mask = torch.arange(SOURCE) < torch.tensor(lengths).unsqueeze(1)
    state = built.start(Encoded(encoded, mask, (), None), tuple(moving))
    state = (*state[: built.held], fed, *moving)
    found = built(embedded, state) if by_hand else built._feed(embedded, state)
    torch.manual_seed(3)
    parts = [torch.randn(one.shape, dtype=torch.float64) for one in found]
    loss = sum((one * part).sum() for one, part in zip(found, parts, strict=True))
    leaves = [*tensors, *built.parameters()]
    return [*(one.detach() for one in found), *torch.autograd.grad(loss, leaves)]


def node_of(found: Any) -> str:
    seen, nodes = set(), [found.outputs.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes.extend(source for source, _ in node.next_functions)
    return " ".join(type(node).__name__ for node in seen)


@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
@pytest.mark.parametrize("cell", CELLS, ids=str)
@settings(max_examples=4, deadline=None)
@given(
    lengths=st.lists(st.integers(1, SOURCE), min_size=ROWS, max_size=ROWS),
    steps=st.integers(1, TIME),
)
def test_equals_the_plain_loop_in_values_and_gradients(
    cell: dict[str, Any], attention: dict[str, Any], lengths: list[int], steps: int
) -> None:
    built = decoder(cell, attention)
    tensors = case(built, lengths, steps)
    torch.testing.assert_close(
        run(built, tensors, lengths, by_hand=True), run(built, tensors, lengths, by_hand=False), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("attention", ATTENTIONS, ids=str)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_under_bfloat16_autocast_it_is_no_further_from_float32_than_the_plain_loop(
    cell: dict[str, Any], attention: dict[str, Any]
) -> None:
    built, lengths = decoder(cell, attention, torch.float32), [7, 3, 1]
    tensors = case(built, lengths)
    exact = run(built, tensors, lengths, by_hand=False)
    with torch.autocast("cpu", torch.bfloat16):
        near = run(built, tensors, lengths, by_hand=True)
        plain = run(built, tensors, lengths, by_hand=False)
    for one, loop, right in zip(near, plain, exact, strict=True):
        assert (one - right).norm() <= 2 * (loop - right).norm() + 0.03 * right.norm() + 1e-2


@pytest.mark.parametrize(
    "change",
    [{"layers": 2}, {"attention": {"kind": "bilinear", "coverage": "sum"}}, {"cell": {"kind": "lstm", "zoneout": 0.1}}],
)
def test_what_has_no_derivative_by_hand_goes_by_the_plain_loop(change: dict[str, Any]) -> None:
    settings = {"cell": {"kind": "lstm"}, "attention": {"kind": "bilinear"}, **change}
    settings["cell"] = {**settings["cell"], "hidden_size": HIDDEN}
    built = QueryAfter(EMBEDDING, MEMORY, **settings)
    mask = torch.ones(ROWS, SOURCE, dtype=torch.bool)
    moving = tuple(torch.zeros(ROWS, size) for size in built.recurrent.state_sizes)
    state = built.start(Encoded(torch.randn(ROWS, SOURCE, MEMORY), mask, (), None), moving)
    assert "_LoopBackward" not in node_of(built(torch.randn(ROWS, TIME, EMBEDDING), state))


def test_the_whole_sequence_is_one_node_of_the_graph() -> None:
    built = decoder({"kind": "lstm"}, {"kind": "bilinear"}, torch.float32)
    embedded, encoded, _, *moving = case(built, [7, 7, 7])
    state = built.start(Encoded(encoded, torch.ones(ROWS, SOURCE, dtype=torch.bool), (), None), tuple(moving))
    assert node_of(built(embedded, state)).count("_LoopBackward") == 1
