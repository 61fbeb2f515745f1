"""Drawings through a network: how probable each point is; and new ones, drawn point by point from what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.data.grouping import by_length
from unrolled.text.drawings import END
from unrolled.text.labelled import Labels

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.models import Handwriting
    from unrolled.models.handwriting import Ahead

TOGETHER = 8192
"""Padded points that go through a network at once."""


class Inked(NamedTuple):
    """A drawing as a network reads it."""

    points: np.ndarray  # float32 [points, 3], scaled
    label: int  # 0 for none


class Found(NamedTuple):
    """What a network said of a drawing."""

    log_probs: np.ndarray  # float64 [points], nats, per square of the user's unit
    pens: np.ndarray  # float32 [points, 3], the probability of each thing that the pen may do


def found_of(network: Handwriting, rows: Sequence[Inked], *, device: Any) -> list[Found]:
    """What is said of every point of each drawing, whatever their order and padding."""
    from unrolled.models.handwriting import before

    found: list[Found] = [Found(np.empty(0), np.empty((0, 3)))] * len(rows)
    for group, points, mask, labels in _padded(rows, device):
        ahead, _ = network.ahead(before(points), mask, labels, network.initial(len(points)))
        said = network.log_density(ahead, points).double().cpu().numpy()
        pens = ahead.pen.exp().cpu().numpy()
        for place, row in enumerate(group):
            length = len(rows[row].points)
            found[row] = Found(said[place, :length], pens[place, :length])
    return found


def vectors_of(network: Handwriting, rows: Sequence[Inked], *, device: Any) -> np.ndarray:
    """Float32 [drawings, size]: `Handwriting.vector` of each."""
    found: list[Any] = [None] * len(rows)
    for group, points, mask, labels in _padded(rows, device):
        for row, vector in zip(group, network.vector(points, mask, labels).float().cpu().numpy(), strict=True):
            found[row] = vector
    return np.stack(found)


def _padded(rows: Sequence[Inked], device: Any) -> Any:
    """Batches of drawings of like length: which they are, points, mask, labels."""
    import torch

    from unrolled.data.frames import pad_frames

    for group in by_length([len(row.points) for row in rows], TOGETHER):
        points, mask = pad_frames([rows[row].points for row in group])
        labels = torch.tensor([rows[row].label for row in group], device=device)
        with torch.inference_mode():
            yield group, points.to(device), mask.to(device), labels


class Draws(NamedTuple):
    """How drawings are drawn. ``temperature`` above 0 and ``bias`` 0 or more: see `Mixture.sharpened`."""

    length: int  # points at most, the beginning counted
    temperature: float
    bias: float
    seed: int


def labels_drawn(labels: Labels, count: int, label: str | None, seed: int) -> list[str]:
    """The label of each of ``count`` samples: ``label``, or where it is None one as often as training rows have it."""
    shares = np.array(labels.counts, float)
    if label is not None or not shares.sum():
        return [label or ""] * count
    draws = (np.random.default_rng((seed, number, 1)) for number in range(count))
    return [labels.names[int(one.choice(len(shares), p=shares / shares.sum()))] for one in draws]


class Sketch(NamedTuple):
    """What was drawn."""

    points: np.ndarray  # float32 [points, 3], scaled, the beginning among them
    log_probs: np.ndarray  # float64 [drawn points], nats, what the network itself gives them


def draw(network: Handwriting, begin: np.ndarray, labels: Sequence[int], draws: Draws, *, device: Any) -> list[Sketch]:
    """Drawings that go on from ``begin`` float32 [points, 3], scaled, which may be empty; one of each of ``labels``.

    A sample depends on the seed and its number alone, but for what rounding makes of neighbours.
    """
    import torch

    randoms = [np.random.default_rng((draws.seed, number)) for number in range(len(labels))]
    points: list[list[np.ndarray]] = [[] for _ in randoms]
    said: list[list[float]] = [[] for _ in randoms]
    live, wanted = np.arange(len(labels)), torch.tensor(labels, device=device)
    with torch.inference_mode():
        ahead, state = _begun(network, begin, wanted)
        for _ in range(max(0, draws.length - len(begin))):
            chance = np.array([randoms[row].random(2) for row in live])
            normal = np.array([randoms[row].standard_normal(2) for row in live])
            new = _drawn(ahead, chance, normal, draws)
            given = network.log_density(ahead, new)[:, 0].double().cpu().numpy()
            for place, row in enumerate(live):
                points[row].append(new[place, 0].cpu().numpy())
                said[row].append(float(given[place]))
            on = (new[:, 0, 2] != END).nonzero().squeeze(1)
            live = live[on.cpu().numpy()]
            if not len(live):
                break
            wanted = wanted[on]
            ahead, state = _step(network, new[on], wanted, tuple(part[on] for part in state))
    return [
        Sketch(np.concatenate([begin, np.array(row, np.float32).reshape(-1, 3)]), np.array(logs))
        for row, logs in zip(points, said, strict=True)
    ]


def _begun(network: Handwriting, begin: np.ndarray, labels: Tensor) -> tuple[Ahead, Any]:
    """What is said after ``begin``, and the state, a row for each label."""
    import torch

    from unrolled.models.handwriting import READ, read

    count, device = len(labels), labels.device
    points = torch.from_numpy(np.asarray(begin, np.float32)).to(device)[None].expand(count, -1, -1)
    given = torch.cat([points.new_zeros(count, 1, READ), read(points)], dim=1)
    mask = torch.ones(given.shape[:2], dtype=torch.bool, device=device)
    ahead, state = network.ahead(given, mask, labels, network.initial(count))
    mixture = ahead.mixture
    last = mixture._replace(
        weights=mixture.weights[:, -1:], means=mixture.means[:, -1:], scales=mixture.scales[:, -1:],
        slants=mixture.slants[:, -1:],
    )  # fmt: skip
    return ahead._replace(mixture=last, pen=ahead.pen[:, -1:]), state


def _step(network: Handwriting, new: Tensor, labels: Tensor, state: Any) -> tuple[Ahead, Any]:
    import torch

    from unrolled.models.handwriting import read

    mask = torch.ones(new.shape[:2], dtype=torch.bool, device=new.device)
    return network.ahead(read(new), mask, labels, state)


def _drawn(ahead: Ahead, chance: np.ndarray, normal: np.ndarray, draws: Draws) -> Tensor:
    """New points [rows, 1, 3] from uniform and standard normal numbers [rows, 2]."""
    import torch

    device = ahead.pen.device
    mixture = ahead.mixture.sharpened(temperature=draws.temperature, bias=draws.bias)
    first, second = torch.from_numpy(chance).to(device).split(1, dim=1)
    chosen = _chosen(mixture.weights[:, 0].double().softmax(1), first)
    pen = _chosen((ahead.pen[:, 0].double() / draws.temperature).softmax(1), second)
    step = mixture.drawn(chosen[:, None], torch.from_numpy(normal).float().to(device)[:, None])
    return torch.cat([step, pen[:, None, None].to(step.dtype)], dim=2)


def _chosen(shares: Tensor, chance: Tensor) -> Tensor:
    """The place in each row at which the sum of ``shares`` passes ``chance`` [rows, 1]."""
    return (shares.cumsum(1) < chance).sum(1).clamp(max=shares.shape[1] - 1)


class Mapped(NamedTuple):
    """Where a network expected the pen while a drawing was drawn, in its own units."""

    values: np.ndarray  # float32 [rows, columns], the densities of all points summed
    edges: tuple[float, float, float, float]  # left, right, top, bottom
    ranks: np.ndarray  # float64 [points]: the mass of what is denser than where the pen went, 0 to 1


def mapped(network: Handwriting, row: Inked, *, device: Any, cells: int = 128, samples: int = 256) -> Mapped:
    """Densities over the plane, in squares of which the longer side has ``cells``, each smoothed to one; ranks by
    ``samples`` draws, seed 0."""
    import torch

    from unrolled.models.handwriting import before

    points = torch.from_numpy(row.points).to(device)[None]
    mask = torch.ones(points.shape[:2], dtype=torch.bool, device=device)
    with torch.inference_mode():
        labels = torch.tensor([row.label], device=device)
        ahead, _ = network.ahead(before(points), mask, labels, network.initial(1))
        places = points[0, :, :2].cumsum(0)
        starts = places - points[0, :, :2]
        low, high = places.amin(0), places.amax(0)
        size = float((high - low).max()) or 1.0
        low, high = low - 0.2 * size, high + 0.2 * size
        side = float((high - low).max()) / cells
        columns, rows = (max(1, round(float(length) / side)) for length in high - low)
        grid = _centres(low, side, columns, rows)
        mixture = ahead.mixture
        smooth = mixture._replace(floor=max(mixture.floor, side / 2))
        values = torch.zeros(rows * columns, device=device)
        for step in range(len(starts)):
            values += _at(smooth, step).log_density(grid - starts[step]).exp()
        ranks = _ranks(mixture, points, samples)
    left, top = low.tolist()
    edges = (left, left + columns * side, top, top + rows * side)
    return Mapped(values.view(rows, columns).cpu().numpy(), edges, ranks)


def _centres(low: Tensor, side: float, columns: int, rows: int) -> Tensor:
    """The middles of all squares, [rows · columns, 2]."""
    import torch

    down, right = torch.meshgrid(
        torch.arange(rows, device=low.device), torch.arange(columns, device=low.device), indexing="ij"
    )
    return low + (torch.stack([right, down], dim=2).view(-1, 2) + 0.5) * side


def _at(mixture: Any, step: int) -> Any:
    """The mixture of one step of the only row, to be asked at many places."""
    return mixture._replace(
        weights=mixture.weights[0, step], means=mixture.means[0, step], scales=mixture.scales[0, step],
        slants=mixture.slants[0, step],
    )  # fmt: skip


def _ranks(mixture: Any, points: Tensor, samples: int) -> np.ndarray:
    """Of each point of the only row the share of ``samples`` draws that are denser."""
    import torch

    random = torch.Generator(device=points.device).manual_seed(0)
    length = points.shape[1]
    chosen = torch.multinomial(mixture.weights[0].softmax(1), samples, replacement=True, generator=random)
    normal = torch.randn((length, samples, 2), generator=random, device=points.device)
    denser = np.empty(length)
    for step in range(length):
        one = _at(mixture, step)
        drawn = one._replace(
            **{name: value.expand(samples, *value.shape) for name, value in one._asdict().items() if name != "floor"}
        ).drawn(chosen[step], normal[step])
        here = one.log_density(points[0, step, :2])
        denser[step] = float((one.log_density(drawn) > here).double().mean())
    return denser
