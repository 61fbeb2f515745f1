"""Labels of numbers: rows alone as in a batch with every pooling and encoder, frames one by one, gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.models import ENCODERS, MODELS, POOLINGS, NumbersToLabel

CHANNELS, LABELS = 3, 5
CELL = {"kind": "lstm", "hidden_size": 6}
SMALL = {
    "rnn": {"cell": CELL},
    "pyramidal": {"cell": CELL, "layers": 2},
    "transformer": {"layers": 1, "heads": 2, "feedforward_size": 7},
    "feedforward": {"hidden_size": 6},
    "ngram": {"hidden_size": 3},
}
FRONTS = {
    "frames": {"kind": "frames", "size": 6},
    "image": {"kind": "image", "grid": {"kind": "convolutional", "sizes": [4, 6]}, "positions": "sinusoidal"},
}


def model(front: str, several: bool = False, each: bool = False, /, **settings: object) -> NumbersToLabel:
    torch.manual_seed(1)
    tree = {"kind": "numbers_to_label", "front": FRONTS[front], "encoder": {"kind": "rnn", "cell": CELL}}
    found = MODELS.build(tree | settings, CHANNELS, LABELS, several, each, where="model")
    assert isinstance(found, NumbersToLabel)
    return found.eval()


def frames() -> list[tuple[Tensor, Tensor]]:
    """Each row alone, [1, time, channels], and its mask."""
    torch.manual_seed(2)
    return [(torch.randn(1, length, CHANNELS), torch.ones(1, length, dtype=torch.bool)) for length in (9, 4, 7)]


def images() -> list[tuple[Tensor, Tensor]]:
    """Each image alone, [1, height, width, channels + 1]; a place is of 4 pixels a side."""
    torch.manual_seed(3)
    found = []
    for height, width in ((12, 8), (5, 7), (9, 12)):
        pixels = torch.cat((torch.rand(1, height, width, CHANNELS) * 255, torch.ones(1, height, width, 1)), dim=3)
        found.append((pixels, torch.ones(1, -(-height // 4) * -(-width // 4), dtype=torch.bool)))
    return found


def batch(rows: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The rows side by side."""
    longest = [max(row.shape[axis] for row, _ in rows) for axis in range(1, rows[0][0].dim())]
    given = torch.zeros(len(rows), *longest)
    mask = torch.zeros(len(rows), max(real.shape[1] for _, real in rows), dtype=torch.bool)
    for place, (row, real) in enumerate(rows):
        given[place][tuple(slice(side) for side in row.shape[1:])] = row[0]
        mask[place, : real.shape[1]] = True
    return given, mask


ROWS = {"frames": frames, "image": images}


@pytest.mark.parametrize("front", list(FRONTS))
@pytest.mark.parametrize("encoder", list(ENCODERS))
@pytest.mark.parametrize("pooling", list(POOLINGS))
def test_rows_stand_alone(front, encoder, pooling):
    one, rows = model(front, encoder={"kind": encoder, **SMALL.get(encoder, {})}, pooling=pooling), ROWS[front]()
    given, mask = batch(rows)
    found = one(given, mask)
    vectors = one.vector(given, mask)
    assert found.logits.shape == (3, LABELS)
    for place, (row, real) in enumerate(rows):
        alone = one(row, real)
        torch.testing.assert_close(found.logits[place], alone.logits[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(vectors[place], one.vector(row, real)[0], atol=1e-5, rtol=1e-5)
        if pooling != "attention":
            assert found.weights is None
            continue
        own = found.weights[place]
        assert own.sum().item() == pytest.approx(1, abs=1e-5)
        assert (own[real.shape[1] :] == 0).all()
        torch.testing.assert_close(own[: real.shape[1]], alone.weights[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("front", list(FRONTS))
def test_gradients_are_those_of_differences(front):
    one = model(front).double()
    given, mask = batch(ROWS[front]()[:2])
    given = given.double()
    real = given[..., -1:] if front == "image" else None
    moving = (given if real is None else given[..., :-1]).clone().requires_grad_()

    def loss(numbers: Tensor) -> Tensor:
        return one.loss(one(numbers if real is None else torch.cat((numbers, real), dim=3), mask).logits, target)

    target = torch.tensor([0, 4])
    assert torch.autograd.gradcheck(loss, moving)


def test_each_frame_has_a_label_of_its_own():
    one, rows = model("frames", False, True), frames()
    found = one(*batch(rows))
    assert found.logits.shape == (3, 9, LABELS) and found.weights is None
    for place, (row, real) in enumerate(rows):
        alone = one(row, real).logits[0]
        torch.testing.assert_close(found.logits[place, : real.shape[1]], alone, atol=1e-5, rtol=1e-5)


def test_what_gives_no_position_for_each_frame_is_refused():
    with pytest.raises(SettingsError, match=r"\[model.encoder\] it makes fewer positions of the frames"):
        model("frames", False, True, encoder={"kind": "pyramidal", "cell": CELL})
    with pytest.raises(SettingsError, match=r"\[model.front\] it does not give a position for each frame"):
        model("image", False, True)
    tempo = {"kind": "frames", "augment": {"kind": "specaugment", "tempo": 0.1}}
    with pytest.raises(SettingsError, match=r"Take the front frames, without augment.tempo"):
        model("frames", False, True, front=tempo)
    assert model("frames", False, True, front={"kind": "frames", "augment": {"kind": "specaugment"}}).each


def test_of_several_labels_each_is_told_by_itself():
    one = model("image", True)
    given, mask = batch(images())
    said, _ = one.probabilities(given, mask)
    torch.testing.assert_close(said, one(given, mask).logits.sigmoid())
    wanted = torch.tensor([[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]]).bool()
    by_hand = -(wanted * said.log() + ~wanted * (1 - said).log()).sum()
    torch.testing.assert_close(one.loss(one(given, mask).logits, wanted), by_hand, atol=1e-4, rtol=1e-4)
