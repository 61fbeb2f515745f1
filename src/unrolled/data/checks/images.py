"""Images that a table names: those that cannot be read, the same one under two names, those that show nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from unrolled.base.errors import DataError
from unrolled.data.census import Census
from unrolled.data.endings import kind_of
from unrolled.data.findings import Finding
from unrolled.data.table import Table
from unrolled.text.pixels import read_pixels

PLACES = 5

MOST = 50_000_000
"""Pixels up to which an image is unpacked, as training has it where nothing else is set."""


class Looked(NamedTuple):
    """What an image is, told by its pixels."""

    digest: bytes
    width: int
    height: int
    colour: bool
    blank: bool


def pictured(table: Table) -> bool:
    """Whether the first column of ``table`` names images."""
    return bool(table.root) and table.columns[:1] == ("image",)


def looked_at(census: Census) -> Iterator[Finding]:
    """What training would refuse, with its lines; images that are there twice, that are blank; how large they are."""
    table, split = census.table, census.split
    if not pictured(table):
        return
    found: dict[str, Looked] = {}
    wrong: dict[str, str] = {}
    places: dict[str, str] = {}
    said: dict[str, str] = {}
    labelled = table.columns[1:2] == ("label",)
    for row in table.rows(lambda _: None):
        path = row.fields[0]
        said.setdefault(path, row.fields[1] if labelled else "")
        if path in places:
            continue
        places[path] = table.place(row.place)
        try:
            found[path] = _look(path)
        except DataError as error:
            wrong[path] = str(error)
    if wrong:
        named = tuple(
            message if places[path] == path else f"{places[path]} ({message})" for path, message in wrong.items()
        )
        yield Finding("error", "images", split, len(wrong), f"{_images(len(wrong))} not readable.", named[:PLACES])
    blank = [places[path] for path, one in found.items() if one.blank]
    if blank:
        message = f"{_images(len(blank))} of one colour from edge to edge: nothing can be seen there."
        yield Finding("warning", "blank images", split, len(blank), message, tuple(blank[:PLACES]))
    first: dict[bytes, str] = {}
    again = [path for path, one in found.items() if first.setdefault(one.digest, path) != path]
    if again:
        pairs = tuple(f"{places[path]} (as {first[found[path].digest]})" for path in again[:PLACES])
        message = f"{_images(len(again))} the same as another under another name, pixel by pixel."
        yield Finding("warning", "same images", split, len(again), message, pairs)
    other = [path for path in again if said[path] != said[first[found[path].digest]]]
    if other:
        pairs = tuple(f"{places[path]} (as {first[found[path].digest]})" for path in other[:PLACES])
        message = f"{_images(len(other))} the same as another that has another label: one of the two is wrong."
        yield Finding("warning", "two labels", split, len(other), message, pairs)
    if found:
        yield Finding("note", "images", split, len(found), _sizes(list(found.values())))


def overlap(train: Census, census: Census) -> Iterator[Finding]:
    """Images of another split that training sees too, under whatever name."""
    if not (pictured(train.table) and pictured(census.table)):
        return
    known = {one.digest for _, one in _readable(train.table)}
    held = [(place, one) for place, one in _readable(census.table) if one.digest in known]
    if held:
        message = f"{_images(len(held))} also in train, pixel by pixel: scores on them say nothing of new images."
        places = tuple(place for place, _ in held[:PLACES])
        yield Finding("warning", "images in train", census.split, len(held), message, places)


def _readable(table: Table) -> Iterator[tuple[str, Looked]]:
    """Each image that can be read, once."""
    seen: set[str] = set()
    for row in table.rows(lambda _: None):
        if row.fields[0] not in seen:
            seen.add(row.fields[0])
            try:
                yield table.place(row.place), _look(row.fields[0])
            except DataError:
                continue


def _look(path: str) -> Looked:
    if kind_of(path) != "image":
        raise DataError(f"{path}: its name does not end as that of an image.")
    pixels = read_pixels(path, MOST)
    height, width, channels = pixels.shape
    shape = f"{height} {width} {channels} ".encode()
    digest = hashlib.blake2b(shape + pixels.tobytes(), digest_size=16).digest()
    colour = channels == 3 and bool((pixels != pixels[:, :, :1]).any())
    return Looked(digest, width, height, colour, bool((pixels == pixels[:1, :1]).all()))


def _sizes(found: list[Looked]) -> str:
    widths, heights = ([getattr(one, side) for one in found] for side in ("width", "height"))
    shown = [
        f"{min(side):,}" if min(side) == max(side) else f"{min(side):,} to {max(side):,}" for side in (widths, heights)
    ]
    colour = sum(one.colour for one in found)
    kind = "all in colour" if colour == len(found) else "all grey" if not colour else f"{colour:,} in colour"
    return f"images of {shown[0]} × {shown[1]} pixels, {kind}."


def _images(count: int) -> str:
    return f"{count:,} image is" if count == 1 else f"{count:,} images are"
