"""What was drawn: strokes that write themselves as pictures, as JSON lines and as arrays."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.files import write_beside
from unrolled.explain import sketches
from unrolled.text.drawings import ON, UP, to_strokes


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn:
    """A drawing out of a model.

    points      float64 [points, 3]: the pen's step to each in the user's units, and what it does there: 0 goes on,
                1 lifted, 2 done
    log_prob    natural log of the density that the model itself gives what it drew, the beginning not counted
    label       what was to be drawn, or ""
    finished    whether the model ended it, before the length did
    """

    points: np.ndarray
    log_prob: float
    label: str
    finished: bool

    @property
    def strokes(self) -> list[np.ndarray]:
        """Of each stroke the absolute points [points, 2]."""
        return to_strokes(self.points)

    def svg(self) -> str:
        """The drawing as one self-contained SVG element."""
        return sketches.svg([self.strokes], [self.label])

    def _repr_html_(self) -> str:
        return self.svg()

    def tree(self) -> dict[str, Any]:
        """As a line of a file of drawings has it, rounded to a thousandth of a unit."""
        found: dict[str, Any] = {"strokes": [np.round(stroke, 3).tolist() for stroke in self.strokes]}
        return found | ({"label": self.label} if self.label else {})


def write_drawn(drawings: Sequence[Drawn], place: str | Path) -> Path:
    """Write drawings as one page (.svg, .png), as data that can be read again (.jsonl, .npz), or, where ``place`` has
    no ending, as a folder of SVG files. UsageError for another ending."""
    place = Path(place)
    if not place.suffix:
        for number, one in enumerate(drawings, 1):
            write_beside(place / f"{number:0{len(str(len(drawings)))}}.svg", one.svg().encode())
        return place
    check_ending(place)
    return write_beside(place, _WRITERS[place.suffix.lower()](drawings))


def check_ending(place: str | Path) -> None:
    """UsageError for a place that drawings are not written to."""
    suffix = Path(place).suffix.lower()
    if suffix and suffix not in _WRITERS:
        raise UsageError(
            f"{place}: ends in '{suffix}', which drawings are not written as. Known: {', '.join(_WRITERS)}, and "
            "without an ending a folder of .svg."
        )


def _page(drawings: Sequence[Drawn]) -> bytes:
    return sketches.svg([one.strokes for one in drawings], [one.label for one in drawings]).encode()


def _png(drawings: Sequence[Drawn]) -> bytes:
    return sketches.png([one.strokes for one in drawings], [one.label for one in drawings])


def _lines(drawings: Sequence[Drawn]) -> bytes:
    return "".join(json.dumps(one.tree(), ensure_ascii=False) + "\n" for one in drawings).encode()


def _archive(drawings: Sequence[Drawn]) -> bytes:
    """Points end to end, with the pen as it is given: 0, and 1 where a stroke ends."""
    points = [np.column_stack([one.points[:, :2], one.points[:, 2] != ON]) for one in drawings]
    for one in points:
        one[-1, 2] = UP
    arrays: dict[str, Any] = {"points": np.concatenate(points), "lengths": np.array([len(one) for one in points])}
    if any(one.label for one in drawings):
        arrays["labels"] = np.array([one.label for one in drawings])
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


_WRITERS: dict[str, Callable[[Sequence[Drawn]], bytes]] = {
    ".svg": _page,
    ".png": _png,
    ".jsonl": _lines,
    ".json": _lines,
    ".npz": _archive,
}
