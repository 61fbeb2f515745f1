"""The heatmap as SVG: self-contained, light and dark, with hover texts, every word escaped."""

from __future__ import annotations

import hashlib
from html import escape
from typing import TYPE_CHECKING

from unrolled.explain.picture import DARK, LIGHT, Box, Label, Picture, picture

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Helvetica Neue',Arial,sans-serif"


def svg(explanation: Explanation) -> str:
    """One ``<svg>`` element that stands alone as a file and inside a page."""
    return svg_of(picture(explanation))


def svg_of(layout: Picture) -> str:
    """``svg`` of anything that is laid out."""
    name = hashlib.sha256(layout.description.encode("utf-8", "replace") + layout.title.encode("utf-8", "replace"))
    key = f"u{name.hexdigest()[:10]}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="unrolled" role="img" aria-labelledby="{key}t {key}d" '
            f'width="{_n(layout.width)}" height="{_n(layout.height)}" '
            f'viewBox="0 0 {_n(layout.width)} {_n(layout.height)}" font-family="{FONTS}">',
            f'<title id="{key}t">{_text(layout.title)}</title>',
            f'<desc id="{key}d">{_text(layout.description)}</desc>',
            f"<style>{_style()}</style>",
            *_shapes(layout),
            "</svg>",
        ]
    )


def _style() -> str:
    dark = "".join(
        f".unrolled .{ink}{{fill:{color}}}.unrolled .{ink}-line{{stroke:{color}}}" for ink, color in DARK.items()
    )
    return f".unrolled text{{unicode-bidi:plaintext}}@media (prefers-color-scheme:dark){{{dark}}}"


def _shapes(layout: Picture) -> list[str]:
    return [_box(shape) if isinstance(shape, Box) else _label(shape) for shape in (layout.paper, *layout.shapes)]


def _box(box: Box) -> str:
    paint = (
        f'class="{box.ink}-line" fill="none" stroke="{LIGHT[box.ink]}" stroke-width="2"'
        if box.outline
        else f'class="{box.ink}" fill="{LIGHT[box.ink]}"'
    )
    opacity = f' fill-opacity="{_n(box.opacity)}"' if box.opacity < 1 else ""
    radius = f' rx="{_n(box.radius)}"' if box.radius else ""
    silent = ' pointer-events="none"' if box.outline else ""
    place = f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    return f"<rect {place}{radius} {paint}{opacity}{silent}{_titled(box.title, 'rect')}"


def _label(label: Label) -> str:
    place = f'x="{_n(label.x)}" y="{_n(label.y)}"'
    turn = f' transform="rotate(-45 {_n(label.x)} {_n(label.y)})"' if label.slanted else ""
    bold = ' font-weight="600"' if label.bold else ""
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    title = f"<title>{_text(label.title)}</title>" if label.title else ""
    start = f'<text {place} class="{label.ink}" fill="{LIGHT[label.ink]}" font-size="{_n(label.size)}"'
    return f"{start}{anchor}{bold}{turn}>{title}{_text(label.text)}</text>"


def _titled(title: str, element: str) -> str:
    return f"><title>{_text(title)}</title></{element}>" if title else "/>"


def _text(text: str) -> str:
    return escape(text, quote=True)


def _n(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")
