"""Tables with a step a row become a row a series: numbers read, times put on a clock, what is wrong refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError
from unrolled.data.opening import Report, Wrong, from_file, refuse
from unrolled.data.resampling import resampled
from unrolled.data.series_columns import EMPTY, Columns, Missing, Wanted, columns_of
from unrolled.data.table import Row, Table, is_number, listed
from unrolled.text.clock import NEAR, Clock, Times, read_times
from unrolled.text.series import COLUMNS, Roles, Series, write_series

LARGEST = 1e15
"""A number beyond it is a mistake: its square, in the type that networks read, would be endless."""


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
        for row in np.flatnonzero(np.abs(channel) > LARGEST).tolist():
            what = "no finite number, or too large a one" if is_number(cells[row]) else "no number"
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


def file_of(path: str | Path, wanted: Wanted, clock: Clock | None = None) -> Table:
    """The series of a file."""
    from unrolled.data.readers import open_table

    return gathered(open_table(from_file(path, "series")), wanted, clock)
