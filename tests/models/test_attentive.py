"""The hand-written loop equals the plain one, values and gradients, for every cell and attention that has one."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from unrolled.layers import ATTENTIONS, CELLS, Attention, Cell, Memory
from unrolled.models.kernels import attentive
from unrolled.models.kernels.attentive import Walked, attend_and_advance, step_by_step

BATCH, SOURCE, TIME, HIDDEN, MEMORY, EMBEDDING = 3, 4, 5, 2, 7, 3
CELL_KINDS = [
    {"kind": "elman"},
    {"kind": "elman", "activation": "relu"},
    {"kind": "lstm"},
    {"kind": "gru", "reset": "before"},
    {"kind": "gru", "reset": "after"},
]
ATTENTION_KINDS = [
    {"kind": "dot"},
    {"kind": "scaled_dot"},
    {"kind": "bilinear"},
    {"kind": "additive", "hidden_size": 6},
    {"kind": "additive", "hidden_size": 6, "normalised": True},
]


class Case:
    """A cell, an attention and what they run over, all wanting gradients."""

    def __init__(self, cell: dict, attention: dict, dtype: torch.dtype = torch.float64) -> None:
        torch.manual_seed(3)
        memory_size = HIDDEN if "dot" in attention["kind"] else MEMORY
        self.cell: Cell = CELLS.build({**cell, "hidden_size": HIDDEN}, EMBEDDING + memory_size)
        self.attention: Attention = ATTENTIONS.build(attention, HIDDEN, memory_size)
        for module in (self.cell, self.attention):
            module.to(dtype)
            for weight in module.parameters():
                nn.init.normal_(weight)
        self.tensors = {
            "embedded": torch.randn(TIME, BATCH, EMBEDDING, dtype=dtype),
            "encoded": torch.randn(BATCH, SOURCE, memory_size, dtype=dtype),
            **{f"state{k}": torch.randn(BATCH, HIDDEN, dtype=dtype) for k in range(len(self.cell.state_sizes))},
        }
        for tensor in self.tensors.values():
            tensor.requires_grad_()
        self.mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]]).bool()

    def run(self, loop) -> attentive.Walked:
        embedded, encoded, *state = self.tensors.values()
        memory: Memory = self.attention.remember(encoded, self.mask)
        return loop(self.cell, self.attention, embedded, memory, tuple(state))

    def gradients(self, walked: attentive.Walked) -> dict[str, Tensor]:
        torch.manual_seed(4)
        total = sum((part * torch.randn(part.shape, dtype=torch.float64)).sum() for part in walked)
        names = {**self.tensors, **dict(self.cell.named_parameters()), **dict(self.attention.named_parameters())}
        found = torch.autograd.grad(total, list(names.values()), allow_unused=True)
        return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("attention", ATTENTION_KINDS, ids=str)
@pytest.mark.parametrize("cell", CELL_KINDS, ids=str)
def test_equals_the_plain_loop_in_values_and_gradients(cell: dict, attention: dict) -> None:
    case = Case(cell, attention)
    plain, hand = case.run(step_by_step), case.run(attend_and_advance)
    for name, one, other in zip(plain._fields, plain, hand, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5, check_dtype=False, msg=name)
    expected, got = case.gradients(plain), case.gradients(hand)
    for name, gradient in expected.items():
        if gradient is None:
            assert got[name] is None or not got[name].any(), name
        else:
            torch.testing.assert_close(got[name], gradient, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize("attention", ATTENTION_KINDS, ids=str)
@pytest.mark.parametrize("cell", CELL_KINDS, ids=str)
def test_the_hand_written_backward_passes_the_gradient_check(cell: dict, attention: dict) -> None:
    case = Case(cell, attention)
    weights = [*case.cell.parameters(), *case.attention.parameters()]

    def run(*_: Tensor) -> tuple[Tensor, ...]:
        return tuple(case.run(attend_and_advance))

    inputs = (*case.tensors.values(), *weights)
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("cell, attention", [(CELL_KINDS[3], ATTENTION_KINDS[3]), (CELL_KINDS[2], ATTENTION_KINDS[2])])
def test_the_full_gradient_check_of_one_of_each_family(cell: dict, attention: dict) -> None:
    case = Case(cell, attention)
    assert torch.autograd.gradcheck(lambda *_: tuple(case.run(attend_and_advance)), tuple(case.tensors.values()))


@pytest.mark.parametrize("cell", CELL_KINDS, ids=str)
def test_padding_of_the_source_gets_no_weight_and_no_gradient(cell: dict) -> None:
    case = Case(cell, ATTENTION_KINDS[3])
    walked = case.run(attend_and_advance)
    padding = ~case.mask.expand_as(walked.weights)
    assert (walked.weights[padding] == 0).all()
    torch.testing.assert_close(walked.weights.sum(dim=2), torch.ones(TIME, BATCH, dtype=torch.float64))
    assert (case.gradients(walked)["encoded"][~case.mask] == 0).all()


@pytest.mark.parametrize("cell", CELL_KINDS, ids=str)
@pytest.mark.parametrize("attention", ATTENTION_KINDS, ids=str)
def test_under_bfloat16_autocast_sums_stay_in_float32(cell: dict, attention: dict) -> None:
    case = Case(cell, attention, torch.float32)
    with torch.no_grad():
        for tensor in case.tensors.values():
            tensor.mul_(0.5)
    exact = case.run(attend_and_advance)
    with torch.autocast("cpu", torch.bfloat16):
        rough = case.run(attend_and_advance)
    assert [part.dtype for part in rough] == [torch.bfloat16, torch.bfloat16, torch.float32]
    for one, other in zip(exact, rough, strict=True):
        assert not torch.equal(one, other.float())
        torch.testing.assert_close(other.float(), one, rtol=0.1, atol=0.1)
    expected, got = case.gradients(exact), case.gradients(rough)
    for name, gradient in expected.items():
        if gradient is not None and gradient.norm() > 0:
            error = (got[name] - gradient).norm() / gradient.norm()
            assert error < 0.1, (name, float(error))


def test_only_kinds_with_both_halves_run_as_one_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attentive, "step_by_step", lambda *_, **__: "plain")
    assert isinstance(Case(CELL_KINDS[0], ATTENTION_KINDS[0]).run(attend_and_advance), Walked)
    for part in ("cell", "attention"):
        case = Case(CELL_KINDS[1], ATTENTION_KINDS[3])
        getattr(case, part).__class__ = type("Mine", (type(getattr(case, part)),), {})
        assert case.run(attend_and_advance) == "plain"


def test_a_backward_inside_autocast_and_a_second_one_change_nothing() -> None:
    case = Case(CELL_KINDS[3], ATTENTION_KINDS[3], torch.float32)
    walked = case.run(attend_and_advance)
    total = walked.outputs.sum() + walked.contexts.square().sum()
    states = [tensor for name, tensor in case.tensors.items() if name.startswith("state")]
    weights = [*states, case.cell.hidden_weight, case.cell.bias]  # what comes from the loop alone
    first = torch.autograd.grad(total, weights, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        second = torch.autograd.grad(total, weights)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_what_a_loop_kept_goes_with_its_results() -> None:
    walked = Case(CELL_KINDS[3], ATTENTION_KINDS[3]).run(attend_and_advance)
    kept = weakref.ref(walked.outputs.grad_fn.look)
    gc.disable()
    try:
        del walked
        assert kept() is None
    finally:
        gc.enable()
