"""Channels drawn over time, and behind them how much the answer rests on each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.explain.explanation import Measure
from unrolled.explain.plotted import HEIGHTS, SHADES, Plotted, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 8
"""Channels that a picture shows; more are left out, and it says so."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Traces(Plotted):
    """A sequence of frames and what an answer about it rests on.

    frames       float64 [time, channels], as the user gave them
    weights      float64 [time] in [0, 1]: what of the answer's probability goes without the stretch around a frame
    attention    float32 [time], what the pooling read of each frame; sums to 1. None: it is no attention
    answer       the label that is shown, with its probability
    own          what the model answers; nothing: ``answer``
    names        what the channels are called; nothing: they are numbered from 1
    others       label, probability and weights of further labels, where a sequence may have several
    faithfulness name → Measure: how far the weights can be trusted, or None where it was not measured
    """

    frames: np.ndarray
    weights: np.ndarray
    attention: np.ndarray | None
    answer: str
    probability: float
    own: str = ""
    names: Sequence[str] = ()
    others: Sequence[tuple[str, float, np.ndarray]] = ()
    faithfulness: Mapping[str, Measure] | None = None

    def name(self, channel: int) -> str:
        """What channel ``channel`` (from 0) is called."""
        return self.names[channel] if self.names else f"channel {channel + 1}"

    @property
    def target_text(self) -> str:
        """The answer with its probability; where there are several labels, each."""
        said = [(self.answer, self.probability), *((name, probability) for name, probability, _ in self.others)]
        return ", ".join(f"{name} ({probability:.3f})" for name, probability in said)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "answer": self.own or self.answer,
            "label": self.answer,
            "probability": self.probability,
            "channels": [self.name(channel) for channel in range(self.frames.shape[1])],
            "weights": np.round(self.weights, 6).tolist(),
            "others": [
                {"label": name, "probability": probability, "weights": np.round(weights, 6).tolist()}
                for name, probability, weights in self.others
            ],
            "attention": None if self.attention is None else np.round(self.attention.astype(float), 6).tolist(),
            "frames": self.frames.tolist(),
            "faithfulness": measured(self.faithfulness),
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:  # noqa: ARG002
        """A line a channel, and below how much the answer rests on each place; as many places as ``width`` allows."""
        places = np.unique(np.linspace(0, len(self.frames) - 1, max(1, min(width - 12, len(self.frames)))).astype(int))
        lines = []
        for number, channel in enumerate(self.frames[places, :MOST].T):
            low, high = float(channel.min()), float(channel.max())
            steps = np.zeros(len(channel)) if high == low else (channel - low) / (high - low)
            lines.append(
                f"{self.name(number)[:11]:<12}" + "".join(HEIGHTS[int(step * (len(HEIGHTS) - 1))] for step in steps)
            )
        resting = [(self.answer if self.others else "rests on", self.weights)]
        resting += [(name, weights) for name, _, weights in self.others]
        for name, values in [*resting, ("attention", self.attention)]:
            if values is not None:
                shares = values[places] / max(float(values.max()), 1e-9)
                lines.append(f"{name[:11]:<12}" + "".join(SHADES[int(share * (len(SHADES) - 1))] for share in shares))
        return "\n".join([*lines, *self.sentences_of_trust()])

    def figure(self) -> Figure:
        return _figure(self)


def _figure(one: Traces) -> Figure:
    """Channels one above the other; the darker the ground, the more rests on it."""
    from matplotlib.figure import Figure

    shown = min(one.frames.shape[1], MOST)
    below = [(name, weights, "#3b75af") for name, _, weights in one.others]
    below += [] if one.attention is None else [("attention", one.attention, "#5b7aa6")]
    strips = shown + len(below)
    figure = Figure(figsize=(8, 0.9 + 1.0 * strips + 0.15 * len(one.faithfulness or ())), layout="constrained")
    all_axes = figure.subplots(strips, 1, sharex=True, squeeze=False)[:, 0]
    time = np.arange(len(one.frames))
    edges = (-0.5, len(time) - 0.5)
    for number, axes in enumerate(all_axes[:shown]):
        low, high = float(one.frames[:, number].min()), float(one.frames[:, number].max())
        margin = 0.08 * (high - low or 1.0)
        axes.imshow(
            one.weights[None], aspect="auto", cmap="Blues", vmin=0, vmax=max(1e-9, 1.6 * float(one.weights.max())),
            extent=(*edges, low - margin, high + margin),
        )  # fmt: skip
        axes.plot(time, one.frames[:, number], color="#b03a2e", linewidth=1.2)
        axes.set_ylim(low - margin, high + margin)
        axes.set_ylabel(one.name(number), fontsize=8)
    for axes, (name, weights, color) in zip(all_axes[shown:], below, strict=True):
        axes.bar(time, weights, width=1.0, color=color)
        axes.set_ylabel(name, fontsize=8)
    for axes in all_axes:
        axes.set_xlim(*edges)
        axes.tick_params(labelsize=7)
    left = one.frames.shape[1] - shown
    all_axes[-1].set_xlabel(f"frame{f' ({left} more channels are not shown)' if left else ''}", fontsize=8)
    whose = f"that of {one.answer}" if one.others else "its probability"
    said = [f"{one.target_text}: blue is what of {whose} goes without that stretch", *one.sentences_of_trust()]
    figure.suptitle("\n".join(said), fontsize=8)
    return figure
