"""Words as points of a plane, the nearer the more alike: what word vectors look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.explain.lettering import cells, ems, printable, shorten
from unrolled.explain.picture import LONGEST, MARGIN, SMALL, WORD, Box, Label, Picture
from unrolled.explain.plotted import LaidOut

WIDTH, HEIGHT = 760.0, 560.0
DOT = 7.0


@dataclass(frozen=True, eq=False, kw_only=True)
class WordMap(LaidOut):
    """Words on a plane, drawn by ``text`` and ``to``.

    words      as the model knows them
    places     float64 [words, 2], any scale
    kept       share of the vectors' variance that the plane keeps; None where the method has no such number
    marked     words that were asked for; the others are their neighbours
    likeness   cosine of each word with the marked one, or None where several are marked
    """

    words: Sequence[str]
    places: np.ndarray
    method: str
    kept: float | None = None
    marked: Sequence[str] = ()
    likeness: Sequence[float] | None = None

    def __post_init__(self) -> None:
        places = np.array(self.places, dtype=np.float64)
        if places.shape != (len(self.words), 2) or not np.isfinite(places).all():
            raise UsageError(
                f"map: {len(self.words)} words and places of shape {list(places.shape)}; two numbers each."
            )
        places.setflags(write=False)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "words", tuple(self.words))

    @property
    def target_text(self) -> str:
        """The map in a line: the marked words, or the one's neighbours with their cosines."""
        if self.likeness is None:
            return (
                f"{len(self.words)} words: {', '.join(map(printable, self.words[:12]))}{', …' * (len(self.words) > 12)}"
            )
        near = [
            f"{printable(word)} {cosine:z.2f}"
            for word, cosine in zip(self.words, self.likeness, strict=True)
            if word not in self.marked
        ]
        return f"{printable(self.marked[0])}: {', '.join(near)}"

    @property
    def legend(self) -> str:
        """How the plane was found."""
        kept = "" if self.kept is None else f", {100 * self.kept:.0f} % of the variance kept"
        return f"{self.method}{kept}; the nearer two words, the more alike are those beside them"

    def layout(self) -> Picture:
        return layout(self)

    @property
    def lead(self) -> tuple[str, str]:
        return f"A map of {len(self.words)} words", self.legend

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "method": self.method,
            "variance_kept": self.kept,
            "marked": list(self.marked),
            "words": [
                {"word": word, "x": round(float(x), 6), "y": round(float(y), 6)}
                | ({} if self.likeness is None else {"cosine": round(float(self.likeness[place]), 6)})
                for place, (word, (x, y)) in enumerate(zip(self.words, self.places, strict=True))
            ],
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:
        """The map in a terminal of ``width`` columns: each word where it stands, as far as there is room."""
        width = max(20, width)
        height = max(8, min(30, width // 4))
        taken = np.zeros((height, width), dtype=bool)
        lines = [[" "] * width for _ in range(height)]
        left_out = 0
        for word, (x, y) in zip(self.words, _scaled(self.places), strict=True):
            shown = shorten(printable(word), LONGEST)
            size = cells(shown)
            row, start = round((1 - y) * (height - 1)), max(0, min(width - size, round(x * (width - 1))))
            if not size or size > width or taken[row, max(0, start - 1) : start + size + 1].any():
                left_out += 1
                continue
            taken[row, start : start + size] = True
            lines[row][start : start + size] = [_inked(shown, word in self.marked, color), *[""] * (size - 1)]
        note = f"; {left_out} words had no room here" if left_out else ""
        return "\n".join(["".join(line).rstrip() for line in lines] + [self.legend + note])

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        yield Text(self.text(options.max_width), no_wrap=True, overflow="crop")


def _inked(text: str, marked: bool, color: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if marked and color != "none" else text


def _scaled(places: np.ndarray) -> np.ndarray:
    """Both directions from 0 to 1, by one factor each."""
    low, high = places.min(axis=0, initial=np.inf), places.max(axis=0, initial=-np.inf)
    spread = np.where(high > low, high - low, 1.0)
    scaled: np.ndarray = (places - np.where(high > low, low, low - 0.5)) / spread
    return scaled


def layout(found: WordMap) -> Picture:
    """Dots with their words; a word that would lie over another one moves under, over or left of its dot."""
    shapes: list[Box | Label] = []
    inner = np.array([WIDTH - 2 * MARGIN - 120, HEIGHT - 2 * MARGIN - 50])
    dots = (_scaled(found.places) * [1, -1] + [0, 1]) * inner + [MARGIN + 40, MARGIN + 14]
    half = DOT / 2
    taken = [(x - half, y - half, x + half, y + half) for x, y in dots.tolist()]
    for place, (word, (left, top)) in enumerate(zip(found.words, dots.tolist(), strict=True)):
        marked = word in found.marked
        size = WORD if marked else SMALL
        shown = shorten(printable(word), LONGEST)
        title = printable(word) + ("" if found.likeness is None else f": cosine {found.likeness[place]:z.3f}")
        ink: Literal["gold", "heat"] = "gold" if marked else "heat"
        shapes.append(Box(left - DOT / 2, top - DOT / 2, DOT, DOT, ink, radius=DOT / 2, title=title))
        at = _free(left, top, size * ems(shown), size, taken)
        shapes.append(Label(at[0], at[1] + size, shown, size, bold=marked, title=title))
    bottom = HEIGHT - MARGIN
    shapes.append(Label(MARGIN, bottom, found.legend, SMALL, "muted"))
    paper = Box(0, 0, WIDTH, HEIGHT, "paper", radius=10)
    title = f"{found.method}: {', '.join(map(printable, found.marked or found.words[:5]))}"
    return Picture(WIDTH, HEIGHT, title, f"A map of {len(found.words)} words. {found.target_text}", paper, shapes)


def _free(
    x: float, y: float, width: float, height: float, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float]:
    """The upper left corner of a word's box beside its dot: the first place that no other word has, else the first."""
    tries = [
        (x + DOT, y - height / 2 - 2),
        (x - DOT - width, y - height / 2 - 2),
        (x - width / 2, y + DOT / 2),
        (x - width / 2, y - DOT / 2 - height - 4),
        (x + DOT, y + height / 2),
        (x + DOT, y - height * 1.5),
    ]
    fitting = [at for at in tries if at[0] >= 2 and at[0] + width <= WIDTH - 2] or tries
    for left, top in fitting:
        box = left, top, left + width, top + height + 2
        if all(box[2] <= one[0] or one[2] <= box[0] or box[3] <= one[1] or one[3] <= box[1] for one in taken):
            taken.append(box)
            return left, top
    left, top = fitting[0]
    taken.append((left, top, left + width, top + height + 2))
    return left, top
