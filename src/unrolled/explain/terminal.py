"""The heatmap in a terminal: shades carry the weight on dark and light ground alike; colour only adds to them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from unrolled.explain.lettering import cells, fill, printable

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

LEVELS = ((0.05, "·"), (0.2, "░"), (0.4, "▒"), (0.7, "▓"), (2.0, "█"))
LEGEND = "   · below 5 %   ░ to 20 %   ▒ to 40 %   ▓ to 70 %   █ above"
_INK = {
    "heat": ("38;5;33", "38;2;43;140;255", "rgb(43,140,255)"),
    "muted": ("2", "2", "dim"),
    "strong": ("1", "1", "bold"),
}

Ink = Literal["plain", "heat", "muted", "strong"]


class Run(NamedTuple):
    """A piece of a line in one ink."""

    text: str
    ink: Ink = "plain"


Line = list[Run]


def draw(explanation: Explanation, width: int = 80) -> list[Line]:
    """The picture as lines of at most ``width`` (≥ 20) terminal columns: words, shades, the weight that is strongest.

    Words stand above their columns where that fits; else they step down to two-column cells like stairs, in several
    panels if even that is too wide.
    """
    width = max(20, width)
    target = [printable(word) for word in explanation.target]
    source = [
        f"‹{word}›" if place < explanation.aside else word
        for place, word in enumerate(map(printable, explanation.source))
    ]
    if explanation.end_column is not None and explanation.end_column.max(initial=0) >= LEVELS[0][0]:
        source.append("‹end›")
    if not target or not source:
        return [[Run("(no words to show)", "muted")]]
    label = min(max(map(cells, target)), max(6, width // 4))
    room = width - label - 2 - _TAIL
    columns = _widths(source, room)
    lines: list[Line] = []
    if columns:
        heads: Line = [Run(" " * (label + 1))]
        for word, size in zip(source, columns, strict=True):
            heads.append(Run(" " + fill(word, size, "center"), "strong"))
        lines.append(heads)
        lines += _rows(explanation, target, label, columns, 0)
    else:
        panel = max(1, room // 2)
        for first in range(0, len(source), panel):
            part = source[first : first + panel]
            lines += [[]] if first else []
            lines += _stairs(part, label, width)
            lines += _rows(explanation, target, label, [_STAIR] * len(part), first)
    return [*lines, [], *_notes(explanation, width)]


_STAIR = 2
"""Columns of a cell under stairs, where no gap parts the cells; above it every cell has its word's width."""

_TAIL = 5
"""Columns right of the cells: the row's greatest weight in per cent."""


def _widths(source: Sequence[str], room: int) -> list[int]:
    for most in (24, 16, 12, 9, 7, 5):
        columns = [min(max(3, cells(word)), most) for word in source]
        if sum(columns) + len(columns) <= room:
            return columns
    return []


def _stairs(source: Sequence[str], label: int, width: int) -> list[Line]:
    lines: list[Line] = []
    for column, word in enumerate(source):
        start = label + 1 + _STAIR * column
        left = " " * (label + 1) + "│ " * column
        lines.append(
            [Run(left, "muted"), Run("╭ ", "muted"), Run(fill(word, min(cells(word), width - start - 2)), "strong")]
        )
    return lines


def _rows(
    explanation: Explanation, target: Sequence[str], label: int, columns: Sequence[int], first: int
) -> list[Line]:
    weights, ends = explanation.weights, explanation.end_column
    lines: list[Line] = []
    for row, word in enumerate(target):
        line = [Run(fill(word, label, "right"), "strong"), Run(" ")]
        values = [*weights[row].tolist(), *([] if ends is None else [float(ends[row])])]
        for size, value in zip(columns, values[first : first + len(columns)], strict=True):
            shade = next(sign for limit, sign in LEVELS if value < limit)
            gap = " " * (size != _STAIR)
            if shade == "·":
                line.append(Run(gap + fill(shade, size, "center"), "muted"))
            else:
                line += [Run(gap), Run(shade * size, "heat")]
        line.append(Run(f" {100 * max(values):3.0f}%", "muted"))
        lines.append(line)
    return lines


def _notes(explanation: Explanation, width: int) -> list[Line]:
    notes = [Run(explanation.scale + LEGEND, "muted")]
    for measure in (explanation.faithfulness or {}).values():
        notes.append(Run(measure.sentence))
    return [[Run(line, note.ink)] for note in notes for line in textwrap.wrap(printable(note.text), width)]


def paint(lines: Sequence[Line], color: Literal["none", "256", "24bit"]) -> str:
    """Lines as one string, with ANSI colours if asked for."""
    if color == "none":
        return "\n".join("".join(run.text for run in line).rstrip() for line in lines)
    place = 1 if color == "24bit" else 0
    return "\n".join("".join(_painted(run, place) for run in line).rstrip() for line in lines)


def _painted(run: Run, place: int) -> str:
    return run.text if run.ink == "plain" else f"\x1b[{_INK[run.ink][place]}m{run.text}\x1b[0m"


def to_rich(lines: Sequence[Line]) -> Any:
    """Lines as a rich Text, which picks the colours that its console knows."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for run in line:
            text.append(run.text, style=_INK[run.ink][2] if run.ink != "plain" else None)
    return text
