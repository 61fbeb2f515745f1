"""Series cut in time, and later files joined to earlier ones: what comes after training is never before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from unrolled.base.errors import DataError
from unrolled.data.opening import Report, Wrong
from unrolled.data.table import Row, Table, listed
from unrolled.text.clock import NEAR
from unrolled.text.series import Series, read_series, write_series


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
