"""Where a model expected the pen, laid over what was drawn, and how surprising each point was (Graves 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.explain.explanation import Measure
from unrolled.explain.plotted import HEIGHTS, Plotted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PENS = ("goes on", "lifted", "done")


@dataclass(frozen=True, eq=False, kw_only=True)
class Density(Plotted):
    """A drawing, and what a model said of each of its points before it came.

    points     float64 [points, 3]: the steps, in the user's units, and the pens (0 goes on, 1 lifted, 2 done)
    log_probs  float64 [points], nats: the log density of each step and the pen's log-probability
    pens       float32 [points, 3]: the probability of each thing that the pen may do
    ranks      float64 [points] in [0, 1]: the mass of what was denser than where the pen went. Right densities give
               ranks that are spread evenly
    field      float32 [rows, columns]: the densities of all points summed, over squares of the user's unit
    edges      left, right, top and bottom of the field
    label      what it was read as, or ""
    """

    points: np.ndarray
    log_probs: np.ndarray
    pens: np.ndarray
    ranks: np.ndarray
    field: np.ndarray
    edges: tuple[float, ...]
    label: str = ""

    @property
    def target_text(self) -> str:
        """The drawing's loss in nats a point, and the label."""
        named = f"{self.label}: " if self.label else ""
        return f"{named}{-self.log_probs.mean():z.3f} nats a point, {len(self.points)} points"

    @property
    def calibration(self) -> Measure:
        """How often the pen went where the densest half of the mass lay: right densities give half of the time."""
        share = float((self.ranks <= 0.5).mean())
        sentence = f"The pen went into the densest half of the mass {share:.0%} of the time; right densities give 50 %."
        return Measure(share, 0.5, len(self.ranks), sentence, "%")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "label": self.label,
            "points": np.round(self.points, 3).tolist(),
            "log_probs": np.round(self.log_probs, 6).tolist(),
            "pens": np.round(self.pens.astype(float), 6).tolist(),
            "ranks": np.round(self.ranks, 6).tolist(),
            "calibration": self.calibration._asdict(),
            "edges": list(self.edges),
            "field": np.round(self.field.astype(float), 9).tolist(),
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:  # noqa: ARG002
        """Of each point how surprising it was and whether the pen was lifted there; as many as ``width`` allows."""
        shown = max(1, min(width - 12, len(self.points)))
        places = np.unique(np.linspace(0, len(self.points) - 1, shown).astype(int))
        losses = -self.log_probs
        span = float(losses.max() - losses.min()) or 1.0
        heights = ((losses - losses.min()) / span * (len(HEIGHTS) - 1)).astype(int)
        lines = [
            "surprise    " + "".join(HEIGHTS[heights[place]] for place in places),
            "pen         " + "".join("─" if self.points[place, 2] == 0 else "╴" for place in places),
            f"from {losses.min():z.2f} to {losses.max():z.2f} nats. {self.calibration.sentence}",
        ]
        return "\n".join(lines)

    def sentences_of_trust(self) -> list[str]:
        return [self.calibration.sentence]

    def figure(self) -> Figure:
        return _figure(self)


def _figure(one: Density) -> Figure:
    """Left the field with the drawing over it; right of each point its surprise, and the pen as it was expected."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.15))
    plane, surprise, pens = (figure.add_subplot(place) for place in (grid[:, 0], grid[0, 1], grid[1, 1]))
    left, right, top, bottom = one.edges
    bright = np.sqrt(one.field / max(float(one.field.max()), 1e-30))
    plane.imshow(bright, cmap="Blues", vmin=0, vmax=1, extent=(left, right, bottom, top), interpolation="bilinear")
    places = np.cumsum(one.points[:, :2], axis=0)
    for stroke in np.split(places, np.flatnonzero(one.points[:, 2] != 0) + 1):
        plane.plot(stroke[:, 0], stroke[:, 1], color="#b03a2e", linewidth=1.3, marker="o", markersize=2)
    plane.set_xlim(left, right)
    plane.set_ylim(bottom, top)
    plane.tick_params(labelsize=6)
    plane.set_title("where the pen was expected, and where it went", fontsize=8)
    steps = np.arange(1, len(places) + 1)
    lifted = one.points[:, 2] != 0
    surprise.bar(steps, -one.log_probs, width=1.0, color=np.where(lifted, "#d9740b", "#5b7aa6"))
    surprise.set_ylabel("surprise (nats)", fontsize=7)
    surprise.set_title("orange: the pen was lifted after this point", fontsize=8)
    base = np.zeros(len(steps))
    for share, color, name in zip(one.pens.T, ("#c9d6e6", "#d9740b", "#16212c"), PENS, strict=True):
        pens.bar(steps, share, bottom=base, width=1.0, color=color, label=name)
        base += share
    pens.set_ylabel("pen, as expected", fontsize=7)
    pens.set_xlabel("point", fontsize=7)
    pens.set_ylim(0, 1)
    pens.legend(fontsize=6, loc="lower left", ncols=3, framealpha=0.9)
    for axes in (surprise, pens):
        axes.set_xlim(0.5, len(places) + 0.5)
        axes.tick_params(labelsize=6)
    figure.suptitle(f"{one.target_text}\n{one.calibration.sentence}", fontsize=9)
    return figure
