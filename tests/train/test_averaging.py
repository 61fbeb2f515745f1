import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from unrolled.train.averaging import AVERAGES


def walk(steps):
    """A model whose weights move, and its weights at every step."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    for _ in range(steps):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
            model(torch.randn(5, 3))
        yield model, dict(model.state_dict())


def test_exponential_is_torchs_moving_average():
    average = AVERAGES.build({"kind": "exponential", "decay": 0.05, "every": 1})
    oracle = None
    for model, weights in walk(9):
        average.updated(weights)
        if oracle is None:
            oracle = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.05), use_buffers=True)
        oracle.update_parameters(model)
    for name, tensor in oracle.module.state_dict().items():
        if tensor.is_floating_point():
            torch.testing.assert_close(average.weights()[name], tensor)
    assert average.weights()["1.num_batches_tracked"] == 9


def test_exponential_taken_rarely_forgets_as_fast():
    """A steady weight is approached at the same pace whether every update counts or each fifth."""
    found = []
    for every in (1, 5):
        average = AVERAGES.build({"kind": "exponential", "decay": 0.9, "every": every})
        average.updated({"w": torch.zeros(1)})
        for _ in range(199):
            average.updated({"w": torch.ones(1)})
        found.append(1 - average.weights()["w"].item())
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_last_is_torchs_mean_of_the_last_ones():
    average = AVERAGES.build({"kind": "last", "validations": 3})
    oracle = None
    for step, (model, weights) in enumerate(walk(7)):
        average.validating(weights)
        if step >= 4:
            oracle = oracle or AveragedModel(model)
            oracle.update_parameters(model)
    for name, parameter in oracle.module.named_parameters():
        torch.testing.assert_close(average.weights()[name], parameter)
    assert average.weights()["1.num_batches_tracked"] == 7


@pytest.mark.parametrize("kind", sorted(AVERAGES))
def test_an_average_is_taken_up_from_its_state(kind):
    first, second = AVERAGES.build(kind), AVERAGES.build(kind)
    assert first.weights() is None
    for step, (_, weights) in enumerate(walk(25)):
        first.updated(weights)
        if step % 5 == 0:
            first.validating(weights)
        if step == 12:
            second.restore({name: tensor.clone() for name, tensor in first.state().items()})
        if step > 12:
            second.updated(weights)
            if step % 5 == 0:
                second.validating(weights)
    left, right = first.weights(), second.weights()
    assert (left is None) == (right is None) == (kind == "none")
    for name in left or {}:
        assert torch.equal(left[name], right[name])
