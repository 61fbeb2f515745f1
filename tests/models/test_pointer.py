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
