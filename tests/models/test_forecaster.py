"""The forecaster: its base, its highway, quantiles that do not cross, windows of any length."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_pinball_loss
from small_parts import DECODERS, ENCODERS

from unrolled.base.errors import SettingsError
from unrolled.models import MODELS
from unrolled.models.forecaster import Extent, Forecasted, pinball

EXTENT = Extent(2, 5, 4, 1, 6, 5, 3, "refuse")
SMALL = {"kind": "forecaster", "size": 6, "dropout": 0.0}
CELL = {"kind": "gru", "hidden_size": 4}
PARTS = {"encoder": {"kind": "rnn", "cell": CELL}, "decoder": {"kind": "query_after", "cell": CELL}}


def build(extent=EXTENT, **changes):
    torch.manual_seed(0)
    return MODELS.build({**SMALL, **PARTS, **changes}, extent).eval()


def batch_of(lengths, extent=EXTENT, seed=0):
    draw = torch.Generator().manual_seed(seed)
    count = len(lengths)
    mask = torch.arange(extent.context) < torch.tensor(lengths)[:, None]
    past = torch.randn(count, extent.context, extent.channels, generator=draw) * mask.unsqueeze(2)
    seen = mask.unsqueeze(2).expand(-1, -1, extent.numbers).clone()
    future = torch.randn(count, extent.horizon, extent.ahead, generator=draw)
    return past, mask, seen, future


def stirred(network):
    """The network with no weight at its beginning."""
    torch.manual_seed(1)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return network


@pytest.mark.parametrize(
    ("base", "expected"), [("season", [3, 4, 5, 3, 4]), ("last", [5, 5, 5, 5, 5]), ("none", [2.5] * 5)]
)
@pytest.mark.parametrize("window", ["none", "last", "mean", "standard"])
def test_a_new_network_forecasts_its_base(base, expected, window):
    if base == "none" and window in ("none", "last"):
        expected = [0] * 5 if window == "none" else [5] * 5
    extent = EXTENT._replace(targets=1, channels=2, numbers=1)
    past, mask, seen, future = batch_of([6], extent)
    past[0, :, 0] = torch.arange(6.0)
    found = build(extent, base=base, window=window)(past, mask, seen, future)
    torch.testing.assert_close(found.quantiles[0, :, 0, 2], torch.tensor(expected, dtype=torch.float32))


def test_a_short_past_has_no_season_and_repeats_its_last_step():
    past, mask, seen, future = batch_of([2])
    found = build(window="none")(past, mask, seen, future).quantiles[0, :, 0, 2]
    last, before = past[0, 1, 0], past[0, 0, 0]
    torch.testing.assert_close(found, torch.stack([last, before, last, last, before]))


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_quantiles_do_not_cross_and_padding_changes_nothing(kind, encoder):
    network = stirred(build(encoder=ENCODERS[encoder], decoder=DECODERS[kind]))
    past, mask, seen, future = batch_of([6, 3, 2])
    whole = network(past, mask, seen, future)
    assert (whole.quantiles.diff(dim=-1) >= 0).all()
    noise = torch.where(mask.unsqueeze(2), past, 7.0)
    torch.testing.assert_close(network(noise, mask, seen, future).quantiles, whole.quantiles)
    for row in range(3):
        alone = network(past[row : row + 1], mask[row : row + 1], seen[row : row + 1], future[row : row + 1])
        torch.testing.assert_close(alone.quantiles, whole.quantiles[row : row + 1], atol=1e-5, rtol=1e-5)
    if whole.weights is not None:
        torch.testing.assert_close(whole.weights.sum(dim=-1), torch.ones(3, EXTENT.horizon))
        assert (whole.weights[1, :, 3:] == 0).all()


def test_window_scaling_follows_level_and_size():
    past, mask, seen, future = batch_of([6, 4])
    network = stirred(build(window="standard"))
    moved = past.clone()
    moved[..., :2] = 3 + 5 * past[..., :2]
    first, second = (network(given, mask, seen, future).quantiles for given in (past, moved))
    torch.testing.assert_close(second, 3 + 5 * first, atol=1e-3, rtol=1e-4)


def test_what_is_missing_is_told_and_read_as_nothing():
    past, mask, seen, future = batch_of([6], EXTENT)
    network = stirred(build(EXTENT._replace(missing="mask")))
    seen[0, 2, 0] = False
    first = network(past, mask, seen, future).quantiles
    past[0, 2, 0] = 99.0
    torch.testing.assert_close(network(past, mask, seen, future).quantiles, first)
    seen[0, 2, 0] = True
    assert (network(past, mask, seen, future).quantiles - first).abs().max() > 0.1


def test_the_pinball_loss_is_scikit_learns():
    draw = np.random.default_rng(0)
    levels = (0.1, 0.5, 0.8)
    target, quantiles = draw.normal(size=(3, 5, 2)), np.sort(draw.normal(size=(3, 5, 2, 3)), axis=-1)
    wanted = draw.random((3, 5, 2)) < 0.7
    found = Forecasted(torch.tensor(quantiles), None, None)
    total = pinball(found, levels, torch.tensor(target), torch.tensor(wanted)) / wanted.sum()
    expected = np.mean(
        [
            mean_pinball_loss(target[wanted], quantiles[..., place][wanted], alpha=level)
            for place, level in enumerate(levels)
        ]
    )
    assert total.item() == pytest.approx(2 * expected, rel=1e-6)


def test_gradients_in_float64():
    extent = EXTENT._replace(context=3, horizon=2, season=2)
    network = stirred(build(extent, decoder={"kind": "fixed", "cell": CELL}, point="mean")).double()
    past, mask, seen, future = (one.double() if one.is_floating_point() else one for one in batch_of([3, 2], extent))
    target, wanted = torch.randn(2, 2, 2).double(), torch.ones(2, 2, 2, dtype=torch.bool)
    weights = (network.head.weight, network.ahead.weight, network.highway.weight)
    names = ("head.weight", "ahead.weight", "highway.weight")

    def loss(*given):
        changed = dict(zip(names, given, strict=True))
        found = torch.func.functional_call(network, changed, (past, mask, seen, future))
        return pinball(found, network.quantiles, target, wanted)

    assert torch.autograd.gradcheck(loss, weights)


@pytest.mark.parametrize(
    ("levels", "message"),
    [((0.5, 0.1), "in rising order"), ((0.1, 0.9), "the median, 0.5, must be among them"), ((0.0, 0.5), "between 0")],
)
def test_levels_that_are_none_are_refused(levels, message):
    with pytest.raises(SettingsError, match=message):
        build(quantiles=levels)
