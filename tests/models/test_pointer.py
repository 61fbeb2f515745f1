"""Copying, spreading and the price of looking twice, each against its formula written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import DECODERS, GRU

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import UNKNOWN
from unrolled.models import Seq2Seq
from unrolled.models.pointer import Pointer, shares, spread


def test_copying_mixes_the_vocabulary_and_the_attended_words() -> None:
    torch.manual_seed(0)
    pointer = Pointer(3, 7, 5).double()
    output, logits = torch.randn(2, 3).double(), torch.randn(2, 5).double()
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.9, 0.1, 0.0]]).double()
    targets = torch.tensor([[4, 2, 4], [3, 3, 0]])
    found = pointer(output, logits, weights, targets)
    for row in range(2):
        written = torch.sigmoid(pointer.gate.weight[0] @ output[row] + pointer.gate.bias[0])
        said = written * logits[row].exp() / logits[row].exp().sum()
        for weight, target in zip(weights[row], targets[row], strict=True):
            said[target] = said[target] + (1 - written) * weight
        torch.testing.assert_close(found[row], said.log())
    torch.testing.assert_close(found.exp().sum(dim=1), torch.ones(2).double())
    torch.testing.assert_close(found.log_softmax(dim=1), found)


def test_a_source_word_without_a_target_is_copied_as_unknown() -> None:
    pointer = Pointer(3, 7, 5)
    assert pointer.targets.tolist() == [0, 1, 2, 3, 4, UNKNOWN, UNKNOWN]
    pointer.point([0, 1, 2, 3, UNKNOWN, 4, UNKNOWN])
    assert pointer.targets.tolist() == [0, 1, 2, 3, UNKNOWN, 4, UNKNOWN]
    assert "targets" in dict(pointer.named_buffers())
    with pytest.raises(UsageError, match=r"copy: 2 target symbols were given for 7 source symbols; .* 0 to 4\."):
        pointer.point([0, 1])
    with pytest.raises(UsageError, match=r"each one, from 0 to 4"):
        pointer.point([0, 1, 2, 3, 4, 5, 1])


def test_a_model_whose_gate_is_shut_says_nothing_but_source_words(small: Callable, pairs: Callable) -> None:
    model = small(copy=True, decoder=DECODERS["query_before"])
    with torch.no_grad():
        model.pointer.gate.weight.zero_()
        model.pointer.gate.bias.fill_(-1e4)
    batch = pairs([3, 1], [2, 4])
    said = model(*batch).logits.exp()
    rows = torch.arange(2).repeat_interleave(batch.target_mask[:, 1:].sum(dim=1))
    for row, line in zip(rows.tolist(), said, strict=True):
        words = set(batch.source_ids[row][batch.source_mask[row]].tolist())
        assert {symbol for symbol, chance in enumerate(line.tolist()) if chance > 1e-12} == words


def test_a_symbol_that_is_lent_is_said_by_copying_alone() -> None:
    torch.manual_seed(1)
    pointer = Pointer(3, 7, 5, 2).double()
    assert pointer.targets.tolist() == [0, 1, 2, 3, 4, UNKNOWN, UNKNOWN, 5, 6]
    assert pointer.vocabulary_size == 7
    output, logits = torch.randn(2, 3).double(), torch.randn(2, 5).double()
    weights = torch.tensor([[0.5, 0.2, 0.2, 0.1], [0.9, 0.1, 0.0, 0.0]]).double()
    targets = pointer.targets[torch.tensor([[8, 4, 8, 7], [4, 7, 0, 0]])]
    found = pointer(output, logits, weights, targets).exp()
    written = torch.sigmoid(pointer.gate(output))
    plain = torch.cat((logits.softmax(1) * written, torch.zeros(2, 2)), dim=1)
    one_hot = torch.nn.functional.one_hot(targets, 7).double() * weights.unsqueeze(2)
    torch.testing.assert_close(found, plain + (1 - written) * one_hot.sum(dim=1))
    torch.testing.assert_close(found[0, 6], (1 - written[0, 0]) * 0.7)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(2).double())


LENDING = {
    "one after the other": {"decoder": DECODERS["query_before"]},
    "features": {"decoder": DECODERS["query_after"]},
    "alignment": {"decoder": DECODERS["query_before"], "alignment": "monotonic"},
}


@pytest.mark.parametrize("name", LENDING)
def test_lent_symbols_are_read_as_unknown_and_told_apart_where_they_are_copied(name: str) -> None:
    torch.manual_seed(2)
    features = 3 if name == "features" else 0
    model = Seq2Seq(11, 13, features, 4, embedding_size=5, dropout=0.0, copy=True, **LENDING[name]).double().eval()
    assert model.vocabulary_size == 17
    first = 11 + features
    source = torch.tensor([[first, 5, first + 1, 3], [6, first, 3, 0]])
    mask = source != 0
    target = torch.tensor([[2, 13, 14, 3], [2, 13, 3, 0]])
    found = model(source, mask, target, target != 0)
    other = torch.tensor([[first + 1, 5, first, 3], [6, first + 1, 3, 0]])
    swapped = model(other, mask, torch.tensor([[2, 14, 13, 3], [2, 14, 3, 0]]), target != 0)
    order = [*range(13), 14, 13, 15, 16]
    torch.testing.assert_close(swapped.logits, found.logits[:, order])
    torch.testing.assert_close(swapped.weights, found.weights)
    if name == "alignment":  # what a position has said tells where the next one is
        return
    unknown = model(source.masked_fill(source >= first, UNKNOWN), mask, target, target != 0)
    said, plain = found.logits.exp(), unknown.logits.exp()
    torch.testing.assert_close(said[:, 2:13], plain[:, 2:13])
    torch.testing.assert_close(said[:, 13:15].sum(1) + said[:, 1], plain[:, 1])


@pytest.mark.parametrize("name", LENDING)
def test_lent_symbols_are_fed_back_as_unknown(name: str) -> None:
    torch.manual_seed(2)
    model = Seq2Seq(11, 13, 0, 4, embedding_size=5, dropout=0.0, copy=True, **LENDING[name]).double().eval()
    source, target = torch.tensor([[11, 5, 12, 3], [6, 11, 3, 0]]), torch.tensor([[2, 13, 14, 3], [2, 13, 3, 0]])
    mask = source != 0
    found = model(source, mask, target, target != 0)
    state, last = model.start(source, mask), torch.tensor([2, 2])
    rows = torch.tensor([0, 3])  # the first symbols of both sentences among all
    logits, _, state = model.step(last, state)
    torch.testing.assert_close(logits.log_softmax(1), found.logits.log_softmax(1)[rows])
    logits, _, _ = model.step(torch.tensor([13, 13]), state)
    torch.testing.assert_close(logits.log_softmax(1), found.logits.log_softmax(1)[rows + 1])


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_smoothed_over_the_vocabulary_without_what_is_lent(smoothing: float) -> None:
    torch.manual_seed(3)
    model = Seq2Seq(11, 13, 0, 4, embedding_size=5, dropout=0.0, copy=True, decoder=DECODERS["query_before"]).double()
    source, target = torch.tensor([[11, 5, 12, 3]]), torch.tensor([[2, 11 + 2, 7, 14, 3]])
    mask, real = source != 0, target != 0
    said = model(source, mask, target, real).logits
    gold = said.gather(1, target[:, 1:].T).sum()
    expected = -(1 - smoothing) * gold - smoothing * said[:, :13].sum() / 13
    loss = model.loss(source, mask, target, real, smoothing=smoothing)
    torch.testing.assert_close(loss, expected)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for one, other in zip(
        torch.autograd.grad(loss, weights, retain_graph=True), torch.autograd.grad(expected, weights), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_without_copying_nothing_is_lent() -> None:
    assert Seq2Seq(11, 13, 0, 4, embedding_size=5, decoder=DECODERS["query_before"]).vocabulary_size == 13


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.sampled_from([2, 4]), st.integers(0, 3))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_spread_weights_keep_their_sum_on_the_real_words(lengths: list[int], reduction: int, more: int) -> None:
    source = max(lengths) + more
    mask = torch.arange(source) < torch.tensor(lengths).unsqueeze(1)
    places = -(-source // reduction)
    real = torch.arange(places) < torch.tensor([-(-length // reduction) for length in lengths]).unsqueeze(1)
    weights = torch.rand(len(lengths), 3, places).masked_fill(~real.unsqueeze(1), 0.0)
    share = shares(mask, reduction)
    wide = spread(weights, share, reduction)
    assert wide.shape == (len(lengths), 3, source)
    assert (wide.masked_select(~mask.unsqueeze(1)) == 0).all()
    torch.testing.assert_close(spread(weights[:, 1], share, reduction), wide[:, 1])
    for row, length in enumerate(lengths):
        for place in range(places):
            own = [j for j in range(place * reduction, (place + 1) * reduction) if j < length]
            for position in own:
                torch.testing.assert_close(wide[row, :, position], weights[row, :, place] / len(own))


def test_the_coverage_loss_is_asked_for_by_its_factor(small: Callable, pairs: Callable) -> None:
    batch = pairs([3, 1], [2, 4])
    model = small(coverage_loss=0.5)
    forced = model(*batch)
    expected = 0.0
    for row, steps in enumerate(batch.target_mask[:, 1:].sum(dim=1).tolist()):
        looked = forced.weights[row, :steps]
        for step in range(1, steps):
            expected = expected + torch.minimum(looked[step], looked[:step].sum(dim=0)).sum()
    torch.testing.assert_close(forced.penalty, 0.5 * expected)
    assert small()(*batch).penalty is None


@pytest.mark.parametrize("setting, value", [("copy", True), ("coverage_loss", 1.0)])
@pytest.mark.parametrize("decoder", [{"kind": "fixed", "cell": GRU}, {"kind": "feedforward", "attention": None}])
def test_what_needs_an_attention_is_refused_without_one(setting: str, value: object, decoder: dict) -> None:
    with pytest.raises(SettingsError, match=rf"\[{setting}\] .* no attention: it looks nowhere"):
        Seq2Seq(11, 13, embedding_size=5, decoder=decoder, **{setting: value})
