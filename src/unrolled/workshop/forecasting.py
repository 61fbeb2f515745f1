"""Windows of series through a network: quantiles of what comes, and on which part of the past they rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.tasks.forecast_scores import Tried
from unrolled.tasks.forecast_sizes import cutting_of

if TYPE_CHECKING:
    from unrolled.models import Forecaster
    from unrolled.text.forecasting import SeriesText

TOGETHER = 256
"""Windows that go through a network at once."""


class Place(NamedTuple):
    """A forecast to make: which of the given series, and the first step that is forecast."""

    series: int
    origin: int


class Seen(NamedTuple):
    """What a network says of windows, on the scale of the stored series."""

    quantiles: np.ndarray  # float32 [windows, horizon, targets, quantiles]
    point: np.ndarray  # float32 [windows, horizon, targets]
    weights: np.ndarray | None  # float32 [windows, horizon, context]


def foresee(
    network: Forecaster, text: SeriesText, series: Sequence[np.ndarray], places: Sequence[Place], *, device: Any,
    most: int | None = None,
) -> Seen:  # fmt: skip
    """Scaled series [time, channels] → what is forecast at ``places``, at most ``most`` of them at once."""
    from unrolled.data.windows import cut_window

    how = cutting_of(text)
    step = most or TOGETHER
    found = [
        _through(
            network, [cut_window(series[row], origin, how) for row, origin in places[start : start + step]], device
        )
        for start in range(0, len(places), step)
    ]
    weights = None if found[0].weights is None else np.concatenate([one.weights for one in found])
    return Seen(np.concatenate([one.quantiles for one in found]), np.concatenate([one.point for one in found]), weights)


def _through(network: Forecaster, windows: Sequence[tuple[np.ndarray, ...]], device: Any) -> Seen:
    import torch

    from unrolled.data.windows import padded
    from unrolled.tasks.base import moved

    batch = moved(padded(windows, network.extent.context), device)
    with torch.inference_mode():
        said = network(batch.past, batch.mask, batch.seen, batch.future)
    quantiles = said.quantiles.float().cpu().numpy()
    point = quantiles[..., network.middle] if said.mean is None else said.mean.float().cpu().numpy()
    return Seen(quantiles, point, None if said.weights is None else said.weights.float().cpu().numpy())


def restored(seen: Seen, scales: Sequence[Any], text: SeriesText) -> Tried:
    """What was seen in the user's numbers; ``scales``: of each window's series."""
    points = [text.restored(point, scale) for point, scale in zip(seen.point, scales, strict=True)]
    quantiles = [
        np.moveaxis(text.restored(np.moveaxis(one, -1, -2), scale), -2, -1)
        for one, scale in zip(seen.quantiles, scales, strict=True)
    ]
    return Tried(np.stack(points), np.stack(quantiles))


def rests(
    network: Forecaster, text: SeriesText, series: np.ndarray, origin: int, *, pieces: int, device: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Borders, int [pieces + 1], of even stretches of the window's past, and how far each step ahead moves without each
    of them, float64 [horizon, pieces, targets], on the scale of the series.

    A stretch is taken out by a straight line between its neighbours, in every number of the user (occlusion, Zeiler &
    Fergus 2014, arXiv:1311.2901): nothing of it is left but that time went by.
    """
    begin = max(origin - text.window.context, 0)
    count = min(pieces, origin - begin)
    borders = np.linspace(begin, origin, count + 1).round().astype(int)
    without = [series]
    for start, stop in pairwise(borders.tolist()):
        one = series.copy()
        one[start:stop, : text.numbers] = _line(series[:, : text.numbers], start, stop, begin, origin)
        without.append(one)
    said = foresee(network, text, without, [Place(row, origin) for row in range(len(without))], device=device)
    moved = np.abs(said.point[1:].astype(np.float64) - said.point[0])
    return borders - begin, np.moveaxis(moved, 0, 1)


def _line(numbers: np.ndarray, start: int, stop: int, begin: int, origin: int) -> np.ndarray:
    """What stands for the steps ``start`` to ``stop``: from the step before to the step after."""
    left = numbers[start - 1] if start > begin else numbers[min(stop, origin - 1)]
    right = numbers[stop] if stop < origin else numbers[max(start - 1, begin)]
    share = ((np.arange(start, stop) - start + 1) / (stop - start + 1))[:, None]
    return left * (1 - share) + right * share
