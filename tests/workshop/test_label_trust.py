"""What a picture of a signal says is worth: a network whose answer is one stretch, and one whose answer is nowhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from unrolled.text.readers import Framed
from unrolled.workshop.labelling import stretches, trust


class Spot(nn.Module):
    """p(label 1) = σ(8 · frame ``at`` of channel 0); reads every frame alike, or ``at`` alone."""

    each = False

    def __init__(self, at: int, looks: bool) -> None:
        super().__init__()
        self.at, self.looks = at, looks

    def probabilities(self, given, mask):
        said = torch.sigmoid(8 * given[:, self.at, 0])
        weights = mask.float() * 0.01
        weights[:, self.at if self.looks else 0] = 1.0
        return torch.stack((1 - said, said), dim=1), weights / weights.sum(dim=1, keepdim=True)


def rows() -> list[np.ndarray]:
    random = np.random.default_rng(3)
    made = [random.normal(size=(24, 2)).astype(np.float32) for _ in range(6)]
    for one in made:
        one[10, 0] = 1.0
    return made


@pytest.mark.parametrize("looks", [True, False])
def test_deletion_finds_what_counts_and_whether_attention_does(looks):
    found = trust(Spot(10, looks), Framed(), [(one, stretches(one, 24)) for one in rows()], part="frame", device="cpu")
    kept = 1 / (1 + np.exp(-8.0))
    lost = 1 - 0.5 / kept
    assert found["deletion"].value == pytest.approx(lost, abs=1e-4) and found["deletion"].cases == 6
    assert found["deletion"].chance == pytest.approx(lost / 4, abs=0.12)
    assert found["attention_deletion"].value == pytest.approx(lost if looks else 0.0, abs=1e-4)
    assert "quarter of its frames" in found["deletion"].sentence


def test_a_single_frame_has_nothing_to_take_out():
    one = np.ones((1, 1), np.float32)
    found = trust(Spot(0, looks=True), Framed(), [(one, stretches(one, 24))], part="frame", device="cpu")
    assert found["deletion"].value is None and "nothing to take out" in found["deletion"].sentence
