"""A series as cells of a table: its name, its clock and columns, the numbers of its steps, the lines they stand in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError
from unrolled.text.clock import Clock

COLUMNS = ("series", "head", "values", "lines")
"""The fields of a row that is a whole series."""


class Roles(NamedTuple):
    """The columns of a series: what is forecast; what is known of the past alone; what is known of the future too;
    what never changes."""

    target: tuple[str, ...]
    past: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    static: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those that are numbers, in the order of a series' channels."""
        return (*self.target, *self.past, *self.known)


class Series(NamedTuple):
    """Steps of one series, evenly apart."""

    name: str
    clock: Clock
    roles: Roles
    first: float  # position of the first step on the clock
    start: int  # the steps before it are only read, nothing of them is forecast
    values: NDArray[np.float64]  # [time, channels], as the user has them; NaN: missing
    static: tuple[str, ...]  # of each static column
    lines: NDArray[np.int64]  # [time]: where each step stands in the file; 0: it was put in

    def positions(self) -> NDArray[np.float64]:
        """Of each step, on the clock."""
        return self.first + np.arange(len(self.values), dtype=np.float64)

    def between(self, low: float, high: float) -> Series:
        """The steps before position ``high``, those before ``low`` only read."""
        count = (
            int(np.clip(np.ceil(high - self.first - 1e-6), 0, len(self.values)))
            if np.isfinite(high)
            else len(self.values)
        )
        start = 0 if not np.isfinite(low) else int(np.clip(np.ceil(low - self.first - 1e-6), 0, count))
        return self._replace(values=self.values[:count], lines=self.lines[:count], start=max(start, self.start))

    @property
    def ends(self) -> int:
        """Steps up to the last whose targets are not all missing; those after it are the known future."""
        real = np.flatnonzero(np.isfinite(self.values[:, : len(self.roles.target)]).any(axis=1))
        return int(real[-1]) + 1 if len(real) else 0


def write_series(one: Series) -> tuple[str, str, str, str]:
    """The fields of a series, as COLUMNS has them."""
    head = {
        "clock": one.clock.tree(),
        "roles": one.roles._asdict(),
        "first": one.first,
        "start": one.start,
        "static": one.static,
    }
    values = ":".join(",".join(map(repr, channel)) for channel in one.values.T.tolist())
    return one.name, json.dumps(head), values, ",".join(map(str, one.lines.tolist()))


def read_series(fields: Sequence[str]) -> Series:
    """What ``write_series`` wrote; DataError where it is something else."""
    try:
        name, text, values, lines = fields
        head = json.loads(text)
        roles = Roles(**{role: tuple(names) for role, names in head["roles"].items()})
        channels = [np.array(channel.split(","), dtype=np.float64) for channel in values.split(":")]
        found = Series(
            name,
            Clock(**head["clock"]),
            roles,
            float(head["first"]),
            int(head["start"]),
            np.stack(channels, axis=1),
            tuple(head["static"]),
            np.array(lines.split(","), dtype=np.int64),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"this is no series as cells ({error}).") from None
    return found
