"""Images as cells of a table: a path in, pixels out, all read alike; what their network needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from unrolled.base.errors import DataError, UsageError
from unrolled.base.settings import Tree
from unrolled.text.pixels import (
    CEILING,
    LEAST,
    LONGEST,
    Pixels,
    array_of,
    check_size,
    in_colour,
    in_grey,
    read_pixels,
    sized,
)
from unrolled.text.reading import READERS, Reader

Side = Annotated[int, Ge(LEAST), Le(LONGEST)]


@READERS.register("image")
class ImageReader(Reader):
    """Images: the path of a file, or an array [height, width] or [height, width, 1, 3 or 4].

    ``colour``: as ``grey``, in ``colour``, or ``auto``: in colour where any training image has some. ``height`` and
    ``width`` in pixels: each image is brought to them; one of them alone keeps its proportions; none (null): images
    stay as they are, and where all training images are of one size, others are refused. ``most_pixels``: an image that
    unpacks to more is refused by its head.

    A store keeps whole numbers from 0 to 255. ``mean`` and ``deviation`` float64 [channels] of the training pixels are
    for the network, which scales. ``kept``: the (height, width) of all training images, where they are kept and alike.
    ``stride``: of how many pixels a side the network makes a place; who builds one tells.
    """

    vocabulary_size = LONGEST + 1  # sides and pixels are whole numbers below it
    axes = 3
    counted = 256  # pixels: a square of 16 a side
    weight = 16

    def __init__(
        self,
        *,
        colour: Literal["auto", "grey", "colour"] = "auto",
        height: Side | None = None,
        width: Side | None = None,
        most_pixels: Annotated[int, Ge(1), Le(CEILING)] = 50_000_000,
    ) -> None:
        self.settings = {
            "kind": "image", "colour": colour, "height": height, "width": width, "most_pixels": most_pixels,
        }  # fmt: skip
        self.colour, self.height, self.width, self.most = colour, height, width, most_pixels
        self.mean = self.deviation = np.full(1 if colour == "grey" else 3, 127.5)
        self.kept: tuple[int, int] | None = None
        self.stride = 1

    @property
    def channels(self) -> int:  # type: ignore[override]
        """Of an image as a network reads it: 1 or 3."""
        return len(self.mean)

    def learn(self, cells: Iterable[str]) -> None:
        """Look at each image once, however many rows it has."""
        seen: set[str] = set()
        sums, shapes, coloured = _Sums(), set[tuple[int, int]](), False
        for path in cells:
            if path in seen:
                continue
            seen.add(path)
            pixels = sized(read_pixels(path, self.most), self.height, self.width)
            coloured = coloured or (pixels.shape[2] == 3 and bool((pixels != pixels[:, :, :1]).any()))
            shapes.add((pixels.shape[0], pixels.shape[1]))
            sums.add(in_colour(pixels))
        grey = self.colour == "grey" or (self.colour == "auto" and not coloured)
        self.mean, self.deviation = sums.moments(slice(3, 4) if grey else slice(0, 3))
        free = self.height is None and self.width is None
        self.kept = next(iter(shapes)) if free and len(shapes) == 1 else None

    def scaled(self, given: Any) -> Pixels:  # type: ignore[override]
        """Uint8 [height, width, channels] of a path or an array, of whole numbers from 0 to 255 or of fractions from 0
        to 1. DataError names the file; UsageError for what is no image."""
        if isinstance(given, str | Path):
            return self._fitted(read_pixels(str(given), self.most), str(given))
        array = array_of(given, "the image")
        try:
            check_size("the image", (array.shape[1], array.shape[0]), self.most)
        except DataError as error:
            raise UsageError(str(error)) from None
        return self._fitted(array, "the image")

    def _fitted(self, pixels: Pixels, what: str) -> Pixels:
        if self.kept is not None and self.kept != pixels.shape[:2]:
            height, width = pixels.shape[:2]
            raise DataError(
                f"{what}: {width} × {height} pixels, and all training images have {self.kept[1]} × {self.kept[0]}. "
                "Bring it to that size, or train with text.source.height and text.source.width."
            )
        pixels = sized(pixels, self.height, self.width)
        if self.channels == 3:
            return in_colour(pixels)
        return pixels if pixels.shape[2] == 1 else in_grey(pixels)

    def encode_ids(self, texts: Sequence[str]) -> list[Any]:
        """Of each path uint16 [2 + height · width · channels]: width and channels, then the pixels row by row."""
        found = []
        for text in texts:
            pixels = self.scaled(text)
            found.append(np.concatenate([np.array(pixels.shape[1:], np.uint16), pixels.ravel().astype(np.uint16)]))
        return found

    def stored(self, row: NDArray[Any]) -> Pixels:  # type: ignore[override]
        """The pixels of a row that a store has kept."""
        width, channels = int(row[0]), int(row[1])
        return np.asarray(row[2:]).reshape(-1, width, channels).astype(np.uint8)

    def padded(self, rows: Sequence[Pixels]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:  # type: ignore[override]
        """Float32 [rows, height, width, channels + 1], 0 to 255 and 0 at padding, the last channel 1 where a pixel is
        real; and bool [rows, places] of the places that a front makes of an image, each of ``stride`` pixels a side."""
        height, width = (max(image.shape[side] for image in rows) for side in (0, 1))
        pixels = np.zeros((len(rows), height, width, rows[0].shape[2] + 1), dtype=np.float32)
        for out, image in zip(pixels, rows, strict=True):
            out[: image.shape[0], : image.shape[1], :-1] = image
            out[: image.shape[0], : image.shape[1], -1] = 1
        counts = np.array([-(-image.shape[0] // self.stride) * -(-image.shape[1] // self.stride) for image in rows])
        return pixels, np.arange(int(counts.max())) < counts[:, None]

    def learnt(self) -> Tree:
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist(), "kept": self.kept}

    def restore(self, tree: Tree) -> None:
        self.mean, self.deviation = (np.array(tree[name], np.float64) for name in ("mean", "deviation"))
        self.kept = None if tree["kept"] is None else (int(tree["kept"][0]), int(tree["kept"][1]))

    def about(self) -> str:
        height, width = (self.height, self.width) if self.kept is None else self.kept
        colour = "colour" if self.channels == 3 else "grey"
        if height is None and width is None:
            return f"images in {colour}, as large as they are"
        return f"images in {colour}, {width or 'any width'} × {height or 'any height'}"


class _Sums:
    """Moments of pixels in colour, and of their grey."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, np.zeros(4), np.zeros(4)

    def add(self, pixels: Pixels) -> None:
        found = np.concatenate([pixels, in_grey(pixels)], axis=2).reshape(-1, 4).astype(np.float64)
        self.count += len(found)
        self.total += found.sum(axis=0)
        self.squares += (found**2).sum(axis=0)

    def moments(self, channels: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of red, green, blue and grey, as chosen; 1 where nothing changes."""
        mean = self.total[channels] / max(self.count, 1)
        variance = np.maximum(self.squares[channels] / max(self.count, 1) - mean**2, 0.0)
        return mean, np.where(variance > 1e-6, np.sqrt(variance), 1.0)
