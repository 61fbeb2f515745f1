"""Drawings, what a pen did point by point, as cells of a table; scaled alike, and their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError, UsageError
from unrolled.text.base import Rows, Text
from unrolled.text.frames import read_frames
from unrolled.text.labelled import Labels
from unrolled.text.reading import flat
from unrolled.text.trees import tree_of, write_tree

Drawing = NDArray[np.float64]
"""[points, 3]: how far the pen moved to each point, to the right and down, and what it did there: ON, UP or END."""

ON, UP, END = 0, 1, 2
"""The pen goes on from a point, is lifted there (a stroke ends), or is done (the drawing ends)."""

POINT = ("x", "y", "pen")
"""The numbers of a point."""

FARTHEST = 1e4
"""Times the usual step from which a single one is taken for a mistake."""

GRIDS = (1.0, 0.1, 0.01, 0.001)
"""Spacings, the widest first, that coordinates are looked at for: rounded numbers are multiples of one."""

SMOOTH = 1e-3
"""The floor of deviations, as a share of the usual step, where coordinates are not rounded."""


def read_drawing(cell: str, *, whole: bool = True) -> Drawing:
    """The drawing of a cell ``dx,dx,…:dy,dy,…:pen,pen,…`` whose pen is 0 or 1 (lifted); DataError for what is none.

    ``whole``: it ends where its last stroke does, so that the last pen is END; else it may be any beginning.
    """
    frames = read_frames(cell, POINT).astype(np.float64)
    if frames.shape[1] != 3:
        raise DataError(f"{frames.shape[1]} numbers a point where 3 are expected: x, y and pen.")
    return checked(frames, whole=whole)


def checked(points: Drawing, *, whole: bool = True) -> Drawing:
    """A copy of ``points`` [points, 3] of finite offsets and pens 0 or 1, the last of which is END where ``whole``."""
    found = np.array(points, dtype=np.float64)
    pens = found[:, 2]
    wrong = np.flatnonzero((pens != ON) & (pens != UP))
    if len(wrong):
        place = int(wrong[0])
        raise DataError(
            f"point {place + 1}: the pen is {pens[place]:g}; it must be 0 (the stroke goes on) or 1 (lifted after it)."
        )
    if not whole:
        return found
    if pens[-1] != UP:
        what = "no point lifts the pen" if not pens.any() else "the last point leaves the pen on the paper"
        raise DataError(f"{what}: a stroke without an end. Set the pen of the last point of every stroke to 1.")
    found[-1, 2] = END
    return found


def as_drawing(given: Any, *, whole: bool = True) -> Drawing:
    """What is given in Python as a drawing: an array [points, 3] of steps and pens 0 or 1, the last of which may be
    END, or a list of strokes, each [points, 2] of places. UsageError for anything else, DataError for wrong numbers."""
    try:
        flat = isinstance(given, np.ndarray) or np.ndim(given[0]) == 1
        parts = [np.asarray(given, np.float64)] if flat else [np.asarray(one, np.float64) for one in given]
    except (TypeError, ValueError, IndexError, KeyError):
        parts, flat = [], False
    size = 3 if parts and flat else 2
    if not parts or any(part.ndim != 2 or part.shape[1] != size or not len(part) for part in parts):
        raise UsageError("it is neither an array [points, 3] of (dx, dy, pen) nor a list of strokes [points, 2].")
    for place, part in enumerate(parts, 1):
        if not np.isfinite(part).all():
            bad = int(np.argmin(np.isfinite(part).all(axis=1)))
            raise DataError(f"stroke {place}, point {bad + 1}: a number is not finite. Leave the point out.")
    points = parts[0].copy() if size == 3 else from_strokes(parts)
    if points[-1, 2] == END:
        points[-1, 2] = UP
    return checked(points, whole=whole)


def from_strokes(strokes: Iterable[NDArray[np.float64]], *, steps: bool = True) -> Drawing:
    """Strokes of absolute points, each [points, 2], as offsets from (0, 0) with pens 0 and 1; without ``steps`` the
    points stay where they are."""
    parts = list(strokes)
    points = np.concatenate(parts)
    pens = np.zeros(len(points))
    pens[np.cumsum([len(part) for part in parts]) - 1] = UP
    return np.column_stack([np.diff(points, axis=0, prepend=0) if steps else points, pens])


def to_strokes(drawing: Drawing) -> list[NDArray[np.float64]]:
    """The strokes of a drawing as absolute points, each [points, 2]; the last may be unfinished."""
    points = np.cumsum(drawing[:, :2], axis=0)
    cuts = np.flatnonzero(drawing[:, 2] != ON) + 1
    return [part for part in np.split(points, cuts) if len(part)]


@dataclass(frozen=True, kw_only=True)
class DrawnSettings:
    """``scale``: offsets through the root of their mean square, the same in both directions, or as they are."""

    scale: Literal["standard", "none"] = "standard"


class DrawingReader:
    """Cells to scaled points, flat: what a store keeps.

    ``scale``: user's units in one of ours. ``step``: the middle length of a step, in the user's units. ``grid``: the
    spacing of which all coordinates are multiples, 0 where there is none.
    """

    vocabulary_size = 0  # numbers, no symbols

    def __init__(self, scale: float, step: float, grid: float) -> None:
        self.scale, self.step, self.grid = scale, step, grid

    @property
    def floor(self) -> float:
        """The least deviation of a density, in our units: what rounding does to a number (g / √12), or little."""
        smallest = self.grid / math.sqrt(12) if self.grid else SMOOTH * self.step
        return smallest / self.scale

    def scaled(self, drawing: Drawing) -> NDArray[np.float32]:
        """Float32 [points, 3]; DataError for a step that is far from all that training had."""
        reach = np.abs(drawing[:, :2]).max(axis=1)
        if (reach > FARTHEST * self.step).any():
            place = int(np.argmax(reach))
            raise DataError(
                f"point {place + 1}: the pen moves by {reach[place]:g}, and a usual step is {self.step:g}. Is this a "
                "mistake, or are coordinates absolute (task.coordinates=absolute)?"
            )
        return np.column_stack([drawing[:, :2] / self.scale, drawing[:, 2]]).astype(np.float32)

    def unscaled(self, points: NDArray[np.float32]) -> Drawing:
        """What ``scaled`` makes such points of."""
        found = points.astype(np.float64)
        found[:, :2] *= self.scale
        return found

    def encode_ids(self, texts: Sequence[str]) -> list[Any]:
        """Of each cell float32 [1 + 3 · points]: 3, then point by point."""
        return [flat(self.scaled(read_drawing(text))) for text in texts]


class LabelReader:
    """The label of a drawing as its number from 1; none, 0, where the cell is empty."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels

    @property
    def vocabulary_size(self) -> int:
        return len(self.labels) + 1

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[1 + self.labels.encode_ids([text])[0][0]] if text.strip() else [0] for text in texts]


class DrawnText(Text):
    """Drawings through their scale, and labels by number, where the training rows have any."""

    settings = DrawnSettings

    def __init__(self, drawings: DrawingReader, labels: Labels) -> None:
        self.drawings, self.labels = drawings, labels

    @property
    def label_reader(self) -> LabelReader:
        return LabelReader(self.labels)

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> DrawnText:
        offsets = [read_drawing(row[0])[:, :2] for row in rows()]
        reader = measured(np.concatenate([np.zeros((0, 2)), *offsets]))
        if settings["scale"] == "none":
            reader.scale = 1.0
        return DrawnText(reader, Labels.learn(row[1] for row in rows() if row[1].strip()))

    def fingerprint(self) -> str:
        reader = self.drawings
        return f"{reader.scale!r} {reader.step!r} {reader.grid!r} {self.labels.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        reader = self.drawings
        write_tree(Path(folder) / "drawings.json", {"scale": reader.scale, "step": reader.step, "grid": reader.grid})
        self.labels.save(Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> DrawnText:
        with tree_of(Path(folder) / "drawings.json", "scale of the drawings") as tree:
            reader = DrawingReader(float(tree["scale"]), float(tree["step"]), float(tree["grid"]))
        return DrawnText(reader, Labels.load(folder))

    def about(self) -> dict[str, str]:
        reader = self.drawings
        rounded = f", rounded to {reader.grid:g}" if reader.grid else ""
        return {
            "drawing": f"pen strokes, a usual step {reader.step:g} units{rounded}",
            "label": f"{len(self.labels):,} labels" if len(self.labels) else "no labels",
        }


def measured(offsets: NDArray[np.float64]) -> DrawingReader:
    """The reader that offsets [points, 2] of training rows make."""
    lengths = np.abs(offsets).max(axis=1, initial=0.0)
    moving = lengths[lengths > 0]
    if not len(moving):
        return DrawingReader(1.0, 1.0, 0.0)
    step = float(np.median(moving))
    scale = float(np.sqrt(np.mean(np.square(offsets[lengths <= FARTHEST * step]))))
    return DrawingReader(scale, step, next((grid for grid in GRIDS if _on_grid(offsets, grid)), 0.0))


def _on_grid(offsets: NDArray[np.float64], grid: float) -> bool:
    """Whether all offsets are multiples of ``grid``, but for what float32 loses."""
    steps = offsets / grid
    tolerance = np.maximum(1e-3, np.abs(steps) * 1e-6)
    return bool((np.abs(steps - np.round(steps)) <= tolerance).all())
