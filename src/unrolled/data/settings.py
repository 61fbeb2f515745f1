"""Which columns and rows of the user's table a run takes, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """``columns`` by name or 1-based number, in the task's order. ``max_length`` counts symbols of one side; a longer
    example is left out or cut, and counted. Without a validation file ``valid_share`` of the rows is held out, at most
    ``valid_rows``, chosen by a digest of the source, so that no source stands on both sides."""

    columns: tuple[str | int, ...] | None = None
    max_length: Annotated[int, Ge(1)] = 512
    too_long: Literal["drop", "cut"] = "drop"
    valid_share: Annotated[float, Interval(gt=0, lt=1)] = 0.05
    valid_rows: Annotated[int, Ge(1)] = 1000
    wrong_lines: Literal["refuse", "skip"] = (
        "refuse"  # a line that cannot be read ends the run, or is left out and counted
    )
    max_unknown: Annotated[float, Interval(ge=0, le=1)] = 0.2  # share of unknown symbols above which a run is refused
