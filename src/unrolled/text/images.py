"""Images as cells of a table: a path in, pixels out, all read alike; what their network needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le

from unrolled.base.errors import DataError, UsageError
from unrolled.text.pixels import (
    CEILING,
    LEAST,
    LONGEST,
    Pixels,
    array_of,
    check_size,
    flat,
    in_colour,
    in_grey,
    read_pixels,
    sized,
)
from unrolled.text.trees import tree_of, write_tree


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """How images are read.

    ``colour``: as ``grey``, in ``colour``, or ``auto``: in colour where any training image has some. ``height`` and
    ``width`` in pixels: each image is brought to them; one of them alone keeps its proportions; none (null): images
    stay as they are, and where all training images are of one size, others are refused. ``most_pixels``: an image that
    unpacks to more is refused by its head.
    """

    colour: Literal["auto", "grey", "colour"] = "auto"
    height: Annotated[int, Ge(LEAST), Le(LONGEST)] | None = None
    width: Annotated[int, Ge(LEAST), Le(LONGEST)] | None = None
    most_pixels: Annotated[int, Ge(1), Le(CEILING)] = 50_000_000


class ImageReader:
    """Paths to pixels, flat: what a store keeps.

    ``mean`` and ``deviation`` float64 [channels] of the training pixels, 0 to 255, are for the network, which scales.
    ``kept``: the (height, width) of all training images, where they are kept and alike.
    """

    vocabulary_size = LONGEST + 1  # sides and pixels are whole numbers below it

    def __init__(
        self,
        settings: ImageSettings,
        mean: Sequence[float],
        deviation: Sequence[float],
        *,
        kept: tuple[int, int] | None = None,
    ) -> None:
        self.settings, self.kept = settings, kept
        self.mean, self.deviation = np.array(mean, np.float64), np.array(deviation, np.float64)

    @staticmethod
    def learn(settings: ImageSettings, paths: Iterable[str]) -> ImageReader:
        """A reader for the images at ``paths``, each of which is looked at once."""
        seen: set[str] = set()
        sums, shapes, coloured = _Sums(), set[tuple[int, int]](), False
        for path in paths:
            if path in seen:
                continue
            seen.add(path)
            pixels = sized(read_pixels(path, settings.most_pixels), settings.height, settings.width)
            coloured = coloured or (pixels.shape[2] == 3 and bool((pixels != pixels[:, :, :1]).any()))
            shapes.add(pixels.shape[:2])
            sums.add(in_colour(pixels))
        if settings.colour == "grey" or (settings.colour == "auto" and not coloured):
            mean, deviation = sums.grey()
        else:
            mean, deviation = sums.colour()
        free = settings.height is None and settings.width is None
        kept = next(iter(shapes)) if free and len(shapes) == 1 else None
        return ImageReader(settings, mean, deviation, kept=kept)

    @property
    def channels(self) -> int:
        """Of an image as a network reads it: 1 or 3."""
        return len(self.mean)

    def read(self, path: str) -> Pixels:
        """The pixels of the image at ``path`` as a network reads them; DataError names the file."""
        return self._fitted(read_pixels(path, self.settings.most_pixels), path)

    def take(self, given: Any, what: str) -> Pixels:
        """``given`` as ``read`` gives it: a path, or an array [height, width] or [height, width, 1, 3 or 4], whole
        numbers from 0 to 255 or fractions from 0 to 1. UsageError for anything else, named ``what``."""
        if isinstance(given, str | Path):
            return self.read(str(given))
        array = array_of(given, what)
        try:
            check_size(what, (array.shape[1], array.shape[0]), self.settings.most_pixels)
        except DataError as error:
            raise UsageError(str(error)) from None
        return self._fitted(array, what)

    def _fitted(self, pixels: Pixels, what: str) -> Pixels:
        if self.kept is not None and self.kept != pixels.shape[:2]:
            height, width = pixels.shape[:2]
            raise DataError(
                f"{what}: {width} × {height} pixels, and all training images have {self.kept[1]} × {self.kept[0]}. "
                "Bring it to that size, or train with text.height and text.width."
            )
        pixels = sized(pixels, self.settings.height, self.settings.width)
        if self.channels == 3:
            return in_colour(pixels)
        return pixels if pixels.shape[2] == 1 else in_grey(pixels)

    def encode_ids(self, texts: Sequence[str]) -> list[Any]:
        """Of each path uint16 [3 + height · width · channels]: these three numbers, then row by row."""
        return [flat(self.read(text)) for text in texts]

    def fingerprint(self) -> str:
        return f"{self.settings!r} {self.mean.tolist()!r} {self.deviation.tolist()!r} {self.kept}"

    def about(self) -> str:
        """In words, for the card and for progress."""
        height, width = self.settings.height, self.settings.width
        if self.kept is not None:
            height, width = self.kept
        colour = "colour" if self.channels == 3 else "grey"
        if height is None and width is None:
            return f"images in {colour}, as large as they are"
        shown = f"{width or 'any width'} × {height or 'any height'}"
        return f"images in {colour}, {shown}"

    def save(self, path: Path) -> None:
        tree = {"settings": vars(self.settings), "kept": self.kept}
        write_tree(path, tree | {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()})

    @staticmethod
    def load(path: Path) -> ImageReader:
        with tree_of(path, "scale of the images") as tree:
            kept = None if tree["kept"] is None else (int(tree["kept"][0]), int(tree["kept"][1]))
            settings = ImageSettings(**tree["settings"])
            return ImageReader(settings, tree["mean"], tree["deviation"], kept=kept)


class _Sums:
    """Moments of pixels in colour, and of their grey."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, np.zeros(4), np.zeros(4)

    def add(self, pixels: Pixels) -> None:
        found = np.concatenate([pixels, in_grey(pixels)], axis=2).reshape(-1, 4).astype(np.float64)
        self.count += len(found)
        self.total += found.sum(axis=0)
        self.squares += (found**2).sum(axis=0)

    def colour(self) -> tuple[list[float], list[float]]:
        return self._of(slice(0, 3))

    def grey(self) -> tuple[list[float], list[float]]:
        return self._of(slice(3, 4))

    def _of(self, channels: slice) -> tuple[list[float], list[float]]:
        mean = self.total[channels] / max(self.count, 1)
        variance = np.maximum(self.squares[channels] / max(self.count, 1) - mean**2, 0.0)
        return mean.tolist(), np.where(variance > 1e-6, np.sqrt(variance), 1.0).tolist()


def reader_of(settings: Mapping[str, Any], paths: Iterable[str]) -> ImageReader:
    """A reader learnt as the section ``text`` of some settings says, which may hold more than it reads."""
    chosen = {name: settings[name] for name in ImageSettings.__dataclass_fields__ if name in settings}
    return ImageReader.learn(ImageSettings(**chosen), paths)
