"""When each written symbol was heard: what a decoder attended to, drawn over the spectrogram of a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.explain.explanation import Measure
from unrolled.explain.plotted import SHADES, Plotted, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTER = 0.009
"""The width of a letter, as a share of the picture's."""

TALLEST = 11.0
"""Inches that the rows of the symbols take at most."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Listening(Plotted):
    """A recording as bands of pitch over time, and how much of each frame was read for each symbol that was written.

    bands         float32 [time, mels], log energies
    pitches       float64 [mels], the middle of each band in hertz
    step          seconds from one frame to the next
    symbols       what was written, symbol by symbol: letters, or words; of a label what is shown of it
    weights       float32 [symbols, time] in [0, 1], an attention's rows; of a label also what the answer rests on
    log_probs     natural log-probability of each symbol
    said          the symbols as a text, or the labels that are shown
    answer        what the model answers, where that is a label, or several
    labels        the labels that are shown: of the answer, or others that were asked for
    seconds       whether time is in seconds and pitches are in hertz; else frames and channels are counted
    caption       what stands above the picture, instead of what is usual
    faithfulness  name → Measure: how far the weights can be trusted, or None where it was not measured
    """

    bands: np.ndarray
    pitches: np.ndarray
    step: float
    symbols: Sequence[str]
    weights: np.ndarray
    log_probs: Sequence[float]
    said: str
    seconds: bool = True
    caption: str = ""
    answer: str | None = None
    labels: Sequence[str] = ()
    faithfulness: Mapping[str, Measure] | None = None

    @property
    def target_text(self) -> str:
        return self.said

    def centres(self) -> np.ndarray:
        """When each symbol was heard: the mean time of its weights in seconds, float64 [symbols]."""
        weights = self.weights.astype(np.float64)
        total = np.maximum(weights.sum(axis=1), 1e-12)
        found: np.ndarray = weights @ self._times() / total
        return found

    def _times(self) -> np.ndarray:
        """The middle of each frame's step, in seconds."""
        return (np.arange(len(self.bands)) + 0.5) * self.step

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it; weights and energies are rounded."""
        return {
            **({} if self.answer is None else {"answer": self.answer, "labels": list(self.labels)}),
            "target": {"text": self.target_text, "symbols": list(self.symbols), "log_probs": list(self.log_probs)},
            **({"seconds_a_frame": self.step} if self.seconds else {}),
            "heard_at": [
                round(float(centre), 4) if row.any() else None
                for centre, row in zip(self.centres(), self.weights, strict=True)
            ],
            "weights": np.round(self.weights.astype(float), 6).tolist(),
            "pitches": np.round(self.pitches, 1).tolist(),
            "bands": np.round(self.bands.astype(float), 3).tolist(),
            "faithfulness": measured(self.faithfulness),
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:  # noqa: ARG002
        """A line a symbol: when it was heard, and where over the length of the recording."""
        names = [shown(symbol)[:24] for symbol in self.symbols]
        left = max(map(len, names), default=0)
        room = min(max(8, width - left - 10), len(self.bands))
        edges = np.linspace(0, len(self.bands), room + 1).round().astype(int)
        lines, unit = [], " s" if self.seconds else ""
        for name, row, centre in zip(names, self.weights, self.centres(), strict=True):
            if not row.any():
                lines.append(f"{name:<{left}} no {'moment' if self.seconds else 'frame'}")
                continue
            held = np.add.reduceat(row, edges[:-1]) / np.diff(edges)
            top = max(float(held.max()), 1e-9)
            drawn = "".join(SHADES[int(share / top * (len(SHADES) - 1))] for share in held)
            lines.append(f"{name:<{left}} {centre:6.2f}{unit} {drawn}".rstrip())
        return "\n".join([*lines, *self.sentences_of_trust()])

    def figure(self) -> Figure:
        return _figure(self)


def shown(symbol: str) -> str:
    """A symbol that shows, where it is white space too."""
    return symbol if symbol.strip() else "␣"


def _figure(one: Listening) -> Figure:
    """The spectrogram with each symbol where it was heard, and below the rows of attention, time running alike."""
    from matplotlib.figure import Figure

    count, end = len(one.symbols), len(one.bands) * one.step
    rows = min(TALLEST, max(0.8, 0.19 * count))
    figure = Figure(figsize=(9, 3.1 + rows), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, rows))
    _spectrogram(above, one, end)
    below.imshow(
        one.weights, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest",
        extent=(0, end, max(count, 1) - 0.5, -0.5),
    )  # fmt: skip
    size = 9 if rows < TALLEST else max(3.0, 9 * TALLEST / (0.19 * count))
    below.set_yticks(range(count), [shown(symbol) for symbol in one.symbols], fontsize=size)
    below.set_xlabel("seconds" if one.seconds else "frames", fontsize=9)
    below.tick_params(axis="x", labelsize=8)
    figure.suptitle(_title(one), fontsize=9)
    return figure


def _title(one: Listening) -> str:
    if one.caption:
        return "\n".join([one.caption, *one.sentences_of_trust()])
    trusted, note = (one.faithfulness or {}).get("top_agreement"), ""
    if trusted is not None and trusted.value is not None:
        note = (
            f"\nthe stretch read most is the one whose loss hurts most for {trusted.shown(trusted.value)} of the "
            f"symbols (at random: {trusted.shown(trusted.chance)})"
        )
    return f"“{one.target_text}”: when each symbol was heard{note}"


def _spectrogram(axes: Any, one: Listening, end: float) -> None:
    """Bands over time, even steps of pitch upwards, and each symbol at its centre."""
    mels = one.bands.shape[1]
    axes.imshow(one.bands.T, origin="lower", aspect="auto", cmap="magma", extent=(0, end, -0.5, mels - 0.5))
    places = np.unique(np.linspace(0, mels - 1, min(mels, 5)).round().astype(int))
    axes.set_yticks(places, [f"{one.pitches[place]:,.0f}" for place in places], fontsize=8)
    axes.set_ylabel("hertz" if one.seconds else "channel", fontsize=9)
    for symbol, row, centre, level in zip(one.symbols, one.weights, one.centres(), levels(one, end), strict=True):
        if not row.any():
            continue
        axes.axvline(centre, color="white", linewidth=0.7, alpha=0.7)
        axes.annotate(
            shown(symbol), (centre, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom",
            xytext=(0, 2 + 9 * level), textcoords="offset points", fontsize=8,
        )  # fmt: skip


def levels(one: Listening, end: float) -> list[int]:
    """How high each symbol stands above the spectrogram, so that none is written over another: the lowest free line."""
    taken: list[float] = []  # where the last symbol of each line ends
    found = []
    for place in np.argsort(one.centres(), kind="stable").tolist():
        half = (0.6 + 0.4 * len(shown(one.symbols[place]))) * LETTER * end
        left, right = float(one.centres()[place]) - half, float(one.centres()[place]) + half
        level = next((line for line, until in enumerate(taken) if until <= left), len(taken))
        taken[level : level + 1] = [right]
        found.append((place, level))
    return [level for _, level in sorted(found)]
