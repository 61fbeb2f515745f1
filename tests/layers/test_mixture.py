"""Mixtures of correlated Gaussians against torch.distributions, values and gradients; their mass, and their samples."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from unrolled.base.errors import SettingsError
from unrolled.layers.mixture import Mixture, MixtureDensity


def mixture(shape=(2, 3), components=5, floor=0.0, seed=0):
    draw = torch.Generator().manual_seed(seed)

    def numbers(*more):
        return torch.randn(*shape, components, *more, generator=draw, dtype=torch.float64)

    return Mixture(numbers(), numbers(2), 0.5 * numbers(2), numbers(), floor)


def oracle(one):
    """The same density as torch has it: a Gaussian noise of the floor's deviation adds to every variance."""
    deviations, correlation = one.scales.exp(), one.slants.tanh()
    across = correlation * deviations.prod(-1)
    variances = deviations**2 + one.floor**2
    rows = [torch.stack([variances[..., 0], across], -1), torch.stack([across, variances[..., 1]], -1)]
    return MixtureSameFamily(
        Categorical(logits=one.weights), MultivariateNormal(one.means, covariance_matrix=torch.stack(rows, -2))
    )


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_the_density_is_that_of_torch_and_so_are_its_gradients(floor):
    one = mixture(floor=floor)
    points = torch.randn(2, 3, 2, dtype=torch.float64)
    leaves = [tensor.requires_grad_() for tensor in one[:4]]
    mine = one.log_density(points)
    theirs = oracle(one).log_prob(points)
    torch.testing.assert_close(mine, theirs)
    weights = torch.randn_like(mine)
    for got, wanted in zip(
        torch.autograd.grad((mine * weights).sum(), leaves),
        torch.autograd.grad((theirs * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_gradients_hold_against_differences(floor):
    one = mixture((2,), 3, seed=1)
    points = torch.randn(2, 2, dtype=torch.float64)

    def density(*parts):
        return Mixture(*parts, floor).log_density(points)

    assert torch.autograd.gradcheck(density, [tensor.requires_grad_() for tensor in one[:4]])


def test_extreme_parameters_stay_finite_in_float32():
    """A component as thin as a line, on a point: the floor bounds its density, and nothing overflows."""
    edge = torch.tensor([-60.0, 60.0])
    one = Mixture(edge, torch.zeros(2, 2), torch.tensor([[-80.0, -80.0], [30.0, -80.0]]), edge * 2, 0.01)
    parts = [tensor.requires_grad_() for tensor in one[:4]]
    for point in ([0.0, 0.0], [1e4, -1e4]):
        said = one.log_density(torch.tensor(point))
        assert torch.isfinite(said)
        assert said <= -math.log(2 * math.pi * 0.01**2) + 1e-3
        assert all(torch.isfinite(grad).all() for grad in torch.autograd.grad(said, parts))


def test_the_mass_over_the_plane_is_one():
    one = mixture((1,), 4, floor=0.1, seed=2)
    side = torch.linspace(-25, 25, 1001, dtype=torch.float64)
    places = torch.cartesian_prod(side, side).unsqueeze(1)
    mass = one.log_density(places).exp().sum() * float(side[1] - side[0]) ** 2
    assert float(mass) == pytest.approx(1, abs=1e-3)


def test_samples_have_the_means_and_covariances_of_their_components():
    one = mixture((), 2, floor=0.4, seed=3)
    count = 200_000
    wide = Mixture(*(part.expand(count, *part.shape) for part in one[:4]), one.floor)
    normal = torch.randn(count, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    wanted = oracle(one).component_distribution
    for chosen in (0, 1):
        drawn = wide.drawn(torch.full((count,), chosen), normal)
        covariance = wanted.covariance_matrix[chosen]
        torch.testing.assert_close(drawn.mean(0), wanted.mean[chosen], atol=0.02, rtol=0)
        torch.testing.assert_close(drawn.T.cov(), covariance, atol=0.02 * float(covariance.max()), rtol=0)


def test_a_bias_narrows_and_sharpens_as_the_paper_has_it():
    """Graves 2013, eqs. 61 and 62; and Ha & Eck 2017, eq. 8, of a temperature."""
    one, bias = mixture(floor=0.2), 0.7
    found = one.sharpened(bias=bias)
    torch.testing.assert_close(found.weights.softmax(-1), (one.weights * (1 + bias)).softmax(-1))
    torch.testing.assert_close(found.scales.exp(), (one.scales - bias).exp())
    cold = one.sharpened(temperature=0.25)
    torch.testing.assert_close(cold.weights.softmax(-1), (one.weights / 0.25).softmax(-1))
    torch.testing.assert_close(
        oracle(cold).component_distribution.variance, oracle(one).component_distribution.variance / 4
    )


def test_the_layer_stays_in_float32_under_autocast():
    layer = MixtureDensity(7, components=3, floor=0.1)
    h = torch.randn(2, 5, 7)
    plain = layer(h)
    with torch.autocast("cpu", torch.bfloat16):
        under = layer(h)
    for one, other in zip(plain[:4], under[:4], strict=True):
        torch.testing.assert_close(one, other)
    assert [tuple(part.shape) for part in plain[:4]] == [(2, 5, 3), (2, 5, 3, 2), (2, 5, 3, 2), (2, 5, 3)]


@pytest.mark.parametrize("given", [{"components": 0}, {"floor": -1.0}, {"floor": np.inf}])
def test_impossible_mixtures_are_refused(given):
    with pytest.raises(SettingsError, match=r"components .* and floor .* were given"):
        MixtureDensity(3, **given)
