"""Where the attention of captions lies, against boxes that are known."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.readers import open_table
from unrolled.data.referenced import column_of, resolved
from unrolled.explain.overlay import Box, inside
from unrolled.tasks.scores import Score

if TYPE_CHECKING:
    from unrolled.explain.overlay import Overlay

NONE = "-"
"""Stands for a word without a box."""


def boxes_of(file: str, images: Sequence[str], captions: Sequence[str]) -> list[list[Box | None]]:
    """The boxes of each image, one a word of its caption (words are what spaces set apart), in the captions' order.

    ``file`` is a table that names an image in one column and has ``left,top,right,bottom`` in pixels for each word in
    another, spaces between, ``-`` for a word without one; of an image with several captions a row for each, in their
    order. DataError for a row that does not fit.
    """
    table = open_table(Path(file))
    place = column_of(table, "image")
    if place is None or len(table.columns) < 2:
        raise DataError(
            f"{file}: give a column that names images, and one with a box for each word: 4,4,9,9 - 9,0,30,9"
        )
    other = table.columns.index("boxes") if "boxes" in table.columns else 1 - min(place, 1)
    held: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in resolved(table, place).rows():
        held[str(Path(row.fields[place]).resolve())].append((table.place(row.place), row.fields[other]))
    found = []
    for image, caption in zip(images, captions, strict=True):
        rows = held[str(Path(image).resolve())]
        if not rows:
            raise DataError(f"{file}: there is no row for {image} (of a caption '{caption[:40]}').")
        where, cell = rows.pop(0)
        boxes = [_box(one, where) for one in cell.split()]
        if len(boxes) != len(caption.split()):
            raise DataError(
                f"{where}: {len(boxes)} boxes for the {len(caption.split())} words of '{caption[:40]}'. Give one each, "
                f"'{NONE}' where there is none."
            )
        found.append(boxes)
    return found


def _box(text: str, where: str) -> Box | None:
    if text == NONE:
        return None
    numbers = re.fullmatch(r"(-?[\d.]+),(-?[\d.]+),(-?[\d.]+),(-?[\d.]+)", text)
    try:
        left, top, right, bottom = map(float, numbers.groups() if numbers else ())
    except ValueError:
        raise DataError(
            f"{where}: '{text[:40]}' is no box. Write left,top,right,bottom in pixels, or '{NONE}'."
        ) from None
    if left >= right or top >= bottom:
        raise DataError(f"{where}: the box {text} has no width or no height. Write left,top,right,bottom in pixels.")
    return left, top, right, bottom


def inside_boxes(pictures: Sequence[Overlay], boxes: Sequence[Sequence[Box | None]]) -> Score:
    """The share of words with a box in which the centre of their attention lies; by chance their box's share of the
    image. DataError where no word has a box."""
    hits, chances = [], []
    for one, known in zip(pictures, boxes, strict=True):
        height, width = one.pixels.shape[:2]
        for word, box in enumerate(known):
            if box is not None:
                hits.append(inside(one.centre(word), box))
                chances.append((box[2] - box[0]) * (box[3] - box[1]) / (height * width))
    if not hits:
        raise DataError("evaluate: no word has a box, so there is no right place.")
    protocol = (
        f"{len(hits):,} words: the attention's centre (weighted mean of places, given captions) is in the word's box; "
        f"{np.mean(chances):.3f} by chance"
    )
    return Score("attention_inside", float(np.mean(hits)), protocol, True)
