"""Where everything of a heatmap stands: boxes and labels in pixels, which the SVG and the PNG draw alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from unrolled.explain.lettering import ems, printable, shorten, wrap

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation, Measure

Ink = Literal["paper", "ink", "muted", "tile", "heat", "low", "middle", "high", "gold"]

LIGHT: dict[Ink, str] = {
    "paper": "#ffffff",
    "ink": "#16212c",
    "muted": "#5f6c79",
    "tile": "#eff3f7",
    "heat": "#08509b",
    "low": "#000000",
    "middle": "#000000",
    "high": "#ffffff",
    "gold": "#d9740b",
}
DARK: dict[Ink, str] = {
    "paper": "#10161d",
    "ink": "#e7edf3",
    "muted": "#93a1af",
    "tile": "#1c2631",
    "heat": "#62b0ff",
    "low": "#ffffff",
    "middle": "#000000",
    "high": "#000000",
    "gold": "#ffb14e",
}
"""One hue for weights, laid over the tile by its opacity, so that both grounds read alike; orange only outlines.
``low``, ``middle`` and ``high`` are for numbers on the hue: by weight, each keeps a contrast of 4.5 on both grounds."""


class Box(NamedTuple):
    """A rectangle, filled with its ink at an opacity, or only outlined."""

    x: float
    y: float
    width: float
    height: float
    ink: Ink
    opacity: float = 1.0
    radius: float = 0.0
    outline: bool = False
    title: str = ""


class Label(NamedTuple):
    """A line of text; ``x``, ``y`` is its anchor on the baseline; slanted ones rise by 45 degrees."""

    x: float
    y: float
    text: str
    size: float
    ink: Ink = "ink"
    anchor: Literal["start", "middle", "end"] = "start"
    slanted: bool = False
    bold: bool = False
    title: str = ""


class Picture(NamedTuple):
    """A finished layout. ``description`` says in words what can be seen."""

    width: float
    height: float
    title: str
    description: str
    paper: Box
    shapes: list[Box | Label]  # drawn in this order, on the paper


MARGIN, WORD, SMALL, SLANT = 22.0, 15.0, 12.0, math.sqrt(0.5)
LONGEST = 26
"""Terminal columns of the longest label that is shown whole."""
SMALLEST = 20.0
"""Side of a cell of a large picture, which has neither numbers nor round corners."""


class Grid(NamedTuple):
    """Where the cells are."""

    left: float
    top: float
    cell: float
    columns: int
    rows: int
    aside: int = 0  # columns of features, with a gap after them

    def x(self, column: int, *, end: bool = False) -> float:
        gaps = (0 < self.aside <= column) + end
        return self.left + column * self.cell + 8 * gaps

    def y(self, row: int) -> float:
        return self.top + row * self.cell


def picture(explanation: Explanation) -> Picture:
    """Lay out a heatmap: target words as rows, source words as slanted columns, below it scale and trust."""
    source = [printable(word) for word in explanation.source]
    target = [printable(word) for word in explanation.target]
    grid, right = _grid(explanation, source, target)
    shapes: list[Box | Label] = [*_words(grid, source, target), *_cells(explanation, grid, source, target)]
    width = max(right, 470.0)
    bottom = grid.y(grid.rows) + 30
    legend, bottom = _legend(explanation, bottom)
    trust, bottom = trusting(explanation.faithfulness, bottom, width)
    shapes += [*legend, *trust]
    paper = Box(0, 0, width, bottom + 4, "paper", radius=10)
    texts = dict.fromkeys((explanation.source_text, explanation.target_text))  # one where both are the same
    title = f"{explanation.method}: {' → '.join(map(printable, texts))}"
    return Picture(width, bottom + 4, title, _description(explanation, source, target), paper, shapes)


def _grid(explanation: Explanation, source: Sequence[str], target: Sequence[str]) -> tuple[Grid, float]:
    count = max(len(source), len(target), 1)
    cell = 36.0 if count <= 18 else 28.0 if count <= 30 else SMALLEST
    size = _size(cell)
    shown = [size * _ems(word) for word in source] or [0.0]
    left = MARGIN + max([size * _ems(word) for word in target] or [0.0]) + 12
    own = SMALL * ems("probability" if explanation.log_probs is not None else "end")
    top = MARGIN + max([*shown, own]) * SLANT + 16
    grid = Grid(left, top, cell, len(source), len(target), explanation.aside)
    right = max(grid.x(column) + cell / 2 + length * SLANT + 8 for column, length in enumerate(shown))
    if explanation.end_column is not None:
        right = max(right, grid.x(len(source), end=True) + cell + 14)
    if explanation.log_probs is not None:
        right = max(right, _chances_at(explanation, grid) + 84)
    return grid, right + MARGIN


def _ems(word: str) -> float:
    return ems(shorten(word, LONGEST))


def _size(cell: float) -> float:
    return WORD if cell > SMALLEST else SMALL


def _chances_at(explanation: Explanation, grid: Grid) -> float:
    return grid.x(grid.columns + (explanation.end_column is not None), end=True) + 8


def _words(grid: Grid, source: Sequence[str], target: Sequence[str]) -> list[Box | Label]:
    shapes: list[Box | Label] = []
    size = _size(grid.cell)
    for column, word in enumerate(source):
        x = grid.x(column) + grid.cell / 2 + 4
        ink: Ink = "muted" if column < grid.aside else "ink"
        title = f"feature {word}" if column < grid.aside else word
        shapes.append(Label(x, grid.top - 9, shorten(word, LONGEST), size, ink, slanted=True, title=title))
    for row, word in enumerate(target):
        y = grid.y(row) + grid.cell / 2 + size * 0.34
        shapes.append(Label(grid.left - 10, y, shorten(word, LONGEST), size, anchor="end", title=word))
    return shapes


def _cells(explanation: Explanation, grid: Grid, source: Sequence[str], target: Sequence[str]) -> list[Box | Label]:
    shapes: list[Box | Label] = []
    for row, word in enumerate(target):
        for column, other in enumerate(source):
            shapes += _cell(grid, row, grid.x(column), float(explanation.weights[row, column]), f"{word} ← {other}")
        if explanation.end_column is not None:
            x = grid.x(grid.columns, end=True)
            shapes += _cell(grid, row, x, float(explanation.end_column[row]), f"{word} ← (end of the sentence)")
        if explanation.log_probs is not None:
            chance = math.exp(min(0.0, explanation.log_probs[row]))
            place = _chances_at(explanation, grid), grid.y(row) + grid.cell / 2 + SMALL * 0.34
            title = f"probability of {word}: {chance:.3f}"
            shapes.append(Label(*place, f"{chance:.2f}", SMALL, "muted", title=title))
    for column, row in explanation.gold or ():
        x, y, size = grid.x(column) + 2, grid.y(row) + 2, grid.cell - 4
        shapes.append(Box(x, y, size, size, "gold", radius=5, outline=True))
    if explanation.end_column is not None:
        x = grid.x(grid.columns, end=True) + grid.cell / 2 + 4
        shapes.append(Label(x, grid.top - 9, "end", SMALL, "muted", slanted=True, title="end of the source"))
    if explanation.log_probs is not None:
        shapes.append(
            Label(_chances_at(explanation, grid) + 12, grid.top - 9, "probability", SMALL, "muted", slanted=True)
        )
    return shapes


def _cell(grid: Grid, row: int, x: float, weight: float, title: str) -> list[Box | Label]:
    y, size, radius = grid.y(row) + 1, grid.cell - 2, 5 if grid.cell > SMALLEST else 0
    weight = min(1.0, max(0.0, weight))
    shapes: list[Box | Label] = [Box(x + 1, y, size, size, "tile", radius=radius)]
    named = f"{title}: {100 * weight:.1f} %"
    if weight >= 0.005:
        shapes.append(Box(x + 1, y, size, size, "heat", round(weight, 3), radius, title=named))
    if weight >= 0.05 and grid.cell > SMALLEST:
        ink: Ink = "high" if weight > 0.75 else "middle" if weight > 0.59 else "low"
        middle = x + grid.cell / 2, grid.y(row) + grid.cell / 2 + 4
        shapes.append(Label(*middle, f"{100 * weight:.0f}", 11.5, ink, "middle", title=named))
    return shapes


def _legend(explanation: Explanation, top: float) -> tuple[list[Box | Label], float]:
    x, y, side = MARGIN, top, 16.0
    scale = f"{explanation.scale}, %"
    shapes: list[Box | Label] = [Label(x, y + 12.5, scale, SMALL, "muted")]
    x += SMALL * ems(scale) + 10
    for percent in (0, 25, 50, 75, 100):
        shapes.append(Box(x, y, side, side, "tile", radius=3))
        if percent:
            shapes.append(Box(x, y, side, side, "heat", percent / 100, 3))
        shapes.append(Label(x + side + 4, y + 12.5, str(percent), SMALL, "muted"))
        x += side + 10 + SMALL * 0.62 * len(str(percent))
    if explanation.gold is not None:
        shapes.append(Box(x + 9, y + 1, side - 2, side - 2, "gold", radius=3, outline=True))
        shapes.append(Label(x + side + 13, y + 12.5, "known link", SMALL, "muted"))
    return shapes, y + side + 18


def trusting(faithfulness: Mapping[str, Measure] | None, top: float, width: float) -> tuple[list[Box | Label], float]:
    """How far weights can be trusted, from ``top`` on; where it ends."""
    if not faithfulness:
        return [], top
    shapes: list[Box | Label] = [Label(MARGIN, top + 15, "How far to trust it", 13.5, bold=True)]
    measures = faithfulness.values()
    widths = [12.4 * len(one.shown(one.value)) for one in measures]
    widths += [7.2 * len(f"chance {one.shown(one.chance)}") for one in measures]
    y, column = top + 30, MARGIN + max(*widths, 82) + 14
    for measure in measures:
        shapes.append(Label(MARGIN, y + 18, measure.shown(measure.value), 19, "heat", bold=True))
        shapes.append(Label(MARGIN, y + 34, f"chance {measure.shown(measure.chance)}", 11.5, "muted"))
        lines = wrap(printable(measure.sentence), (width - column - MARGIN) / 13)
        shapes += [Label(column, y + 14 + 18 * number, line, 13) for number, line in enumerate(lines)]
        y += max(44, 18 * len(lines) + 12)
    return shapes, y + 6


def _description(explanation: Explanation, source: Sequence[str], target: Sequence[str]) -> str:
    if not source or not target:
        return "There are no words to show."
    looked = [
        f"{target[row]}: {source[column]} {100 * weight:.0f} %" for row, column, weight in explanation.strongest()
    ]
    more = f" and {len(looked) - 60} more" if len(looked) > 60 else ""
    known = " ".join(printable(measure.sentence) for measure in (explanation.faithfulness or {}).values())
    return f"Each target word with the source word of most weight. {'; '.join(looked[:60])}{more}. {known}".strip()
