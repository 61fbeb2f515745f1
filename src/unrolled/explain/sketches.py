"""Drawings as pictures: strokes as SVG paths or PNG, one drawing alone or many on a page, all to one scale."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from html import escape

import numpy as np

from unrolled.explain.picture import DARK, LIGHT

Strokes = Sequence[np.ndarray]
"""A drawing: of each stroke the points, absolute, to the right and down, [points, 2]."""

CELL = 120.0
"""Pixels of the longest side of the largest drawing."""

MARGIN, WIDTH, LETTERS = 12.0, 3.0, 18.0
"""Pixels around a drawing, of a pen and of the line of its title."""

PNG_SCALE = 2.0


def svg(drawings: Sequence[Strokes], titles: Sequence[str] = (), *, columns: int | None = None) -> str:
    """One ``<svg>`` element with the drawings row by row, ``columns`` of them side by side (None: about a square).

    A stroke is a path with round ends; one of a single point is a dot. Light and dark grounds are both looked after.
    """
    page = _Page(drawings, titles, columns)
    name = (
        ", ".join(dict.fromkeys(filter(None, titles))) or f"{len(drawings)} drawing{'s' if len(drawings) > 1 else ''}"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="unrolled" role="img" width="{_n(page.width)}" '
        f'height="{_n(page.height)}" viewBox="0 0 {_n(page.width)} {_n(page.height)}">',
        f"<title>{escape(name)}</title>",
        "<style>@media (prefers-color-scheme:dark){"
        f".unrolled .paper{{fill:{DARK['paper']}}}.unrolled .pen{{stroke:{DARK['ink']}}}"
        f".unrolled text{{fill:{DARK['muted']}}}}}</style>",
        f'<rect class="paper" width="{_n(page.width)}" height="{_n(page.height)}" fill="{LIGHT["paper"]}"/>',
    ]
    for place, strokes in enumerate(page.laid):
        paths = "".join(_path(stroke) for stroke in strokes)
        lines.append(
            f'<path class="pen" d="{paths}" fill="none" stroke="{LIGHT["ink"]}" stroke-width="{_n(WIDTH)}" '
            'stroke-linecap="round" stroke-linejoin="round"/>'
        )
        if place < len(titles) and titles[place]:
            x, y = page.title(place)
            lines.append(
                f'<text x="{_n(x)}" y="{_n(y)}" font-size="12" text-anchor="middle" fill="{LIGHT["muted"]}" '
                f'font-family="system-ui,sans-serif">{escape(titles[place])}</text>'
            )
    return "\n".join([*lines, "</svg>"])


def png(drawings: Sequence[Strokes], titles: Sequence[str] = (), *, columns: int | None = None) -> bytes:
    """The same page as PNG bytes, on white, at twice the size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    page = _Page(drawings, titles, columns)
    figure = Figure(figsize=(page.width / 96, page.height / 96), dpi=96 * PNG_SCALE, facecolor=LIGHT["paper"])
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, page.width), ylim=(page.height, 0))
    axes.set_axis_off()
    for place, strokes in enumerate(page.laid):
        for stroke in strokes:
            axes.plot(
                stroke[:, 0], stroke[:, 1], color=LIGHT["ink"], linewidth=WIDTH * 0.75, solid_capstyle="round",
                solid_joinstyle="round", marker="o" if len(stroke) == 1 else "", markersize=WIDTH * 0.75,
            )  # fmt: skip
        if place < len(titles) and titles[place]:
            x, y = page.title(place)
            axes.text(x, y, titles[place], fontsize=9, color=LIGHT["muted"], ha="center", parse_math=False)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": "unrolled"})
    return file.getvalue()


class _Page:
    """Where the strokes of each drawing lie on the page."""

    def __init__(self, drawings: Sequence[Strokes], titles: Sequence[str], columns: int | None) -> None:
        boxes = [_box(strokes) for strokes in drawings]
        longest = max((float((high - low).max()) for low, high in boxes), default=0.0)
        scale = CELL / longest if longest > 0 else 1.0
        self.columns = columns or max(1, math.ceil(math.sqrt(len(drawings))))
        self.cell = [max((float((high - low)[axis]) for low, high in boxes), default=0.0) * scale for axis in (0, 1)]
        self.step = (self.cell[0] + 2 * MARGIN, self.cell[1] + 2 * MARGIN + (LETTERS if any(titles) else 0.0))
        rows = math.ceil(len(drawings) / self.columns)
        self.width = self.step[0] * min(self.columns, max(len(drawings), 1))
        self.height = self.step[1] * max(rows, 1)
        self.laid = [
            [(stroke - (low + high) / 2) * scale + self._middle(place) for stroke in strokes]
            for place, (strokes, (low, high)) in enumerate(zip(drawings, boxes, strict=True))
        ]

    def _middle(self, place: int) -> np.ndarray:
        row, column = divmod(place, self.columns)
        return np.array(
            [column * self.step[0] + MARGIN + self.cell[0] / 2, row * self.step[1] + MARGIN + self.cell[1] / 2]
        )

    def title(self, place: int) -> tuple[float, float]:
        """The middle of the base line of a drawing's title."""
        x, y = self._middle(place)
        return float(x), float(y) + self.cell[1] / 2 + MARGIN + LETTERS / 2


def _box(strokes: Strokes) -> tuple[np.ndarray, np.ndarray]:
    points = np.concatenate([np.zeros((0, 2)), *strokes])
    return (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(2), np.zeros(2))


def _path(stroke: np.ndarray) -> str:
    first = f"M{_n(stroke[0, 0])} {_n(stroke[0, 1])}"
    if len(stroke) == 1:
        return first + "h0"
    return first + "L" + " ".join(f"{_n(x)} {_n(y)}" for x, y in stroke[1:])


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
