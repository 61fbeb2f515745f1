"""From the file of an image to its pixels; refused by its size before anything is unpacked. Pillow reads it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError, UsageError, nearest, require

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
"""[height, width, channels]: one channel of grey, or red, green and blue."""

READ = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
"""Formats of Pillow that are opened; its others are for rarer things and have seen less attack."""

LEAST, LONGEST = 2, 65_535
"""Pixels of a side. A single one shows nothing."""

CEILING = 178_956_970
"""Pixels beyond which Pillow itself refuses."""

_GREY = ("1", "L", "LA", "La")


def read_pixels(path: str, most: int) -> Pixels:
    """The pixels of an image, uint8 [height, width, 1 or 3], upright as its camera says, over white where it is clear.

    DataError for a file that is missing, damaged, cut off, none of READ, of more than ``most`` pixels (its head tells,
    before the rest is unpacked), of a side below LEAST, or that holds several images.
    """
    require("PIL", "images")
    from PIL import Image, ImageOps, UnidentifiedImageError

    _check_file(Path(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with a file ends in an error or not at all
            with Image.open(path, formats=READ) as image:
                check_size(path, image.size, most)
                frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)  # MPO: a photo and its previews
                if frames > 1:
                    raise DataError(
                        f"{path}: {frames} images in one file, moving or by page. Save the one that is meant."
                    )
                image.load()
                return _plain(path, ImageOps.exif_transpose(image))
    except DataError:
        raise
    except Image.DecompressionBombError as error:
        count = re.search(r"\d+", str(error))
        raise DataError(_too_many(path, f"{int(count[0]):,}" if count else f"more than {CEILING:,}", most)) from None
    except UnidentifiedImageError:
        raise DataError(
            f"{path}: this is no image that is read ({', '.join(READ)}). Convert it, or leave it out."
        ) from None
    except MemoryError:
        raise DataError(f"{path}: there is not enough memory to unpack it. Make the image smaller.") from None
    except Exception as error:  # a damaged file makes decoders raise whatever they like
        why = str(error) or type(error).__name__
        raise DataError(f"{path}: the image is damaged or cut off ({why}). Fetch it again, or leave it out.") from None


def check_size(path: str, size: tuple[int, int], most: int) -> None:
    """DataError where (width, height) is of more than ``most`` pixels, or has a side that is not read."""
    width, height = size
    if width * height > most:
        raise DataError(_too_many(path, f"{width:,} × {height:,} = {width * height:,}", most))
    if min(size) < LEAST or max(size) > LONGEST:
        raise DataError(
            f"{path}: {width:,} × {height:,} pixels; sides from {LEAST} to {LONGEST:,} are read. Leave the image out."
        )


def _too_many(path: str, count: str, most: int) -> str:
    return (
        f"{path}: {count} pixels; at most {most:,} are unpacked (text.source.most_pixels). Make the image smaller, or "
        f"raise the setting (up to {CEILING:,}) if you trust the file."
    )


def size_of(path: str) -> tuple[int, int]:
    """(width, height) by the head of an image; (0, 0) where it cannot be read, which reading it names."""
    require("PIL", "images")
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=READ) as image:
                width, height = image.size
                return width, height
    except Exception:  # as in `read_pixels`
        return 0, 0


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise DataError(f"{path}: this is a folder where an image is expected.")
    if not path.exists():
        raise DataError(f"{path}: there is no such image. {_near(path)}")
    if not path.is_file():
        raise DataError(f"{path}: this is a pipe or a device where an image is expected.")


def _near(path: Path) -> str:
    try:
        near = nearest(path.name, [one.name for one in path.parent.iterdir()])
    except OSError:
        return f"Nor is there a folder '{path.parent}'. Paths in a table start in the table's own folder."
    hint = f"Did you mean '{path.parent / near}'? " if near else ""
    return f"{hint}Paths in a table start in the table's own folder."


def _plain(path: str, image: Image) -> Pixels:
    """Eight bits a channel, whatever the file's mode."""
    from PIL import Image as Images

    if image.mode == "F":
        raise DataError(f"{path}: its pixels are fractions without a known range. Save it with 8 or 16 bits a channel.")
    if image.mode.startswith("I"):
        deep = np.asarray(image)
        if int(deep.min()) < 0 or int(deep.max()) > LONGEST:
            raise DataError(f"{path}: its pixels have more than 16 bits. Save it with 8 or 16 bits a channel.")
        return (deep // 257).astype(np.uint8)[:, :, None]
    clear = image.mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in image.info
    if clear:
        over = image.convert("RGBA")
        ground = Images.new("RGBA", over.size, (255, 255, 255, 255))
        image = Images.alpha_composite(ground, over).convert("L" if image.mode in _GREY else "RGB")
    kind = "L" if image.mode in _GREY else "RGB"
    found = np.asarray(image.convert(kind))
    return found[:, :, None] if found.ndim == 2 else found


def sized(pixels: Pixels, height: int | None, width: int | None) -> Pixels:
    """The pixels brought to a height and a width, each new one a weighted mean of those it covers; with one of the two
    alone the proportions stay."""
    from PIL import Image as Images

    own_height, own_width = pixels.shape[:2]
    new_height = height or max(LEAST, round(own_height * (width or own_width) / own_width))
    new_width = width or max(LEAST, round(own_width * (height or own_height) / own_height))
    if (new_height, new_width) == (own_height, own_width):
        return pixels
    image = Images.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    found = np.asarray(image.resize((new_width, new_height), Images.Resampling.BILINEAR))
    return found[:, :, None] if found.ndim == 2 else found


def in_colour(pixels: Pixels) -> Pixels:
    """Three channels."""
    return pixels if pixels.shape[2] == 3 else np.repeat(pixels, 3, axis=2)


WEIGHTS = np.array([0.299, 0.587, 0.114])
"""Of red, green and blue in grey (ITU-R BT.601, as Pillow has it)."""


def in_grey(pixels: Pixels) -> Pixels:
    """One channel, of three."""
    return (pixels @ WEIGHTS + 0.5).astype(np.uint8)[:, :, None]


def array_of(given: Any, what: str) -> Pixels:
    """Pixels of an array of whole numbers from 0 to 255, or of fractions from 0 to 1; clear ones over white.

    UsageError, named ``what``, where it is none [height, width] or [height, width, 1, 3 or 4].
    """
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.empty(0, dtype=object)
    if found.ndim == 2:
        found = found[:, :, None]
    if found.dtype.kind not in "fiub" or found.ndim != 3 or found.shape[2] not in (1, 3, 4) or 0 in found.shape:
        shape = f"{found.dtype} {list(found.shape)}" if isinstance(given, np.ndarray) else type(given).__name__
        raise UsageError(
            f"{what} is {shape}; give the path of an image, or an array [height, width] or [height, width, 1, 3 or 4]."
        )
    fractions = found.dtype.kind == "f"
    top = 1 if fractions or found.dtype.kind == "b" else 255
    if not (found >= 0).all() or not (found <= top).all():
        raise UsageError(f"{what} has pixels that are not from 0 to {top}.")
    whole = np.round(found.astype(np.float64) * 255 / top)
    if found.shape[2] == 4:
        share = whole[:, :, 3:] / 255
        whole = np.round(whole[:, :, :3] * share + 255 * (1 - share))
    return whole.astype(np.uint8)
