"""What the tasks share that read images: how large these are made, and what their network is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from unrolled.base.errors import SettingsError
from unrolled.base.settings import merge
from unrolled.data.parts import Part
from unrolled.tasks.base import Sized
from unrolled.tasks.numbers import check_read
from unrolled.text.images import ImageReader
from unrolled.text.pixels import size_of

if TYPE_CHECKING:
    from unrolled.models import ImageFront

LARGE, SMALLER, HEAD = 160, 128, 200
"""Where the longer side of most of the first HEAD images is above LARGE pixels, they are made SMALLER a side."""


def check_images(settings: Mapping[str, Any]) -> None:
    """SettingsError for settings that do not read images."""
    check_read(settings, "images", "image", "image")
    if settings["data"]["too_long"] == "cut":
        raise SettingsError("[data.too_long] 'cut' was given, and an image cannot be cut. Take 'drop'.")


def sized_images(part: Part, sized: Sized) -> Sized:
    """``sized``, and where images are large, a size that they are brought to."""
    paths = dict.fromkeys(row.fields[0] for row in islice(part.rows(), HEAD))
    sides = sorted(max(size_of(path)) for path in paths)
    if not sides or sides[len(sides) // 2] <= LARGE:
        return sized
    smaller = {"text": {"source": {"kind": "image", "height": SMALLER, "width": SMALLER}}}
    tree = merge([("", sized.tree), ("", smaller)])[0]

    def said(origins: Mapping[str, str]) -> list[str]:
        own = origins.get("text.source.height") == sized.origin
        shown = f"Images are made {SMALLER} × {SMALLER} pixels (text.source.height and text.source.width)."
        return [*sized.said(origins), *([shown] if own else [])]

    return Sized(sized.origin, tree, said)


def channels_of(settings: Mapping[str, Any]) -> int:
    """Channels of the images of a preset that is shown without data."""
    return 1 if settings["text"]["source"]["colour"] == "grey" else 3


def acquaint(network: Any, reader: Any) -> None:
    """Tell the front of a network the moments of the training pixels, and the reader of images how coarse its grid
    is."""
    front, images = cast("ImageFront", network.front), cast(ImageReader, reader)
    front.scale(images.mean.tolist(), images.deviation.tolist())
    images.stride = front.stride
