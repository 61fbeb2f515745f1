"""Where the pen goes next: pieces, padding, labels, and two histories in one network."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import SettingsError
from unrolled.models import HISTORIES, Handwriting
from unrolled.models.handwriting import READ, before, read

KINDS = {
    "rnn": {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 5}, "layers": 2},
    "skips": {"kind": "rnn", "cell": {"kind": "gru", "hidden_size": 5}, "layers": 3, "skips": True},
    "window": {"kind": "feedforward", "window": 3, "hidden_size": 7},
}


def build(kind, labels=0, **more):
    torch.manual_seed(1)
    return Handwriting(labels, 2.0, 0.1, history=KINDS[kind], components=3, label_size=2, **more).double().eval()


def drawings(rows=2, time=5):
    draw = torch.Generator().manual_seed(2)
    points = torch.randn(rows, time, 3, dtype=torch.float64, generator=draw)
    points[..., 2] = torch.randint(0, 2, (rows, time), generator=draw)
    points[:, -1, 2] = 2
    return points, torch.ones(rows, time, dtype=torch.bool)


@pytest.mark.parametrize("kind", KINDS)
def test_two_steps_and_then_three_are_five(kind):
    model, (points, mask) = build(kind), drawings()
    inputs, labels, state = before(points), torch.zeros(2, dtype=torch.int64), build(kind).initial(2)
    whole, end = model.seen(inputs, mask, labels, state)
    first, middle = model.seen(inputs[:, :2], mask[:, :2], labels, state)
    second, after = model.seen(inputs[:, 2:], mask[:, 2:], labels, middle)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    for one, other in zip(after, end, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_is_not_seen_before_it_comes(kind):
    model, (points, mask) = build(kind), drawings()
    labels, other = torch.zeros(2, dtype=torch.int64), points.clone()
    other[:, 3] += 1.0
    one, two = (model.ahead(before(given), mask, labels, model.initial(2))[0].pen for given in (points, other))
    torch.testing.assert_close(one[:, :4], two[:, :4])
    assert not torch.allclose(one[:, 4], two[:, 4])


@given(st.integers(1, 6), st.integers(0, 4))
@settings(max_examples=15, deadline=None)
def test_padding_changes_nothing(length, padding):
    model, (points, _) = build("skips", labels=2), drawings(1, length)
    labels = torch.tensor([2])
    alone = model(points, torch.ones(1, length, dtype=torch.bool), labels)
    filled = torch.cat([points, torch.full((1, padding, 3), 1.0, dtype=torch.float64)], dim=1)
    mask = torch.arange(length + padding)[None] < length
    found = model(filled, mask, labels)
    torch.testing.assert_close(found[:, :length], alone)
    assert not found[:, length:].any()


def test_densities_are_of_the_users_units():
    """Twice the user's units a unit of the network's: a quarter of the density."""
    model, (points, mask) = build("rnn"), drawings()
    labels = torch.zeros(2, dtype=torch.int64)
    one = model(points, mask, labels)
    model.scale = 4.0
    torch.testing.assert_close(model(points, mask, labels), one - math.log(4))


def test_a_label_is_read_and_none_is_its_own():
    model, (points, mask) = build("rnn", labels=2), drawings(1)
    said = [model(points, mask, torch.tensor([label])) for label in (0, 1, 2)]
    assert not torch.allclose(said[0], said[1])
    assert not torch.allclose(said[1], said[2])


def test_training_hides_some_labels_and_stretches():
    model = build("rnn", labels=3, label_dropout=0.5, stretch=0.2)
    torch.manual_seed(0)
    labels = torch.full((400,), 2)
    assert 140 < int((model._hidden(labels) == 0).sum()) < 260
    points = torch.ones(400, 2, 3)
    found = model._stretched(points)
    assert (found[..., 2] == 1).all()
    assert found[..., :2].min() >= 0.8
    assert found[..., :2].max() <= 1.2
    assert found[:, 0].equal(found[:, 1])
    assert found[..., 0].std() > 0.05


def test_an_end_that_goes_on_is_a_lift():
    points = torch.tensor([[[1.0, 2.0, 0.0], [3.0, 4.0, 1.0], [5.0, 6.0, 2.0]]])
    assert read(points).tolist() == [[[1, 2, 1, 0], [3, 4, 0, 1], [5, 6, 0, 1]]]
    assert before(points)[0, 0].tolist() == [0.0] * READ


def test_skips_read_the_input_everywhere_and_show_every_layer():
    history = HISTORIES.build(KINDS["skips"], 4, where="history")
    assert history.output_size == 15
    assert [stack.input_size for stack in history.stacks] == [4, 9, 9]
    x = torch.randn(2, 3, 4, requires_grad=True)
    output = history(x, None, history.initial(2, x)).output
    for layer in range(3):  # the top of a layer depends on the input by itself
        assert (
            torch.autograd.grad(output[..., 5 * layer : 5 * layer + 5].sum(), x, retain_graph=True)[0].abs().sum() > 0
        )
    with pytest.raises(SettingsError, match=r"skips and residual were both set to true"):
        HISTORIES.build({**KINDS["skips"], "residual": True}, 4, where="history")
