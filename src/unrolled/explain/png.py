"""The heatmap as PNG, drawn by matplotlib from the same layout as the SVG, at twice its size."""

from __future__ import annotations

import io
import logging
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from unrolled.explain.lettering import reads_right_to_left
from unrolled.explain.picture import LIGHT, Box, Label, Picture, picture

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

_POINTS = 72 / 96
"""Points a pixel: a CSS pixel is 1/96 of an inch."""

_LIKELY = ("noto", "cjk", "hei", "gothic", "ming", "unifont", "droid", "arial", "free")


def png(explanation: Explanation) -> bytes:
    """The picture as PNG bytes; its words are in the file's Title and Description."""
    return png_of(picture(explanation))


def png_of(layout: Picture) -> bytes:
    """``png`` of anything that is laid out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    letters = frozenset("".join(shape.text for shape in layout.shapes if isinstance(shape, Label)))
    families, missing = _fonts(letters)
    height = layout.height + (26 if missing else 0)
    figure = Figure(
        figsize=(layout.width / 96, height / 96), dpi=_resolution(layout.width, height), facecolor=LIGHT["paper"]
    )
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, layout.width), ylim=(height, 0))
    axes.set_axis_off()
    axes.add_patch(_patch(layout.paper))
    axes.add_collection(_squares([box for box in layout.shapes if isinstance(box, Box) and _plain(box)]))
    for shape in layout.shapes:
        if isinstance(shape, Label):
            _write(axes, shape, families)
        elif not _plain(shape):
            axes.add_patch(_patch(shape))
    if missing:
        note = Label(
            22, layout.height + 6, "No font here knows some of these characters; the .svg shows them.", 12, "muted"
        )
        _write(axes, note, families)
    return _bytes(figure, {"Title": layout.title, "Description": layout.description, "Software": "unrolled"})


def _resolution(width: float, height: float) -> float:
    return max(20.0, min(192.0, 96 * 20000 / max(width, height)))


def _bytes(figure: Any, metadata: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one for each glyph that no font has; the picture says so itself
        figure.savefig(
            file,
            format="png",
            metadata={key: text.encode("utf-8", "replace").decode() for key, text in metadata.items()},
        )
    return file.getvalue()


def _plain(box: Box) -> bool:
    return not box.radius and not box.outline


def _squares(boxes: list[Box]) -> Any:
    """All plain boxes as one artist: a large picture has tens of thousands."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    corners = [[(x, y), (x + width, y), (x + width, y + height), (x, y + height)] for x, y, width, height, *_ in boxes]
    colors = [to_rgba(LIGHT[box.ink], box.opacity) for box in boxes]
    return PolyCollection(corners, facecolors=colors, edgecolors="none", zorder=1)


def _patch(box: Box) -> Any:
    from matplotlib.patches import FancyBboxPatch

    color = LIGHT[box.ink]
    paint: dict[str, Any] = (
        {"facecolor": "none", "edgecolor": color, "linewidth": 2 * _POINTS}
        if box.outline
        else {"facecolor": color, "edgecolor": "none", "alpha": box.opacity}
    )
    style = f"round,pad=0,rounding_size={box.radius}"
    return FancyBboxPatch((box.x, box.y), box.width, box.height, boxstyle=style, **paint)


def _write(axes: Any, label: Label, families: list[str]) -> None:
    axes.text(
        label.x,
        label.y,
        _in_order(label.text),
        fontsize=label.size * _POINTS,
        color=LIGHT[label.ink],
        fontfamily=families,
        fontweight="bold" if label.bold else "normal",
        horizontalalignment={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        verticalalignment="baseline",
        rotation=45 if label.slanted else 0,
        rotation_mode="anchor",
        parse_math=False,
    )


def _in_order(text: str) -> str:
    """A right-to-left word as it is seen; matplotlib shapes such text itself from 3.11 on."""
    import matplotlib

    if reads_right_to_left(text) and tuple(map(int, matplotlib.__version__.split(".")[:2])) < (3, 11):
        return text[::-1]
    return text


@lru_cache(maxsize=64)
def _fonts(letters: frozenset[str]) -> tuple[list[str], bool]:
    """Font families that together know the letters, and whether some letter is in none of them."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    families = ["DejaVu Sans"]
    missing = {ord(letter) for letter in letters if letter.isprintable()}
    missing -= set(FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap())
    fonts = sorted(
        {(font.name, font.fname) for font in font_manager.fontManager.ttflist if "Last Resort" not in font.name},
        key=lambda font: (not any(word in font[0].lower() for word in _LIKELY), font),
    )
    for family, path in fonts:
        if not missing:
            break
        try:
            found = missing & set(FT2Font(path).get_charmap())
        except (OSError, RuntimeError):
            continue
        if found:
            families.append(family)
            missing -= found
    return families, bool(missing)
