"""Hard attention against the sum over every way of aligning, written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import ALIGNMENTS as SMALL
from small_parts import DECODERS, ENCODERS, GRU

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN, END
from unrolled.layers import Memory
from unrolled.models import ALIGNMENTS, Alignment, Seq2Seq
from unrolled.models.pointer import Pointer

DECODER, MEMORY, VOCABULARY = 4, 3, 5
HISTORY = {"kind": "fixed", "cell": {"kind": "lstm", "hidden_size": 6}, "context": "once"}
every_alignment = pytest.mark.parametrize("kind", list(ALIGNMENTS))


def built(kind: str, seed: int) -> tuple[Alignment, torch.nn.Linear]:
    torch.manual_seed(seed)
    alignment = ALIGNMENTS.build(SMALL[kind], DECODER, MEMORY, where="alignment").double()
    return alignment, torch.nn.Linear(alignment.output_size, VOCABULARY).double()


def chance(kind: str, scores: torch.Tensor, before: int, now: int) -> float:
    """p(a_i = now | a_{i-1} = before) of one step's ``scores`` [source], from the formula."""
    if kind == "independent":
        return (scores[now].exp() / scores.exp().sum()).item()
    return (scores[now].exp() / scores[before:].exp().sum()).item() if now >= before else 0.0


def summed(
    kind: str, alignment: Alignment, layer: torch.nn.Linear, states: torch.Tensor, memory: torch.Tensor, said: list[int]
) -> float:
    """log p(said | x) over all paths through the positions, one row: ``states`` [time, decoder], ``memory`` [source,
    memory]."""
    scores = states @ alignment.score.weight @ memory.T
    total = 0.0
    for path in itertools.product(range(len(memory)), repeat=len(said)):
        product, before = 1.0, 0
        for step, (place, symbol) in enumerate(zip(path, said, strict=True)):
            mixed = alignment.of_state(states[step]) + alignment.of_memory(memory[place])
            product *= chance(kind, scores[step], before, place) * layer(mixed.tanh()).softmax(0)[symbol].item()
            before = place
        total += product
    return math.log(total)


@every_alignment
@given(
    lengths=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3), seed=st.integers(0, 9)
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_a_target_is_as_likely_as_all_its_alignments_together(
    kind: str, lengths: list[tuple[int, int]], seed: int
) -> None:
    alignment, layer = built(kind, seed)
    sources, times = (max(side) for side in zip(*lengths, strict=True))
    encoded = torch.randn(len(lengths), sources, MEMORY).double()
    states = torch.randn(len(lengths), times, DECODER).double()
    target = torch.randint(0, VOCABULARY, (len(lengths), times))
    mask, real = (
        torch.arange(most) < torch.tensor([pair[side] for pair in lengths]).unsqueeze(1)
        for side, most in enumerate((sources, times))
    )
    places = real.flatten().nonzero().squeeze(1)
    found = alignment(states, target, places, alignment.remember(encoded, mask), lambda o, _: layer(o).log_softmax(-1))
    torch.testing.assert_close(found.log_probs.exp().sum(1), torch.ones(len(places)).double())
    torch.testing.assert_close(found.weights.sum(2), torch.ones(len(lengths), times).double())
    assert (found.weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    gold = found.log_probs.gather(1, target.flatten()[places].unsqueeze(1)).squeeze(1)
    rows = places // times
    for row, (source, time) in enumerate(lengths):
        exact = summed(kind, alignment, layer, states[row, :time], encoded[row, :source], target[row, :time].tolist())
        assert gold[rows == row].sum().item() == pytest.approx(exact, abs=1e-10)


def test_positions_never_go_back_where_the_order_is_kept() -> None:
    alignment, _ = built("monotonic", 0)
    memory = alignment.remember(torch.randn(1, 4, MEMORY).double(), torch.ones(1, 4, dtype=torch.bool))
    third = torch.tensor([[float("-1e9"), float("-1e9"), 0.0, float("-1e9")]]).double()
    after = alignment.follow(torch.randn(1, 4).double(), third, torch.zeros(1, 4).double()).exp()
    assert (after[0, :2] == 0).all() and (after[0, 2:] > 0).all()
    first = alignment.initial(memory, VOCABULARY)[0].exp()
    assert first.tolist() == [[1.0, 0.0, 0.0, 0.0]]


@every_alignment
@pytest.mark.parametrize("copy", [False, True])
def test_gradients_are_those_of_the_differences(kind: str, copy: bool, small: Callable, pairs: Callable) -> None:
    model = small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, alignment=SMALL[kind], copy=copy)
    batch = pairs([3, 1], [2, 4])

    def loss(*_: torch.Tensor) -> torch.Tensor:
        return model.loss(*batch, smoothing=0.1)

    assert torch.autograd.gradcheck(loss, tuple(model.parameters()))


@every_alignment
def test_scores_that_are_far_apart_give_neither_infinity_nor_nothing(kind: str) -> None:
    alignment, layer = built(kind, 1)
    alignment, layer = alignment.float(), layer.float()
    with torch.no_grad():
        alignment.score.weight.mul_(300)
    encoded = torch.randn(2, 30, MEMORY).requires_grad_()
    states, target = torch.randn(2, 20, DECODER).requires_grad_(), torch.randint(0, VOCABULARY, (2, 20))
    memory = alignment.remember(encoded, torch.arange(30) < torch.tensor([[30], [4]]))
    found = alignment(states, target, torch.arange(40), memory, lambda o, _: layer(o).log_softmax(-1))
    assert found.log_probs.isfinite().all()
    torch.testing.assert_close(found.weights.sum(2), torch.ones(2, 20), rtol=0, atol=1e-4)
    found.log_probs.gather(1, target.flatten().unsqueeze(1)).sum().backward()
    assert encoded.grad.isfinite().all() and states.grad.isfinite().all()


def test_copying_is_of_the_symbol_at_the_position_itself(small: Callable, pairs: Callable) -> None:
    model = small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, alignment="monotonic", copy=True)
    assert isinstance(model.pointer, Pointer)
    with torch.no_grad():
        model.pointer.gate.weight.zero_()
        model.pointer.gate.bias.fill_(-1e4)
    batch = pairs([3], [3])
    forced = model(*batch)
    source = batch.source_ids[0].tolist()
    for said, looked in zip(forced.logits.exp(), forced.weights[0], strict=True):
        for symbol in range(model.vocabulary_size):
            share = sum(weight for place, weight in enumerate(looked.tolist()) if source[place] == symbol)
            assert said[symbol].item() == pytest.approx(share, abs=1e-9)


def test_the_decoder_needs_nothing_else_of_the_source(small: Callable, pairs: Callable) -> None:
    model = small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, bridge="zeros", alignment="monotonic")
    batch = pairs([3], [3])
    other = batch.source_ids.clone()
    other[0, 1] = 4 + (other[0, 1] - 3) % 6
    assert not torch.equal(model.log_probs(*batch), model.log_probs(other, *batch[1:]))
    with pytest.raises(SettingsError, match=r"\[bridge\] nothing of the source reaches this decoder"):
        small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, bridge="zeros")


def test_joined_positions_have_no_symbol_to_copy() -> None:
    with pytest.raises(SettingsError, match=r"\[copy\] .* several symbols make one position"):
        Seq2Seq(11, 13, encoder=ENCODERS["pyramidal"], decoder=DECODERS["fixed"], alignment="monotonic", copy=True)


def test_a_trained_one_aligns_what_was_doubled() -> None:
    """Each symbol is written twice; the positions are those that it was read at."""
    torch.manual_seed(0)
    decoder = {**HISTORY, "cell": {"kind": "lstm", "hidden_size": 32}}
    parts = {
        "encoder": {"kind": "rnn", "cell": {**GRU, "hidden_size": 8}},
        "bridge": "zeros",
        "decoder": decoder,
        "alignment": "monotonic",
    }
    model = Seq2Seq(9, 9, embedding_size=16, dropout=0.0, **parts)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(120):
        words = torch.randint(4, 9, (32, 4))
        source = torch.cat((words, torch.full((32, 1), END)), dim=1)
        written = words.repeat_interleave(2, dim=1)
        target = torch.cat((torch.full((32, 1), BEGIN), written, torch.full((32, 1), END)), dim=1)
        real = torch.ones_like(source, dtype=torch.bool), torch.ones_like(target, dtype=torch.bool)
        loss = model.loss(source, real[0], target, real[1]) / target[:, 1:].numel()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    looked = model.eval()(source, real[0], target, real[1]).weights[:, :-1].argmax(2)  # the end may be seen early
    right = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    assert (looked == right).float().mean() > 0.9


def test_memories_are_what_a_search_may_hold(small: Callable, pairs: Callable) -> None:
    model = small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, alignment="monotonic")
    batch = pairs([3, 1], [2, 4])
    state = model.start(batch.source_ids, batch.source_mask)
    assert model.held == 1 + len(Memory._fields)
    after = model.step(torch.tensor([BEGIN, BEGIN]), state).state
    assert all(one is other for one, other in zip(state[: model.held], after[: model.held], strict=True))


@every_alignment
def test_a_step_that_is_fed_its_own_symbol_knows_that_it_was_said(kind: str, small: Callable, pairs: Callable) -> None:
    model = small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, alignment=SMALL[kind])
    batch = pairs([3, 1], [3, 3])
    forced = model(*batch, sampling=1.0)
    state, last, said = model.start(batch.source_ids, batch.source_mask), batch.target_ids[:, 0], []
    for _ in range(batch.target_ids.shape[1] - 1):
        logits, _, state = model.step(last, state)
        said.append(logits)
        last = logits.argmax(dim=1)
    torch.testing.assert_close(forced.logits, torch.stack(said, dim=1).flatten(0, 1))


@every_alignment
def test_the_sum_is_exact_in_float32_under_autocast_and_far_from_likely(
    kind: str, small: Callable, pairs: Callable
) -> None:
    model = small(encoder={"kind": "rnn", "cell": GRU}, decoder=HISTORY, alignment=SMALL[kind], double=False)
    batch = pairs([3, 1], [2, 4])
    with torch.autocast("cpu", torch.bfloat16):
        said = model(*batch).logits
    assert said.dtype is torch.float32
    torch.testing.assert_close(said.exp().sum(1), torch.ones(len(said)), rtol=0, atol=1e-5)
    with torch.no_grad():
        model.output.weight.mul_(300)
    rough, exact = model(*batch).logits, model.double()(*batch).logits
    assert exact.min() < -200
    torch.testing.assert_close(rough.double(), exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind, alike", [("plain", False), ("locked", True)])
def test_dropout_is_the_same_at_all_positions_and_locked_at_all_steps(kind: str, alike: bool, pairs: Callable) -> None:
    torch.manual_seed(0)
    parts = {"encoder": "plain", "bridge": "zeros", "decoder": HISTORY, "alignment": "monotonic"}
    model = Seq2Seq(11, 13, embedding_size=8, dropout=0.5, dropout_kind=kind, **parts)
    read: list[torch.Tensor] = []
    model.output.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    batch = pairs([3, 3], [4, 4])
    model(*batch)
    zeros = (read[0].unflatten(0, (2, 5, 4)) == 0).float()  # [sentence, step, position, size]
    assert (zeros == zeros[:, :, :1]).all() and 0.2 < zeros.mean() < 0.8
    assert (zeros == zeros[:, :1]).all().item() is alike
