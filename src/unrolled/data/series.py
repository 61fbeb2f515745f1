"""Tables with a step a row become a row a series: columns told apart, times put on a clock, what is wrong refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError, UsageError
from unrolled.data.opening import Report, Wrong, refuse
from unrolled.data.resampling import resampled
from unrolled.data.table import Row, Table, is_number, listed, select
from unrolled.text.clock import NEAR, Clock, Times, form_of, read_times
from unrolled.text.series import COLUMNS, Roles, Series, read_series, write_series

TIMES = ("time", "date", "datetime", "timestamp", "ds", "month", "year", "quarter", "week", "day", "t", "period")
SERIES = ("series", "unique_id", "series_id", "item", "item_id", "id", "store", "sensor", "station")
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


# --- which column is what ---------------------------------------------------------------------------------------------


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
    lower = [name.strip().casefold() for name in table.columns]
    if wanted.series is not None:
        series: int | None = select(table.path, table.columns, [wanted.series])[0]
    else:
        series = next((lower.index(name) for name in SERIES if name in lower and lower.index(name) != time), None)
    named = [*wanted.past, *wanted.known, *wanted.static, *(wanted.target or ())]
    places = select(table.path, table.columns, list(named)) if named else []
    twice = next((table.columns[place] for place in places if places.count(place) > 1 or place in (time, series)), None)
    if twice is not None:
        raise UsageError(
            f"{table.path}: the column '{twice}' is named for two things (task.time, series, target, past, known, "
            "static). Name it once."
        )
    free = [place for place in range(len(table.columns)) if place not in (time, series, *places)]
    numeric = [place for place in free if _numeric([row.fields[place] for row in head])]
    target = wanted.target or _targets(table, numeric)
    roles = Roles(target, wanted.past, wanted.known, wanted.static)
    numbers = tuple(table.columns.index(name) for name in roles.numbers)
    static = tuple(table.columns.index(name) for name in roles.static)
    left = [
        table.columns[place] for place in range(len(table.columns)) if place not in (time, series, *numbers, *static)
    ]
    return Columns(time, series, roles, numbers, static, _said(table, time, series, roles, left))


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


# --- rows to series ---------------------------------------------------------------------------------------------------


class Raw(NamedTuple):
    """The rows of one series as they stand."""

    times: list[str]
    numbers: list[tuple[str, ...]]
    lines: list[int]
    static: tuple[str, ...]


def gathered(table: Table, wanted: Wanted, clock: Clock | None = None) -> Table:
    """The table with a row a series, as `text.series` writes it, in the order of their first steps.

    ``clock``: the one that a model was trained on; None: it is found, or ``wanted.every`` says it. DataError with file
    and line for what is no number or time, a step that is missing, stands twice or out of order, and steps of unequal
    width.
    """
    columns = columns_of(table, wanted)
    kept: list[Series] = []

    def read(report: Report) -> Iterator[Row]:
        found = kept if kept and report is refuse else list(_all(table, columns, wanted, clock, report))
        if report is refuse:
            kept[:] = found
        for one in found:
            yield Row(int(one.lines[one.lines > 0][0]), write_series(one))

    said = [*table.guessed, columns.said]
    files = table.files
    mark = f"{table.mark} {wanted!r} {clock!r}"
    return Table(table.path, COLUMNS, read, "series", files, said, mark, columns.roles.numbers)


def _all(table: Table, columns: Columns, wanted: Wanted, clock: Clock | None, report: Report) -> Iterator[Series]:
    found: dict[str, tuple[Raw, NDArray[np.float64], NDArray[np.float64]]] = {}
    form, offset = "", 0.0
    for name, raw in _by_series(table, columns, report).items():
        read = _times(table, raw, form or wanted.time_format, report)
        numbers = _numbers(table, columns, raw, report)
        if read is None or numbers is None:
            continue
        form, offset = (read.form, read.offset) if not form else (form, offset)
        found[name] = raw, read.values, numbers
    if not found:
        return
    if clock is None and wanted.every is not None:
        clock = Clock.every(wanted.every, form, offset)
    own = clock or Clock.found([times for _, times, _ in found.values()], form, offset)
    if clock is not None and wanted.every is None:
        _refuse_pace(table, clock, Clock.found([times for _, times, _ in found.values()], form, offset))
    own = replace(own, form=form)
    for name, (raw, times, numbers) in found.items():
        one = _series(table, columns, wanted, own, name, raw, times, numbers, report)
        if one is not None:
            yield one


def _by_series(table: Table, columns: Columns, report: Report) -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    for line, fields in table.rows(report):
        name = fields[columns.series].strip() if columns.series is not None else ""
        static = tuple(fields[place].strip() for place in columns.static)
        raw = found.get(name)
        if raw is None:
            raw = found[name] = Raw([], [], [], static)
        elif raw.static != static:
            place = next(place for place in range(len(static)) if static[place] != raw.static[place])
            message = (
                f"'{columns.roles.static[place]}' is '{static[place]}' and was '{raw.static[place]}' before in this "
                "series: it is to be static. Name it in task.known or task.past."
            )
            report(Wrong(table.path, line, "static", message))
            continue
        raw.times.append(fields[columns.time])
        raw.numbers.append(tuple(fields[place] for place in columns.numbers))
        raw.lines.append(line)
    return found


def _times(table: Table, raw: Raw, form: str | None, report: Report) -> Times | None:
    try:
        return read_times(raw.times, form)
    except DataError as error:
        row, _, message = str(error).partition(":")
        if not row.isdigit():
            row, message = "0", str(error)
        report(Wrong(table.path, raw.lines[int(row)], "time", message.strip()))
        return None


def _numbers(table: Table, columns: Columns, raw: Raw, report: Report) -> NDArray[np.float64] | None:
    channels, whole = [], True
    for cells, name in zip(zip(*raw.numbers, strict=True), columns.roles.numbers, strict=True):
        cleaned = ["nan" if cell.strip().casefold() in EMPTY else cell for cell in cells]
        try:
            channel = np.array(cleaned, dtype=np.float64)
        except ValueError:
            channel = np.array([float(cell) if is_number(cell) else np.inf for cell in cleaned])
        for row in np.flatnonzero(np.isinf(channel)).tolist():
            what = "no finite number" if is_number(cells[row]) else "no number"
            message = (
                f"'{cells[row].strip()[:40]}' in the column '{name}' is {what}. Correct it, or leave the cell empty."
            )
            report(Wrong(table.path, raw.lines[row], "number", message))
            whole = False
        channels.append(channel)
    return np.stack(channels, axis=1) if whole else None


def _refuse_pace(table: Table, clock: Clock, here: Clock) -> None:
    if not clock.alike(here):
        raise DataError(
            f"{table.path}: a step is a {here.named()} here and a {clock.named()} in the training data. Give data with "
            "the same steps, or train with --set task.every=WIDTH, which resamples both."
        )


def _series(
    table: Table, columns: Columns, wanted: Wanted, clock: Clock, name: str, raw: Raw, times: NDArray[np.float64],
    numbers: NDArray[np.float64], report: Report,
) -> Series | None:  # fmt: skip
    lines = np.array(raw.lines, dtype=np.int64)
    positions = clock.positions(times)
    if wanted.every is not None:
        positions, numbers, lines = resampled(positions, numbers, lines)
    else:
        wrong = _irregular(clock, raw, positions, name)
        if wrong is not None:
            report(Wrong(table.path, int(lines[wrong[0]]), "steps", wrong[1]))
            return None
    one = Series(name, clock, columns.roles, float(positions[0]), 0, numbers, raw.static, lines)
    missing = _missing(one, columns.roles, wanted.missing)
    if missing is not None:
        line = int(lines[: missing[0] + 1].max())
        report(Wrong(table.path, line, "missing", missing[1]))
        return None
    return one


_CURES = "or resample: --set task.every="


def _irregular(clock: Clock, raw: Raw, positions: NDArray[np.float64], name: str) -> tuple[int, str] | None:
    """(row, message) of the first step that is not one after the step before."""
    gaps = np.diff(positions)
    wrong = np.flatnonzero(np.abs(gaps - 1) > NEAR)
    if not len(wrong):
        return None
    back = np.flatnonzero(gaps < -NEAR)  # rows out of order leave gaps elsewhere
    row = int(back[0] if len(back) else wrong[0]) + 1
    gap, of = float(gaps[row - 1]), f" of the series '{name}'" if name else ""
    here, before, line = raw.times[row].strip(), raw.times[row - 1].strip(), raw.lines[row - 1]
    width = f"{clock.step:g}" if clock.unit == "number" else f"'1 {clock.named()}'"
    if abs(gap) <= NEAR:
        return row, (
            f"the time '{here}'{of} stands twice (line {line} too). Remove one, tell series apart by a column "
            f"(--set task.series=NAME), {_CURES}{width} takes the mean."
        )
    if gap < 0:
        return row, (
            f"the time '{here}'{of} comes after '{before}' (line {line}). Sort the rows by time, or tell series apart "
            "by a column: --set task.series=NAME"
        )
    if abs(gap - round(gap)) <= NEAR:
        count = round(gap) - 1
        return row, (
            f"between '{before}' and '{here}'{of} {count} step{'' if count == 1 else 's'} of a {clock.named()} "
            f"{'is' if count == 1 else 'are'} missing. Add them with empty values, {_CURES}{width}"
        )
    return row, (
        f"'{here}'{of} comes {gap:.3g} steps after '{before}': most are a {clock.named()} apart. Give even steps, "
        f"{_CURES}{width}"
    )


def _missing(one: Series, roles: Roles, how: Missing) -> tuple[int, str] | None:
    """(row, message) of the first value that is missing and may not be."""
    if not np.isfinite(one.values[:, : len(roles.target)]).any():
        return 0, f"the series '{one.name}' has no value of {listed(roles.target)}. Leave it out."
    if how != "refuse":
        return None
    real = np.isfinite(one.values)
    if roles.known:
        real[one.ends :, : len(roles.target) + len(roles.past)] = True
    if real.all():
        return None
    row, channel = (int(place) for place in np.argwhere(~real)[0])
    what = "" if one.lines[row] else " in a step that task.every put in, after this line"
    return row, (
        f"the value of '{roles.numbers[channel]}' is missing{what}. Fill it, or say what to do: "
        "--set task.missing=mask (the network sees that it is missing) or forward (the last value stands for it)"
    )


# --- parts in time ----------------------------------------------------------------------------------------------------


def cut(table: Table, low: float, high: float) -> Table:
    """A table of series with the steps before position ``high``, of which those before ``low`` are only read. Series
    without a step between are left out."""

    def read(report: Report) -> Iterator[Row]:
        for place, fields in table.rows(report):
            one = read_series(fields).between(low, high)
            if len(one.values) > one.start and one.lines.any():
                yield Row(place, write_series(one))

    return replace(table, read=read, mark=f"{table.mark} [{low!r}, {high!r})")


def joined(before: Table, after: Table) -> Table:
    """The series of ``after``, the steps of the same series in ``before`` in front of theirs, only read. Nothing is
    forecast up to the last step of ``before``.

    DataError for other columns or another clock, and where a gap is between them.
    """

    def read(report: Report) -> Iterator[Row]:
        history = {one.name: one for one in (read_series(row.fields) for row in before.rows())}
        last = max((one.first + one.ends for one in history.values()), default=-np.inf)
        for place, fields in after.rows(report):
            try:
                one = _behind(history.get(fields[0]), read_series(fields), last)
            except DataError as error:
                report(Wrong(after.path, place, "steps", str(error)))
                continue
            if len(one.values) > one.start:
                yield Row(place, write_series(one))

    if before.channels != after.channels:
        raise DataError(
            f"{after.path}: the columns are {listed(after.channels)}, those of {before.path} {listed(before.channels)}."
        )
    return replace(after, read=read, mark=f"{after.mark} after {before.fingerprint()}")


def _behind(old: Series | None, new: Series, last: float) -> Series:
    if old is None:
        return new.between(last, np.inf)
    if not old.clock.alike(new.clock):
        raise DataError(f"a step is a {new.clock.named()} here and a {old.clock.named()} in the training data.")
    shift = new.first - old.first
    if shift <= 0 or abs(shift - round(shift)) > NEAR:
        return new.between(last, np.inf)  # it brings its own past
    gap = round(shift) - old.ends
    if gap > 0:
        raise DataError(
            f"the series '{new.name}' ends {gap} step{'' if gap == 1 else 's'} before these rows begin. Give the steps "
            "between, or a file that begins early enough."
        )
    keep = round(shift)
    values = np.concatenate([old.values[:keep], new.values])
    lines = np.concatenate([np.zeros(keep, np.int64), new.lines])
    return new._replace(first=old.first, values=values, lines=lines).between(last, np.inf)


def spans(rows: Callable[[], Iterator[Row]]) -> tuple[float, float, int]:
    """(first position, position after the last target, steps of the longest series) of rows that are series."""
    low, high, longest = np.inf, -np.inf, 0
    for row in rows():
        one = read_series(row.fields)
        low, high = min(low, one.first), max(high, one.first + one.ends)
        longest = max(longest, one.ends)
    return low, high, longest


def file_of(path: str | Path, wanted: Wanted, clock: Clock | None = None) -> Table:
    """The series of a file."""
    from unrolled.data.readers import open_table

    if str(path) == "-":
        raise UsageError("series are read from a file (.csv, .parquet, …), not from standard input.")
    return gathered(open_table(Path(path)), wanted, clock)
