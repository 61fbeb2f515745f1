"""A document with its words shaded by how much an answer about it was read from them, sentence by sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.explain.explanation import Measure
from unrolled.explain.lettering import ems, printable
from unrolled.explain.picture import MARGIN, SMALL, WORD, Box, Label, Picture, trusting
from unrolled.explain.plotted import LaidOut, measured

WIDTH, BAR, LINE = 760.0, 120.0, 24.0
SHADES = (" ", "░", "▒", "▓", "█")


class Sentence(NamedTuple):
    """A sentence of a document."""

    words: tuple[str, ...]
    weights: np.ndarray  # float64 [words], in [0, 1]
    supports: bool = False  # it is known to hold the answer, or a part of what the answer follows from


@dataclass(frozen=True, eq=False, kw_only=True)
class Highlights(LaidOut):
    """What was read of a document to answer a question, drawn by ``text`` and ``to``.

    sentences     with the weight of each of their words
    answer        as it was given, with its ``probability``
    scale         what a weight is, in words
    summed        weights of words add up to that of their sentence (attention); else a sentence has its largest
    faithfulness  name → Measure: how far the weights can be trusted, or None where it was not measured
    """

    sentences: Sequence[Sentence]
    question: str
    answer: str
    probability: float
    method: str = "attention"
    scale: str = "share of attention"
    summed: bool = True
    faithfulness: Mapping[str, Measure] | None = None

    def __post_init__(self) -> None:
        for one in self.sentences:
            if one.weights.shape != (len(one.words),) or not ((one.weights >= -1e-4) & (one.weights <= 1.001)).all():
                raise UsageError("highlights: each word has one weight, from 0 to 1.")

    @property
    def target_text(self) -> str:
        """The question with its answer."""
        return f"{' '.join(self.question.split())} {self.answer} ({self.probability:.3f})"

    @property
    def rest(self) -> float:
        """What of an attention lies on no word."""
        return max(0.0, 1.0 - sum(self.shares)) if self.summed else 0.0

    @property
    def shares(self) -> list[float]:
        """The weight of each sentence."""
        made = np.sum if self.summed else np.max
        return [float(made(one.weights)) if len(one.weights) else 0.0 for one in self.sentences]

    def layout(self) -> Picture:
        return layout(self)

    @property
    def lead(self) -> tuple[str, str]:
        return (
            printable(self.target_text),
            "The stronger a word is shaded, the more the answer was read from it. Hover over a word for its number.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return {
            "method": self.method,
            "question": self.question,
            "answer": self.answer,
            "probability": self.probability,
            "rest": round(self.rest, 6),
            "sentences": [
                {
                    "words": list(one.words),
                    "weights": np.round(one.weights, 6).tolist(),
                    "weight": round(share, 6),
                    "supports": one.supports,
                }
                for one, share in zip(self.sentences, self.shares, strict=True)
            ],
            "faithfulness": measured(self.faithfulness),
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:
        """A line a sentence: its weight as a bar, and its words, those of most weight in bold where there is colour,
        else between marks."""
        strongest = self._strongest()
        lines = []
        for one, share in zip(self.sentences, self.shares, strict=True):
            bar = SHADES[-1] * round(share * 10)
            words = [
                _marked(printable(word), color) if weight >= strongest / 2 and weight > 0.02 else printable(word)
                for word, weight in zip(one.words, one.weights, strict=True)
            ]
            mark = "*" if one.supports else " "
            lines.append(f"{100 * share:4.0f} % {bar:<10} {mark} {' '.join(words)}")
        if any(one.supports for one in self.sentences):
            lines.append("* supports the answer, as the data have it")
        measures = [f"  {one.sentence}" for one in (self.faithfulness or {}).values()]
        del width  # a sentence is a line: terminals wrap it
        rest = f"; {100 * self.rest:.0f} % on the end of the document" * (self.rest > 0.005)
        return "\n".join([*lines, f"{self.scale}, in all of a sentence{rest}", *measures])

    def _strongest(self) -> float:
        return max((float(one.weights.max(initial=0.0)) for one in self.sentences), default=0.0)


def _marked(word: str, color: str) -> str:
    return f"[{word}]" if color == "none" else f"\x1b[1m{word}\x1b[0m"


def layout(found: Highlights) -> Picture:
    """The question and its answer, then a line a sentence (more where it is long): a bar for its weight, its words on
    their shades. The strongest word is as dark as can be."""
    top = MARGIN + WORD
    shapes: list[Box | Label] = [
        Label(MARGIN, top, printable(" ".join(found.question.split())), WORD, bold=True),
        Label(MARGIN, top + 22, f"{printable(found.answer)} ({found.probability:.3f})", WORD, "heat", bold=True),
    ]
    strongest = max(found._strongest(), 1e-9)
    y = top + 42
    for one, share in zip(found.sentences, found.shares, strict=True):
        title = f"{100 * share:.0f} % {found.scale}"
        shapes.append(Box(MARGIN, y + 3, BAR - 46, LINE - 8, "tile", radius=3, title=title))
        wide = (BAR - 46) * min(share, 1.0)
        if wide > 0.5:
            shapes.append(Box(MARGIN, y + 3, wide, LINE - 8, "heat", radius=min(3.0, wide / 2), title=title))
        if one.supports:
            shapes.append(Box(MARGIN - 2, y + 1, BAR - 42, LINE - 4, "gold", radius=4, outline=True))
        shapes.append(Label(MARGIN + BAR - 8, y + 16, f"{100 * share:.0f} %", SMALL, "muted", "end"))
        words, y = _words(one, y, strongest)
        shapes += words
        y += LINE + 3
    for line in _notes(found, strongest):
        shapes.append(Label(MARGIN, y + 14, line, SMALL, "muted"))
        y += 18
    trust, bottom = trusting(found.faithfulness, y + 12, WIDTH)
    paper = Box(0, 0, WIDTH, bottom + 8, "paper", radius=10)
    title = f"{found.method}: {printable(found.target_text)}"
    return Picture(WIDTH, bottom + 8, title, _description(found), paper, [*shapes, *trust])


def _notes(found: Highlights, strongest: float) -> list[str]:
    notes = [f"bar: {found.scale}, of the sentence; shade: of the word, at most {100 * strongest:.0f} %"]
    if any(one.supports for one in found.sentences):
        notes.append("outlined: supports the answer, as the data have it")
    if found.summed and found.rest > 0.005:
        notes.append(f"the rest, {100 * found.rest:.0f} %, lies on the end of the document, which has read all of it")
    return notes


def _words(one: Sentence, y: float, strongest: float) -> tuple[list[Box | Label], float]:
    """The words of a sentence, and the last of its lines."""
    shapes: list[Box | Label] = []
    left = x = MARGIN + BAR
    for word, weight in zip(map(printable, one.words), one.weights.tolist(), strict=True):
        wide = SMALL * 1.12 * ems(word) + 8
        if x + wide > WIDTH - MARGIN and x > left:
            x, y = left, y + LINE
        shade = weight / strongest
        title = f"{word}: {100 * weight:.1f} %"
        if shade > 0.02:
            shapes.append(Box(x, y + 1, wide, LINE - 4, "heat", round(shade, 3), 3, title=title))
        ink: Literal["high", "middle", "ink"] = "high" if shade > 0.75 else "middle" if shade > 0.59 else "ink"
        shapes.append(Label(x + wide / 2, y + 16, word, SMALL * 1.12, ink, "middle", title=title))
        x += wide + 1
    return shapes, y


def _description(found: Highlights) -> str:
    read = sorted(zip(found.shares, found.sentences, strict=True), key=lambda one: -one[0])[:3]
    most = "; ".join(f"{100 * share:.0f} % on “{printable(' '.join(one.words))}”" for share, one in read)
    known = " ".join(printable(measure.sentence) for measure in (found.faithfulness or {}).values())
    return f"The sentences of a document by how much the answer was read from them: {most}. {known}".strip()
