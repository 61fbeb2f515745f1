"""What every picture of an answer shares: written in every form, shown in terminals and notebooks, with how far to
trust it; drawn by matplotlib, or laid out as boxes and labels."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unrolled.base.files import write_beside
from unrolled.explain.explanation import Measure, check_suffix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.explain.picture import Picture

SHADES = " ░▒▓█"
"""From nothing to most, in a terminal."""

HEIGHTS = "▁▂▃▄▅▆▇█"
"""From low to high, in a terminal."""


class Drawn(ABC):
    """What an answer rests on, as one picture. A subclass says what it shows, draws it and gives its numbers."""

    @property
    @abstractmethod
    def target_text(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Its numbers, as JSON knows them."""

    @abstractmethod
    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:
        """The picture in a terminal of ``width`` columns."""

    @abstractmethod
    def svg(self) -> str:
        """The picture as one SVG element."""

    @abstractmethod
    def png(self) -> bytes:
        """The picture as PNG."""

    @abstractmethod
    def html(self) -> str:
        """A page with the picture."""

    def sentences_of_trust(self) -> list[str]:
        """How far it can be trusted, in words."""
        measures: Mapping[str, Measure] | None = getattr(self, "faithfulness", None)
        return [measure.sentence for measure in (measures or {}).values()]

    def to(self, path: str | Path) -> Path:
        """Write the picture (.svg, .png), the page (.html) or the numbers (.json), whole or not at all."""
        path = Path(path)
        kind = check_suffix(path)
        if kind == ".png":
            return write_beside(path, self.png())
        if kind == ".json":
            written = json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"
        else:
            written = self.svg() if kind == ".svg" else self.html()
        return write_beside(path, written.encode("utf-8", "replace"))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.svg()


class Plotted(Drawn):
    """A picture that matplotlib draws."""

    @abstractmethod
    def figure(self) -> Figure:
        """The picture."""

    def svg(self) -> str:
        text = self._saved("svg").decode("utf-8")
        return text[text.index("<svg") :]

    def png(self) -> bytes:
        return self._saved("png")

    def _saved(self, kind: str) -> bytes:
        from matplotlib import rc_context

        buffer = io.BytesIO()
        with rc_context({"svg.hashsalt": "unrolled", "svg.fonttype": "none"}):
            metadata: dict[str, Any] = {"Date": None, "Title": self.target_text} if kind == "svg" else {}
            self.figure().savefig(buffer, format=kind, dpi=150, metadata=metadata)
        return buffer.getvalue()

    def html(self) -> str:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences_of_trust())
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(self.target_text)}</title>'
        return f"{head}<body>{self.svg()}{said}</body></html>\n"


class LaidOut(Drawn):
    """A picture of boxes and labels: one self-contained SVG element, on light and dark grounds."""

    @abstractmethod
    def layout(self) -> Picture:
        """Its boxes and labels."""

    @property
    @abstractmethod
    def lead(self) -> tuple[str, str]:
        """The heading of its page, and the sentence below."""

    def svg(self) -> str:
        from unrolled.explain.svg import svg_of

        return svg_of(self.layout())

    def png(self) -> bytes:
        from unrolled.explain.png import png_of

        return png_of(self.layout())

    def html(self) -> str:
        from unrolled.explain.page import page

        figure = f'<article><figure tabindex="0">{self.svg()}</figure></article>'
        return page(*self.lead, figure)


def measured(measures: Mapping[str, Measure] | None) -> dict[str, Any] | None:
    """Measures as JSON knows them."""
    return None if measures is None else {name: one._asdict() for name, one in measures.items()}
