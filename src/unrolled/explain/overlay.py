"""An image word by word: laid over it, how much each word looked at every place."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.explain.explanation import Measure
from unrolled.explain.lettering import printable, shorten
from unrolled.explain.plotted import SHADES, Plotted, measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 40
"""Words that a picture shows; more are left out, and it says so."""

HEAT = (1.0, 0.35, 0.1)
"""Laid over a grey image where a word looked; an image in colour is darkened where it did not."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels of the image."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Overlay(Plotted):
    """An image, the words that were written of it, and where each looked.

    pixels        uint8 [height, width, 1 or 3], as the network read them
    words         the words; of a label what is shown of it: what was read, what the answer rests on
    weights       float32 [words, rows, columns], each word's sum to 1, or are all 0; place (r, c) begins at pixel
                  (r, c) · stride
    stride        pixels a side of a place
    end           float32 [rows, columns], where it looked when it ended, or None
    log_probs     natural log-probability of each word
    answer        what the model answers, where that is a label, or several, and no words
    labels        the labels that are shown: of the answer, or others that were asked for
    label_text    these with their probabilities
    boxes         where the thing that each word means is known to be, or None
    faithfulness  name → Measure: how far the weights can be trusted, or None where it was not measured
    """

    pixels: np.ndarray
    words: Sequence[str]
    weights: np.ndarray
    stride: int
    log_probs: Sequence[float]
    source_text: str = ""
    end: np.ndarray | None = None
    answer: str | None = None
    labels: Sequence[str] = ()
    label_text: str = ""
    boxes: Sequence[Box | None] | None = None
    faithfulness: Mapping[str, Measure] | None = None

    def __post_init__(self) -> None:
        height, width = self.pixels.shape[:2]
        grid = (-(-height // self.stride), -(-width // self.stride))
        if self.weights.shape != (len(self.words), *grid):
            raise UsageError(
                f"overlay: weights are {list(self.weights.shape)}; {len(self.words)} words over an image of {width} × "
                f"{height} pixels with places of {self.stride} are {[len(self.words), *grid]}."
            )

    @property
    def target_text(self) -> str:
        """The words in one line, or the labels."""
        return " ".join(self.words) if self.answer is None else self.label_text or self.answer

    def centre(self, word: int) -> tuple[float, float]:
        """The weighted mean (x, y) of the middles of the places that word ``word`` looked at, in pixels."""
        return centre(self.weights[word], self.stride, self.pixels.shape[:2])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pixels, as JSON knows it; weights are rounded to six places."""
        return {
            "image": self.source_text,
            **({} if self.answer is None else {"answer": self.answer, "labels": list(self.labels)}),
            "size": {"height": self.pixels.shape[0], "width": self.pixels.shape[1]},
            "stride": self.stride,
            "words": [
                {
                    "word": word,
                    "log_prob": round(float(self.log_probs[place]), 6),
                    "centre": [round(number, 2) for number in self.centre(place)]
                    if self.weights[place].any()
                    else None,
                    "weights": np.round(self.weights[place].astype(float), 6).tolist(),
                }
                for place, word in enumerate(self.words)
            ],
            "end": None if self.end is None else np.round(self.end.astype(float), 6).tolist(),
            "boxes": None if self.boxes is None else [None if box is None else list(box) for box in self.boxes],
            "faithfulness": measured(self.faithfulness),
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:  # noqa: ARG002
        """The grid of each word in shades, as many places as ``width`` allows; then how far to trust it."""
        lines = []
        for place, word in enumerate(self.words):
            step = -(-self.weights.shape[2] // max(1, width - 2))
            grid = self.weights[place][:, ::step]
            share = grid / max(float(grid.max()), 1e-9)
            lines.append(f"{printable(word)}  ({math.exp(self.log_probs[place]):.2f})")
            if not grid.any():
                lines.append("  no place")
                continue
            lines += ["  " + "".join(SHADES[int(one * (len(SHADES) - 1))] for one in row).rstrip() for row in share]
        for one in (self.faithfulness or {}).values():
            lines += textwrap.wrap(one.sentence, width)
        return "\n".join(lines)

    def figure(self) -> Figure:
        return _figure(self)


def centre(weights: np.ndarray, stride: int, size: Sequence[int]) -> tuple[float, float]:
    """The mean (x, y) of the middles of places, weighted; places at the border end with the image, (height, width)."""
    height, width = size[:2]
    rows, columns = weights.shape
    middles = [
        (np.arange(count) * stride + np.minimum((np.arange(count) + 1) * stride, side)) / 2
        for count, side in ((rows, height), (columns, width))
    ]
    total = max(float(weights.sum()), 1e-30)
    return float((weights.sum(axis=0) * middles[1]).sum() / total), float(
        (weights.sum(axis=1) * middles[0]).sum() / total
    )


def inside(point: tuple[float, float], box: Box) -> bool:
    """Whether a point (x, y) lies in a box."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def _figure(one: Overlay) -> Figure:
    """A panel a word, in rows."""
    from matplotlib.figure import Figure

    height, width = one.pixels.shape[:2]
    shown = min(len(one.words), MOST)
    across = max(1, min(shown, 5, round(5 * (height / width) ** 0.7)))
    down = max(1, -(-shown // across))
    panel = min(8 / across, 3.0) if width <= 3 * height else 8 / across
    high = max(0.35, panel * height / width)
    notes = _notes(one, shown)
    figure = Figure(figsize=(panel * across, (high + 0.32) * down + 0.16 * len(notes) + 0.1), layout="constrained")
    all_axes = figure.subplots(down, across, squeeze=False).ravel()
    for place, axes in enumerate(all_axes):
        axes.set_axis_off()
        if place < shown:
            _panel(one, place, axes)
        elif not shown:
            _image(one, axes)
    _write_notes(figure, notes)
    return figure


def _image(one: Overlay, axes: Axes) -> None:
    height, width = one.pixels.shape[:2]
    image = np.repeat(one.pixels, 3, axis=2) if one.pixels.shape[2] == 1 else one.pixels
    axes.imshow(image, extent=(0, width, height, 0), interpolation="nearest")


def _panel(one: Overlay, place: int, axes: Axes) -> None:
    """The image, the heat over it, the middle of the heat as a cross, and the box that is known."""
    from matplotlib.patches import Rectangle

    (height, width), grey = one.pixels.shape[:2], one.pixels.shape[2] == 1
    _image(one, axes)
    own = one.weights[place] if one.answer is not None else one.weights  # panels of a label show different things
    share = one.weights[place] / max(float(own.max()), 1e-9)
    rows, columns = share.shape
    heat = np.zeros((rows, columns, 4))
    heat[:, :, :3] = HEAT if grey else 0.0
    heat[:, :, 3] = 0.8 * share if grey else 0.65 * (1 - share)
    axes.imshow(heat, extent=(0, columns * one.stride, rows * one.stride, 0), interpolation="nearest")
    if own.any():
        axes.plot(*one.centre(place), marker="+", color="white", markersize=9, markeredgewidth=2.4)
        axes.plot(*one.centre(place), marker="+", color="black", markersize=8, markeredgewidth=1.2)
    box = None if one.boxes is None else one.boxes[place]
    if box is not None:
        corner = (box[0], box[1])
        axes.add_patch(
            Rectangle(corner, box[2] - box[0], box[3] - box[1], fill=False, edgecolor="#2a9df4", linewidth=1.2)
        )
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    word = shorten(printable(one.words[place]), 20).replace("$", r"\$")
    axes.set_title(f"{word}  {math.exp(one.log_probs[place]):.2f}", fontsize=9, pad=3)


def _notes(one: Overlay, shown: int) -> list[str]:
    notes = [f"{len(one.words) - shown} more words are not shown."] if len(one.words) > shown else []
    for measure in (one.faithfulness or {}).values():
        notes += textwrap.wrap(measure.sentence, 110)
    return notes


def _write_notes(figure: Figure, notes: Sequence[str]) -> None:
    if notes:
        figure.supxlabel("\n".join(notes).replace("$", r"\$"), fontsize=7, x=0.01, ha="left")
