"""What is given as images or recordings: files, folders, tables that name them; and made-up ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.endings import kind_of
from unrolled.data.label_folders import holds_labels
from unrolled.data.lines import lines_of
from unrolled.data.opening import from_file, placed
from unrolled.data.readers import open_table
from unrolled.data.referenced import files_in, holds_files
from unrolled.data.signals import arranged
from unrolled.data.table import Row, Table
from unrolled.text.frames import read_frames

Adapt = Callable[[Table], Table]
"""A table with the paths that it names in its first column, as seen from here."""


def paths_or_arrays(verb: str, name: str, noun: str, given: Any) -> list[Any]:
    """A list of paths and arrays; UsageError for anything else. ``noun``: what one is called."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise UsageError(f"{verb}: {name} is {given!r:.60}; a list of {noun}s is wanted, each a path or an array.")
    found = list(given)
    for place, one in enumerate(found):
        if not hasattr(one, "__fspath__") and not isinstance(one, str | np.ndarray):
            raise UsageError(f"{verb}: {name}[{place}] is a {type(one).__name__}; give a path or an array.")
    return [str(one) if hasattr(one, "__fspath__") else one for one in found]


# --- images -----------------------------------------------------------------------------------------------------------


def images_in(file: str, adapt: Adapt) -> Iterator[str]:
    """Of an image itself, of a folder its images by name (or those in its folders of labels), of a table the images
    that it names, of a text file (or ``-``) the path in each line."""
    path = Path(file) if file == "-" else from_file(file)
    if file == "-":
        yield from (line.strip() for line in lines_of(file) if line.strip())
    elif path.is_dir() and not holds_labels(path):
        found = files_in(path, "image")
        if not found:
            raise DataError(f"{file}: there is no image in this folder.")
        yield from map(str, found)
    elif kind_of(file) == "image":
        yield file
    else:
        yield from (row.fields[0] for row in adapt(open_table(path)).rows())


def noise(reader: Any, count: int) -> list[np.ndarray]:
    """Images of noise, as large as the training images where they were alike, seed 1."""
    draw = np.random.default_rng(1)
    found = []
    for _ in range(count):
        height, width = reader.kept or draw.integers(8, 65, size=2).tolist()
        found.append(draw.integers(0, 256, size=(height, width, reader.channels)).astype(np.uint8))
    return found


def larger(reader: Any, source: Any) -> np.ndarray:
    """The image twice as high and twice as wide, where any size is read; else another of its size."""
    pixels: np.ndarray = reader.scaled(source)
    return pixels[::-1].copy() if reader.kept else np.tile(pixels, (2, 2, 1))


# --- frames -----------------------------------------------------------------------------------------------------------


def sequences_in(file: str, adapt: Adapt, reader: Any) -> Iterator[str]:
    """The cells of frames of a file; DataError with the line of one that the model does not read."""
    table = arranged(adapt(open_table(from_file(file, "sequences"))), reader.names)
    for row in table.rows():
        frames_of(str(table.path), row, reader)
        yield row.fields[0]


def frames_of(where: str, row: Row, reader: Any) -> np.ndarray:
    """The frames of a row, float32 [time, channels]; DataError with its line for those that the model does not read."""
    try:
        found: np.ndarray = reader.checked(read_frames(row.fields[0]))
    except DataError as error:
        raise DataError(f"{where}:{row.place}: {error}") from None
    return found


def random_frames(reader: Any, count: int) -> list[np.ndarray]:
    """Sequences of 1 to 40 frames of noise around the training mean, seed 1."""
    draw = np.random.default_rng(1)
    return [
        reader.mean + reader.deviation * draw.normal(size=(int(draw.integers(1, 41)), reader.given))
        for _ in range(count)
    ]


# --- recordings -------------------------------------------------------------------------------------------------------


def recordings_in(file: str, adapt: Adapt, reader: Any) -> Iterator[str]:
    """The recordings of a folder (or of its folders of labels) or a table, or the one that ``file`` is."""
    path = from_file(file, "recordings")
    if path.is_dir() and not holds_files(path) and not holds_labels(path):
        found = files_in(path, "sound")
        if found:
            yield from map(str, found)
            return
    if kind_of(file) == "sound" and not path.is_dir():
        yield file
        return
    table = adapt(open_table(file))
    for row in table.rows():
        checked(table.place(row.place), row.fields[0], reader)
        yield row.fields[0]


def checked(place: str, path: str, reader: Any) -> None:
    """DataError with the line of the table for what the head of a recording says."""
    try:
        reader.check(path)
    except DataError as error:
        raise DataError(placed(place, error)) from None


def tones(reader: Any, count: int) -> list[np.ndarray]:
    """Tones of 0.1 to 1 seconds that change their pitch, seed 1."""
    draw, rate = np.random.default_rng(1), reader.rate
    made = []
    for _ in range(count):
        pitches = draw.uniform(0.02, 0.8, size=draw.integers(1, 6)) * rate / 2
        time = np.arange(int(rate * draw.uniform(0.1, 1.0))) / rate
        pitch = pitches[(len(pitches) * np.arange(len(time))) // len(time)]
        made.append((0.3 * np.sin(2 * np.pi * pitch * time) + 0.01 * draw.normal(size=len(time))).astype(np.float32))
    return made
