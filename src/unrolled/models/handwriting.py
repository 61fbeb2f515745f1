"""Where the pen goes next, as a density over the plane, and whether it is lifted, given all that was drawn before."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import DROPOUTS, State
from unrolled.layers.mixture import Mixture, MixtureDensity
from unrolled.models.histories import HISTORIES
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS

READ = 4
"""Numbers of a point that is read: its step, and whether the pen goes on or is lifted; at the start all are 0."""

PENS = 3
"""The pen goes on, is lifted (a stroke ends), or is done (the drawing ends)."""


class Ahead(NamedTuple):
    """What is said of the next point, at any places."""

    mixture: Mixture  # of its step, in the network's own units
    pen: Tensor  # [..., 3], natural-log probabilities


@MODELS.register("handwriting")
class Handwriting(nn.Module):
    """p(x_1 … x_n) = Π_t Σ_j π_j N(x_t | μ_j, σ_j, ρ_j) p(pen_t),  all of these from h_t = history(x_<t, label)

    The prediction network of Graves 2013 (arXiv:1308.0850, §4). A point is its step from the point before and what the
    pen does there; unlike there, the end of a drawing is a third thing that it may do (Ha & Eck 2017,
    arXiv:1704.03477), so that the whole is a density over drawings of any length.

    ``labels``: how many there are, 0 for none; ``scale``: the user's units in one of the network's, so that densities
    are over the user's; ``floor``: see `MixtureDensity`. ``label_size`` numbers stand for the label beside every point
    that is read; training leaves it away in a share ``label_dropout`` of drawings, so that the model also draws without
    one. ``dropout`` is of the history's output. ``stretch`` s: training draws each drawing wider and higher by factors
    out of [1 - s, 1 + s].

    Points are float32 [batch, time, 3]: the step right and down, and the pen, 0, 1 or 2. Masks are True = real, real
    places first. Labels are int64 [batch], 0 for none.
    """

    def __init__(
        self,
        labels: int,
        scale: float,
        floor: float,
        /,
        *,
        history: Annotated[Part, HISTORIES] = "rnn",
        components: Count = 20,
        label_size: Count = 32,
        label_dropout: Share = 0.1,
        dropout: Share = 0.0,
        stretch: Share = 0.0,
    ) -> None:
        super().__init__()
        self.labels = nn.Embedding(labels + 1, label_size, padding_idx=0) if labels else None
        self.history = HISTORIES.build(history, READ + (label_size if labels else 0), where="history")
        self.dropout = DROPOUTS.build({"kind": "plain", "rate": dropout}, where="dropout")
        self.density = MixtureDensity(self.history.output_size, components=components, floor=floor)
        self.pen = nn.Linear(self.history.output_size, PENS)
        self.scale, self.label_dropout, self.stretch = scale, label_dropout, stretch

    def initial(self, batch: int) -> State:
        """The state before a drawing's first point."""
        return self.history.initial(batch, self.pen.weight)

    def forward(self, points: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Natural-log density of each point, per square of the user's unit, float32 [batch, time], 0 at padding."""
        if self.training:
            points, labels = self._stretched(points), self._hidden(labels)
        ahead, _ = self.ahead(before(points), mask, labels, self.initial(len(points)))
        return torch.where(mask, self.log_density(ahead, points), 0.0)

    def log_density(self, ahead: Ahead, points: Tensor) -> Tensor:
        """What was said of the points that came, [batch, time], as ``forward`` gives it."""
        where = ahead.mixture.log_density(points[..., :2]) - 2 * math.log(self.scale)
        return where + ahead.pen.gather(2, points[..., 2:].long()).squeeze(2)

    def ahead(self, given: Tensor, mask: Tensor, labels: Tensor, state: State) -> tuple[Ahead, State]:
        """What is said of the point after each of ``given`` [batch, time, 4], and the state after."""
        hidden, after = self.seen(given, mask, labels, state)
        hidden = self.dropout(hidden)
        return Ahead(self.density(hidden), self.pen(hidden).float().log_softmax(2)), after

    def seen(self, given: Tensor, mask: Tensor, labels: Tensor, state: State) -> tuple[Tensor, State]:
        """h after each of ``given``, [batch, time, size], and the state after."""
        if self.labels is not None:
            known = self.labels(labels).unsqueeze(1).expand(-1, given.shape[1], -1)
            given = torch.cat([given, known], dim=2)
        output, after = self.history(given, mask, state)
        return output, after

    def vector(self, points: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """The mean of h after each point of a drawing, [batch, size]."""
        output = self.seen(read(points), mask, labels, self.initial(len(points)))[0]
        return (output * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True)

    def _stretched(self, points: Tensor) -> Tensor:
        if not self.stretch:
            return points
        factors = torch.ones(len(points), 1, 3, dtype=points.dtype, device=points.device)
        factors[..., :2].uniform_(1 - self.stretch, 1 + self.stretch)
        return points * factors

    def _hidden(self, labels: Tensor) -> Tensor:
        if self.labels is None or not self.label_dropout:
            return labels
        return labels * (torch.rand(len(labels), device=labels.device) >= self.label_dropout)


def before(points: Tensor) -> Tensor:
    """What is read before each of ``points`` [batch, time, 3], [batch, time, 4]: 0, then all points but the last."""
    return torch.cat([points.new_zeros(len(points), 1, READ), read(points[:, :-1])], dim=1)


def read(points: Tensor) -> Tensor:
    """Points [batch, time, 3] as they are read, [batch, time, 4]: a drawing that goes on was only lifted."""
    on = (points[..., 2:] == 0).to(points.dtype)
    return torch.cat([points[..., :2], on, 1 - on], dim=2)
