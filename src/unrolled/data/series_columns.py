"""Which column of a table of steps is what: as the user says, else by names and by what the cells hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from unrolled.base.errors import DataError, UsageError
from unrolled.data.table import Row, Table, is_number, listed, select
from unrolled.text.clock import form_of
from unrolled.text.series import Roles

TIMES = ("time", "date", "datetime", "timestamp", "ds", "month", "year", "quarter", "week", "day", "t", "period")
SERIES = ("series", "unique_id", "series_id", "item", "item_id", "id", "store", "shop", "sensor", "station")
TARGETS = ("y", "target", "value")
"""What columns are called that hold the time, tell series apart and are forecast; compared in lower case."""

HEAD = 200
"""Rows that are looked at to tell columns of numbers."""

EMPTY = frozenset({"", "nan", "na", "n/a", "null", "none", "?", "-"})
"""Cells that are missing values; compared in lower case."""

Missing = Literal["refuse", "forward", "mask"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user says of the columns and steps of a table; null: told by names and numbers. See `tasks.forecast`."""

    time: str | None = None
    series: str | None = None
    target: tuple[str, ...] | None = None
    past: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    time_format: str | None = None
    every: str | float | None = None
    missing: Missing = "refuse"


class Columns(NamedTuple):
    """Which column is what."""

    time: int
    series: int | None
    roles: Roles
    numbers: tuple[int, ...]  # of the channels, in their order
    static: tuple[int, ...]
    said: str


def time_column(table: Table, head: Sequence[Row], wanted: Wanted) -> int | None:
    """The column of times: the one that is named, else one that is called so and holds times, else the first whose
    cells are dates."""
    if wanted.time is not None:
        return select(table.path, table.columns, [wanted.time])[0]
    lower = [name.strip().casefold() for name in table.columns]
    called = [place for place, name in enumerate(lower) if name in TIMES or "date" in name or "time" in name]
    others = [place for place in range(len(lower)) if place not in called]
    for place in called:
        if head and is_time(head[0].fields[place], wanted.time_format):
            return place
    for place in others:
        cells = [row.fields[place] for row in head]
        if cells and not is_number(cells[0]) and all(is_time(cell, wanted.time_format) for cell in cells[:5]):
            return place
    return None


def is_time(cell: str, form: str | None = None) -> bool:
    """Whether a cell holds a time."""
    try:
        form_of(cell, form)
    except DataError:
        return False
    return bool(cell.strip())


def columns_of(table: Table, wanted: Wanted) -> Columns:
    """Which column of the table is what; UsageError for a name that it does not have, DataError where there is nothing
    to forecast."""
    head = list(islice(table.rows(lambda _: None), HEAD))
    time = time_column(table, head, wanted)
    if time is None:
        raise DataError(
            f"{table.path}: no column holds times ({listed(table.columns)}). Name one: --set task.time=NAME, and how "
            "it is written: --set task.time_format=%d.%m.%Y"
        )
    named = [*wanted.past, *wanted.known, *wanted.static, *(wanted.target or ())]
    places = select(table.path, table.columns, list(named)) if named else []
    if wanted.series is not None:
        series: int | None = select(table.path, table.columns, [wanted.series])[0]
    else:
        lower = [name.strip().casefold() for name in table.columns]
        called = [lower.index(name) for name in SERIES if name in lower]
        series = next((place for place in called if place not in (time, *places)), None)
    twice = next((table.columns[place] for place in places if places.count(place) > 1 or place in (time, series)), None)
    if twice is not None:
        raise UsageError(
            f"{table.path}: the column '{twice}' is named for two things (task.time, series, target, past, known, "
            "static). Name it once."
        )
    free = [place for place in range(len(table.columns)) if place not in (time, series, *places)]
    numeric = [place for place in free if _numeric([row.fields[place] for row in head])]
    words = [place for place in free if place not in numeric]
    if wanted.series is None and series is None and len(words) == 1 and _repeats([row.fields[time] for row in head]):
        series = words[0]
    target = wanted.target or _targets(table, numeric)
    roles = Roles(target, wanted.past, wanted.known, wanted.static)
    numbers = tuple(table.columns.index(name) for name in roles.numbers)
    static = tuple(table.columns.index(name) for name in roles.static)
    left = [
        table.columns[place] for place in range(len(table.columns)) if place not in (time, series, *numbers, *static)
    ]
    return Columns(time, series, roles, numbers, static, _said(table, time, series, roles, left))


def _repeats(cells: Sequence[str]) -> bool:
    """Whether a time stands twice, so that there must be several series."""
    return len(set(cells)) < len(cells)


def _numeric(cells: Sequence[str]) -> bool:
    """Whether most cells are numbers: a single one that is not is named later, with its line."""
    real = [cell for cell in cells if cell.strip().casefold() not in EMPTY]
    return bool(real) and sum(map(is_number, real)) >= 0.9 * len(real)


def _targets(table: Table, numeric: Sequence[int]) -> tuple[str, ...]:
    names = [table.columns[place] for place in numeric]
    called = [name for name in names if name.strip().casefold() in TARGETS]
    found = tuple(called[:1] or names)
    if not found:
        raise DataError(
            f"{table.path}: no column of numbers is left to forecast ({listed(table.columns)}). Name it: "
            "--set task.target=NAME"
        )
    return found


def _said(table: Table, time: int, series: int | None, roles: Roles, left: Sequence[str]) -> str:
    parts = [f"the time is '{table.columns[time]}'", f"forecast: {listed(roles.target)}"]
    if series is not None:
        parts.insert(1, f"series are told apart by '{table.columns[series]}'")
    for name, names in (("known of the past", roles.past), ("known ahead", roles.known), ("static", roles.static)):
        if names:
            parts.append(f"{name}: {listed(names)}")
    if left:
        parts.append(f"not used: {listed(left)}")
    return f"A step a row: {'; '.join(parts)} (others: task.time, series, target, past, known, static)."
