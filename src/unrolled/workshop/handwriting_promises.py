"""What every model of drawings promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.text.drawings import UP, Drawing
from unrolled.workshop.promises import Promise, near, reloaded

CLOSE = 1e-3
"""Nats by which two ways to the same number may differ."""

BEGINNING = 8
"""Points of each drawing after which the mass of its next point is summed up."""


def check_promises(model: Any, drawings: Sequence[Drawing] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``drawings`` (none: some that the model draws itself). ``model`` is one of pipeline's."""
    rows = [one.points for one in model.generate(count, length=40, seed=1)] if drawings is None else list(drawings)
    for row in rows:  # what was not finished within the length is ended
        row[-1, 2] = UP
    together = [one.log_probs for one in model.score(rows)]
    order = np.random.default_rng(2).permutation(len(rows))
    turned = [one.log_probs for one in model.score([rows[place] for place in order])]
    long = np.concatenate([max(rows, key=len)] * 2)
    padded = [model.score([row, long])[0].log_probs for row in rows[:16]]
    return [
        _compare("batch of 1 = batch of N", [model.score([row])[0].log_probs for row in rows], together),
        _compare("any order of drawings", [turned[place] for place in np.argsort(order)], together),
        _compare("any padding", padded, together[:16]),
        _steps(model),
        _mass(model, rows),
        _compare("saved = loaded", [one.log_probs for one in reloaded(model).score(rows)], together),
    ]


def _compare(name: str, first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Promise:
    return near(name, first, second, CLOSE, "log densities")


def _steps(model: Any) -> Promise:
    """What drawings were given as they were drawn, point by point, against one pass over each."""
    drawn = [one for one in model.generate(16, length=200, seed=3) if one.finished]
    name = "step by step = whole pass"
    if not drawn:
        return Promise(name, None, "no drawing was finished")
    whole = [one.log_prob for one in model.score([one.points for one in drawn], [one.label for one in drawn])]
    gap = max(abs(one.log_prob - said) / len(one.points) for one, said in zip(drawn, whole, strict=True))
    return Promise(name, gap < CLOSE, f"log densities a point differ by {gap:.1e} at most")


def _mass(model: Any, rows: Sequence[Drawing]) -> Promise:
    """The density of a next step summed over squares of the plane."""
    import torch

    from unrolled.models.handwriting import before

    begin = torch.from_numpy(model.text.drawings.scaled(rows[0][:BEGINNING])).to(model.device)[None]
    mask = torch.ones(begin.shape[:2], dtype=torch.bool, device=model.device)
    labels = torch.zeros(1, dtype=torch.int64, device=model.device)
    with torch.inference_mode():
        ahead, _ = model.network.ahead(before(begin), mask, labels, model.network.initial(1))
        one = ahead.mixture._replace(floor=max(ahead.mixture.floor, 0.05))  # smooth enough for the squares
        middle = one.means[0, -1].mean(0)
        reach = float(((one.means[0, -1] - middle).abs() + 8 * one.shape().spread[0, -1].exp()).max())
        side = torch.linspace(-1, 1, 801, device=model.device) * min(reach, 20.0)
        total = 0.0
        for down in (side + middle[1]).split(50):
            x, y = torch.meshgrid(side + middle[0], down, indexing="ij")
            places = torch.stack([x, y], dim=-1).view(-1, 1, 2)
            here = one._replace(
                weights=one.weights[0, -1:], means=one.means[0, -1:], scales=one.scales[0, -1:],
                slants=one.slants[0, -1:],
            )  # fmt: skip
            total += float(here.log_density(places).double().exp().sum())
    mass = total * float(side[1] - side[0]) ** 2
    return Promise("a density's mass is 1", abs(mass - 1) < 0.02, f"it sums to {mass:.4f} over the plane")
