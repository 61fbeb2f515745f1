import random

import numpy as np
import pytest
import torch

from unrolled.base.errors import UnrolledError
from unrolled.train import randomness

CPU = torch.device("cpu")


def draw():
    return torch.rand(3).tolist(), np.random.rand(3).tolist(), np.random.randn(), random.random(), random.gauss(0, 1)


def test_every_generator_goes_on_from_a_packed_state():
    randomness.seed(5)
    draw()  # an odd number of gaussian draws: half a pair is remembered
    tensors = randomness.pack(randomness.capture(CPU))
    assert {tensor.dtype for tensor in tensors.values()} == {torch.uint8}
    expected = [draw(), draw()]
    randomness.restore(randomness.unpack(tensors), CPU)
    assert [draw(), draw()] == expected


def test_a_seed_sets_all_of_them():
    randomness.seed(5)
    first = draw()
    randomness.seed(6)
    second = draw()
    randomness.seed(5)
    assert draw() == first != second
    assert all(left != right for left, right in zip(first, second, strict=True))


def test_what_is_drawn_inside_kept_is_not_noticed():
    randomness.seed(5)
    expected = draw()
    randomness.seed(5)
    with pytest.raises(ValueError, match="inside"), randomness.kept(CPU):
        draw()
        raise ValueError("inside")
    assert draw() == expected


def test_deterministic_names_an_operation_that_cannot_be_repeated():
    with (
        pytest.raises(UnrolledError, match="no repeatable form of an operation here: kthvalue"),
        randomness.deterministic(True),
    ):
        assert torch.are_deterministic_algorithms_enabled()
        raise RuntimeError("kthvalue CUDA does not have a deterministic implementation. You can …")
    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="shapes"), randomness.deterministic(True):
        raise RuntimeError("shapes")
