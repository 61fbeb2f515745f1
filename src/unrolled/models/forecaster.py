"""Quantiles of every step ahead: an encoder over the past, a decoder over the horizon that attends to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import DROPOUTS
from unrolled.models.bridge import BRIDGES
from unrolled.models.decoders import DECODERS
from unrolled.models.encoders import ENCODERS
from unrolled.models.pointer import shares, spread
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS

LEAST = 1e-2
"""The smallest deviation that a window is divided by, of the deviation of its series."""


class Extent(NamedTuple):
    """The sizes of a forecaster: channels of a step, and steps."""

    targets: int
    channels: int  # all of a step of the past
    numbers: int  # those of them that may be missing, the first ones
    ahead: int  # those of them that are known ahead, the last ones
    context: int
    horizon: int
    season: int  # 1: there is none
    missing: Literal["refuse", "forward", "mask"]  # what stands where a number is missing: never, the last one, nothing


class Forecasted(NamedTuple):
    """What is said of a batch, on the scale of its input."""

    quantiles: Tensor  # [batch, horizon, targets, quantiles], never falling along the last axis
    mean: Tensor | None  # [batch, horizon, targets]; None: the point forecast is the median
    weights: Tensor | None  # [batch, horizon, context]: what each step ahead read of each step back; None: no attention


class Level(NamedTuple):
    """What a window's targets are brought to: less ``middle``, through ``spread``, each [batch, 1, targets]."""

    middle: Tensor
    spread: Tensor


@MODELS.register("forecaster")
class Forecaster(nn.Module):
    """y_{t+h} = base_h + (A x)_h + head(s_h),  s = decoder(z_1 … | encoder(V [x, seen])),  z_h = U [f_h, base_h] + e_h

    x: the window's past; f: what is known ahead; e: a vector for each step ahead. All steps ahead are forecast at once
    (the direct multi-horizon forecast of Wen et al. 2017, arXiv:1711.11053), no forecast is fed back.

    ``window``: what a window's targets are brought to before anything is read, and back afterwards: less their last
    value, their mean, or their mean and through their deviation (Kim et al. 2022, RevIN, without its affine part).
    ``base``: what the network corrects: the value a season before, the last one, or nothing.
    ``linear``: a matrix A from the values of the past to the steps ahead, shared by all targets and beginning at 0
    (the autoregressive highway of Lai et al. 2018, arXiv:1703.07015; Zeng et al. 2023, arXiv:2205.13504).

    ``quantiles``: levels between 0 and 1, 0.5 among them. The median is free, each other one lies a softplus away from
    its neighbour, so they never cross. Trained by the pinball loss (Koenker & Bassett 1978). ``point``: the forecast
    that is one number is the median, or a mean of its own, learnt by squared error.
    """

    def __init__(
        self,
        extent: Extent,
        /,
        *,
        size: Count = 64,
        encoder: Annotated[Part, ENCODERS] = "rnn",
        bridge: Annotated[Part, BRIDGES] = "projection",
        decoder: Annotated[Part, DECODERS] = "query_after",
        quantiles: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9),
        point: Literal["median", "mean"] = "median",
        window: Literal["none", "last", "mean", "standard"] = "standard",
        base: Literal["season", "last", "none"] = "season",
        linear: bool = True,
        dropout: Share = 0.1,
        input_dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        _check(quantiles)
        self.extent, self.quantiles, self.window, self.base = extent, quantiles, window, base
        self.middle = quantiles.index(0.5)
        self.told = extent.missing != "refuse"
        self.front = nn.Linear(extent.channels + (extent.numbers if self.told else 0), size)
        self.encoder = ENCODERS.build(encoder, size, where="encoder")
        self.ahead = nn.Linear(extent.ahead + extent.targets, size)
        self.steps = nn.Embedding(extent.horizon, size)
        nn.init.normal_(self.steps.weight, std=0.1)
        self.decoder = DECODERS.build(decoder, size, self.encoder.output_size, where="decoder")
        self.bridge = BRIDGES.build(bridge, self.encoder.layout, self.decoder.layout, where="bridge")
        self.dropout = DROPOUTS.build({"kind": "plain", "rate": dropout}, where="dropout")
        self.input_dropout = DROPOUTS.build({"kind": "plain", "rate": input_dropout}, where="input_dropout")
        self.means = point == "mean"
        self.head = nn.Linear(self.decoder.output_size, extent.targets * (len(quantiles) + self.means))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.highway = nn.Linear(extent.context, extent.horizon) if linear else None
        if self.highway is not None:
            nn.init.zeros_(self.highway.weight)
            nn.init.zeros_(self.highway.bias)

    def forward(self, past: Tensor, mask: Tensor, seen: Tensor, future: Tensor) -> Forecasted:
        """A batch of windows (shapes as in `data.windows.Windowed`), at least one real step a row."""
        extent = self.extent
        level = self._level(past[..., : extent.targets], mask, seen[..., : extent.targets])
        targets = (past[..., : extent.targets] - level.middle) / level.spread * mask.unsqueeze(2)
        if extent.missing == "mask":
            targets = torch.where(seen[..., : extent.targets], targets, 0.0)
        lags = _newest_first(targets, mask)
        base = self._base(lags, mask)
        read = (targets, past[..., extent.targets :], *((seen.to(past.dtype),) if self.told else ()))
        encoded = self.encoder(self.input_dropout(self.front(torch.cat(read, dim=-1))), mask)
        given = self.ahead(torch.cat((future, base), dim=-1)) + self.steps.weight
        unrolled = self.decoder(given, self.decoder.start(encoded, self.bridge(encoded)))
        rise = base
        if self.highway is not None:
            rise = rise + self.highway(lags.transpose(1, 2)).transpose(1, 2)
        said = _exact(self.head(self.dropout(unrolled.outputs))).unflatten(-1, (extent.targets, -1))
        middle, width, rise = (_exact(one).unsqueeze(-1) for one in (level.middle, level.spread, rise))
        quantiles = (self._apart(said) + rise) * width + middle
        mean = ((said[..., -1:] + rise) * width + middle).squeeze(-1) if self.means else None
        return Forecasted(quantiles, mean, self._weights(unrolled.weights, mask))

    def _level(self, targets: Tensor, mask: Tensor, seen: Tensor) -> Level:
        real = seen & mask.unsqueeze(2)
        count = real.sum(dim=1, keepdim=True).clamp(min=1)
        zero, one = (
            targets.new_zeros(len(targets), 1, targets.shape[2]),
            targets.new_ones(len(targets), 1, targets.shape[2]),
        )
        if self.window == "none":
            return Level(zero, one)
        if self.window == "last":
            places = torch.arange(targets.shape[1], device=targets.device).view(1, -1, 1)
            last = torch.where(real, places, -1).amax(dim=1, keepdim=True)
            return Level(targets.gather(1, last.clamp(min=0)) * (last >= 0), one)
        middle = torch.where(real, targets, 0.0).sum(dim=1, keepdim=True) / count
        if self.window == "mean":
            return Level(middle, one)
        squares = torch.where(real, (targets - middle) ** 2, 0.0).sum(dim=1, keepdim=True) / count
        return Level(middle, squares.sqrt().clamp(min=LEAST))

    def _base(self, lags: Tensor, mask: Tensor) -> Tensor:
        """[batch, horizon, targets] of ``lags`` [batch, context, targets], the newest first."""
        extent = self.extent
        if self.base == "none":
            return lags.new_zeros(len(lags), extent.horizon, extent.targets)
        last = lags[:, :1].expand(-1, extent.horizon, -1)
        if self.base == "last" or extent.season == 1:
            return last
        steps = torch.arange(extent.horizon, device=lags.device)
        back = (
            extent.season - 1 - steps % extent.season
        )  # which lag, counted from 0, has the step's place in its season
        there = back.unsqueeze(0) < mask.sum(dim=1, keepdim=True)
        found = lags[:, back.clamp(max=lags.shape[1] - 1)]
        return torch.where(there.unsqueeze(2), found, last)

    def _apart(self, said: Tensor) -> Tensor:
        """Quantiles [..., quantiles] of the head's numbers: the median, and how far each is from the one beside it."""
        at, count = self.middle, len(self.quantiles)
        middle = said[..., at : at + 1]
        gaps = functional.softplus(said[..., :count])
        below = middle - gaps[..., :at].flip(-1).cumsum(dim=-1).flip(-1)
        above = middle + gaps[..., at + 1 :].cumsum(dim=-1)
        return torch.cat((below, middle, above), dim=-1)

    def _weights(self, weights: Tensor | None, mask: Tensor) -> Tensor | None:
        """Weights over the memory's positions as weights over the steps of the past."""
        if weights is None or self.encoder.reduction == 1:
            return weights
        return spread(weights, shares(mask, self.encoder.reduction), self.encoder.reduction)


def pinball(found: Forecasted, levels: Sequence[float], target: Tensor, wanted: Tensor) -> Tensor:
    """Σ over wanted targets of twice the mean pinball loss over the quantiles' ``levels``, and half the squared error
    of the mean where there is one. ``target`` float, ``wanted`` bool: [batch, horizon, targets].

    ρ_q(y, ŷ) = max(q (y - ŷ), (q - 1) (y - ŷ)), so that of the median alone it is |y - ŷ|.
    """
    error = target.unsqueeze(-1) - found.quantiles
    level = found.quantiles.new_tensor(levels)
    total = (2 * torch.maximum(level * error, (level - 1) * error).mean(dim=-1))[wanted].sum()
    if found.mean is not None:
        total = total + 0.5 * ((target - found.mean) ** 2)[wanted].sum()
    return total


def _exact(values: Tensor) -> Tensor:
    """``values`` in float32 at least."""
    return values if values.dtype is torch.float64 else values.float()


def _newest_first(values: Tensor, mask: Tensor) -> Tensor:
    """``values`` [batch, time, size] from the last real step of each row back; 0 behind its first."""
    steps = torch.arange(values.shape[1], device=values.device)
    places = mask.sum(dim=1, keepdim=True) - 1 - steps
    found = values.gather(1, places.clamp(min=0).unsqueeze(2).expand_as(values))
    return found * (places >= 0).unsqueeze(2)


def _check(quantiles: tuple[float, ...]) -> None:
    """SettingsError for levels that are none, not sorted, or lack the median."""
    given = list(quantiles)
    if sorted(set(given)) != given or not given or given[0] <= 0 or given[-1] >= 1:
        raise SettingsError(f"[quantiles] {given} was given; give levels between 0 and 1 in rising order, none twice.")
    if 0.5 not in given:
        raise SettingsError(f"[quantiles] {given} was given; the median, 0.5, must be among them: it is the forecast.")
