"""A density over the plane as a mixture of correlated Gaussians, read off a vector (Graves 2013, arXiv:1308.0850)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers.surroundings import without_autocast


class Mixture(NamedTuple):
    """M Gaussians over the plane at each of any places, before they are normalised.

    weights     [..., M], logits: π = softmax(weights)
    means       [..., M, 2]
    scales      [..., M, 2]: σ = exp(scales)
    slants      [..., M]: ρ = tanh(slants)
    floor       the deviation in both directions of what is added to every point, 0 or more
    """

    weights: Tensor
    means: Tensor
    scales: Tensor
    slants: Tensor
    floor: float

    def shape(self) -> _Shape:
        """Deviations, correlations and areas of the Gaussians with what the floor adds to their variances."""
        low = math.log(self.floor) if self.floor > 0 else -math.inf
        # A variance is σ² + floor²; kept is the share of it that is σ²'s, lost the other: 1 - ρ² loses no digits so.
        share = functional.logsigmoid(2 * (self.scales - low))
        kept, lost = share.exp(), torch.sigmoid(2 * (low - self.scales))
        spread = 0.5 * torch.logaddexp(2 * self.scales, torch.full_like(self.scales, 2 * low))
        slant = self.slants.tanh()
        narrow = torch.exp(2 * (math.log(2) - self.slants.abs() - functional.softplus(-2 * self.slants.abs())))
        gone = lost[..., 0] + kept[..., 0] * lost[..., 1]
        correlation = slant * (0.5 * share.sum(-1)).exp()
        return _Shape(spread, correlation, narrow + slant**2 * gone)

    def log_density(self, points: Tensor) -> Tensor:
        """Natural log of Σ_j π_j N(x | μ_j, σ_j, ρ_j) at ``points`` [..., 2], [...] (eqs. 23 to 25)."""
        spread, correlation, rest = self.shape()
        off = (points.unsqueeze(-2) - self.means) * (-spread).exp()
        across = (off[..., 1] - correlation * off[..., 0]) ** 2 / rest
        each = -math.log(2 * math.pi) - spread.sum(-1) - 0.5 * (rest.log() + off[..., 0] ** 2 + across)
        return torch.logsumexp(self.weights.log_softmax(-1) + each, dim=-1)

    def sharpened(self, *, temperature: float = 1.0, bias: float = 0.0) -> Mixture:
        """What samples are drawn from: π^(1 + bias) and σ e^-bias (eqs. 61 and 62); π^(1/temperature) and
        σ √temperature (Ha & Eck 2017, arXiv:1704.03477, eq. 8)."""
        narrower = 0.5 * math.log(temperature) - bias
        return self._replace(
            weights=self.weights * ((1 + bias) / temperature),
            scales=self.scales + narrower,
            floor=self.floor * math.exp(narrower),
        )

    def drawn(self, chosen: Tensor, normal: Tensor) -> Tensor:
        """Points [..., 2] out of the Gaussians ``chosen`` int64 [...], made of standard ``normal`` numbers [..., 2]."""
        spread, correlation, rest = self.shape()
        place = chosen.unsqueeze(-1)
        mean, deviation = (_of(one, place) for one in (self.means, spread.exp()))
        slant, left = correlation.gather(-1, place).squeeze(-1), rest.gather(-1, place).squeeze(-1)
        across = slant * normal[..., 0] + left.sqrt() * normal[..., 1]
        return mean + deviation * torch.stack([normal[..., 0], across], dim=-1)


class _Shape(NamedTuple):
    spread: Tensor  # [..., M, 2], natural log of the deviations
    correlation: Tensor  # [..., M]
    rest: Tensor  # [..., M], 1 - correlation²


def _of(values: Tensor, place: Tensor) -> Tensor:
    """The rows ``place`` [..., 1] of ``values`` [..., M, 2], [..., 2]."""
    return values.gather(-2, place.unsqueeze(-1).expand(*place.shape, 2)).squeeze(-2)


class MixtureDensity(nn.Module):
    """A vector h to a `Mixture` of ``components`` M Gaussians, by one linear map of 6M rows (Bishop 1994; Graves 2013,
    eqs. 17 and 19 to 22): in float32 or wider, also under autocast.

    ``floor`` is the deviation of a Gaussian noise with which every point is taken to be measured, 0 or more: without it
    a component on a value that repeats (a coordinate that is often 0, a rounded one) has a density without bound.
    """

    def __init__(self, input_size: int, /, *, components: int = 20, floor: float = 0.0) -> None:
        super().__init__()
        if components < 1 or not (0 <= floor < math.inf):
            raise SettingsError(
                f"components {components} and floor {floor} were given; at least 1, and 0 or a finite number above."
            )
        self.components, self.floor = components, floor
        self.linear = nn.Linear(input_size, 6 * components)
        nn.init.normal_(self.linear.bias[components : 3 * components])  # means apart, so that components differ

    def forward(self, h: Tensor) -> Mixture:
        """The mixture at each place of ``h`` [..., input]."""
        with without_autocast(h):
            raw = self.linear(h.to(self.linear.weight.dtype))
        weights, means, scales, slants = raw.split([self.components * times for times in (1, 2, 2, 1)], dim=-1)
        pairs = (*raw.shape[:-1], self.components, 2)
        return Mixture(weights, means.reshape(pairs), scales.reshape(pairs), slants, self.floor)
