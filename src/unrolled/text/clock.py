"""The times of a series: read from cells, found to be a regular clock, counted in steps, and written again."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError, SettingsError

Unit = Literal["number", "second", "weekday", "month"]

DAY, WEEK, YEAR = 86_400.0, 604_800.0, 31_556_952.0
"""Seconds; the year is the mean one of the Gregorian calendar."""

NEAR = 1e-3
"""Share of a step within which a time is on the clock."""

FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
"""Ways to write a time that are told by their first cell; others are ISO 8601, or said by ``time_format``."""

_MONTH, _QUARTER, _COMPACT = (
    re.compile(r"(\d{4})[-/](\d{1,2})"),
    re.compile(r"(\d{4})[- ]?[Qq]([1-4])"),
    re.compile(r"\d{8}"),
)
_WIDTH = re.compile(r"(\d+(?:\.\d+)?)?\s*([a-z]+)")
_WIDTHS: dict[str, tuple[Unit, float]] = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), ("second", 1.0)),
    **dict.fromkeys(("min", "minute", "minutes"), ("second", 60.0)),
    **dict.fromkeys(("h", "hour", "hours"), ("second", 3600.0)),
    **dict.fromkeys(("d", "day", "days"), ("second", DAY)),
    **dict.fromkeys(("w", "week", "weeks"), ("second", WEEK)),
    **dict.fromkeys(("month", "months"), ("month", 1.0)),
    **dict.fromkeys(("q", "quarter", "quarters"), ("month", 3.0)),
    **dict.fromkeys(("y", "year", "years"), ("month", 12.0)),
}


class Times(NamedTuple):
    """A column of times: numbers as they are, dates as seconds since 1970, and how they are written."""

    values: NDArray[np.float64]  # [rows]
    form: str  # number, month, quarter, iso, isoT or a format of strftime
    offset: float  # seconds east of Greenwich of the first, 0 where it says none


def form_of(cell: str, given: str | None = None) -> str:
    """How a time is written, told by one cell; DataError where it is none that is known."""
    text = cell.strip()
    if given is not None:
        return given
    if _QUARTER.fullmatch(text):
        return "quarter"
    if _MONTH.fullmatch(text):
        return "month"
    if _COMPACT.fullmatch(text) and "19" <= text[:2] <= "20" and _parsed(text, "%Y%m%d") is not None:
        return "%Y%m%d"
    try:
        float(text)
    except ValueError:
        pass
    else:
        return "number"
    for form in FORMS:
        found = _parsed(text, form)
        if found is not None and found.strftime(form) == text:
            return form
    form = "isoT" if "T" in text else "iso"
    if _parsed(text, form) is None:
        raise DataError(
            f"'{text[:40]}' is no time (a number, 2024-01-31, 2024-01-31 12:00, 2024-01, 2024Q1). Say how it is "
            "written: --set task.time_format=%d.%m.%Y"
        )
    return form


def read_times(cells: Sequence[str], given: str | None = None) -> Times:
    """The times of a column, all written as the first is. DataError for another: its message begins with its row, from
    0, and a colon."""
    form = form_of(cells[0], given)
    values = np.empty(len(cells))
    if form == "number":
        for row, cell in enumerate(cells):
            try:
                values[row] = float(cell)
            except ValueError:
                values[row] = np.nan
            if not np.isfinite(values[row]):
                raise DataError(f"{row}:'{cell.strip()[:40]}' is no number where the times before are.")
        return Times(values, form, 0.0)
    offset = 0.0
    for row, cell in enumerate(cells):
        found = _parsed(cell.strip(), form)
        if found is None:
            raise DataError(f"{row}:'{cell.strip()[:40]}' is no time written as '{cells[0].strip()[:40]}' is.")
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        elif row == 0:
            shift = found.utcoffset()
            offset = shift.total_seconds() if shift is not None else 0.0
        values[row] = found.timestamp()
    return Times(values, form, offset)


def _parsed(text: str, form: str) -> datetime | None:
    try:
        if form == "month":
            found = _MONTH.fullmatch(text)
            return None if found is None else datetime(int(found[1]), int(found[2]), 1)
        if form == "quarter":
            found = _QUARTER.fullmatch(text)
            return None if found is None else datetime(int(found[1]), 3 * int(found[2]) - 2, 1)
        if form in ("iso", "isoT"):
            return datetime.fromisoformat(text)
        return datetime.strptime(text, form)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Clock:
    """Steps of equal width: so many numbers, seconds, working days (Monday to Friday) or months.

    The position of a time is how many steps lie between the zero of its unit (0, 1970, Monday 1970-01-05, January of
    the year 0) and it. ``day`` and ``moment``: of a clock of months or working days, the day of the month (31: the
    last) and the second of the day that its times have.
    """

    unit: Unit
    step: float
    form: str
    offset: float = 0.0
    day: int = 1
    moment: float = 0.0

    # --- found ----------------------------------------------------------------------------------------------------

    @staticmethod
    def found(series: Sequence[NDArray[np.float64]], form: str, offset: float) -> Clock:
        """The clock that the times of the series, each in order, go by most of the time."""
        gaps = np.concatenate([np.empty(0), *[np.diff(times) for times in series]])
        gaps = gaps[gaps > 0]
        if not len(gaps):
            return Clock("number" if form == "number" else "second", 1.0 if form == "number" else DAY, form, offset)
        if form == "number":
            return Clock("number", _usual(gaps), form)
        every = np.concatenate(series)
        if gaps.min() > 27.5 * DAY:
            monthly = _monthly(every, form, offset)
            if monthly is not None:
                unit_gaps = np.concatenate([np.diff(monthly.units(times)) for times in series])
                return Clock("month", _usual(unit_gaps[unit_gaps > 0]), form, offset, monthly.day, monthly.moment)
        working = Clock("weekday", 1.0, form, offset, moment=float((every[0] + offset) % DAY))
        steps = np.concatenate([np.diff(working.units(times)) for times in series])
        weekends = bool(np.any((gaps >= 2.5 * DAY) & (gaps <= 3.5 * DAY))) and float(np.median(gaps)) == DAY
        if weekends and bool(np.all(np.abs(steps - np.round(steps)) < NEAR)) and not _on_weekend(every + offset):
            return working
        return Clock("second", _usual(gaps), form, offset)

    @staticmethod
    def every(width: str | float, form: str, offset: float) -> Clock:
        """The clock of a width that the user gave: ``15min``, ``1h``, ``1d``, ``1 week``, ``1 month``, or a number.

        SettingsError for what is none.
        """
        if form == "number":
            try:
                number = float(width)
            except ValueError:
                number = 0.0
            if not number > 0:
                raise SettingsError(f"[task.every] '{width}' was given, and the times are numbers: give one above 0.")
            return Clock("number", number, form)
        found = _WIDTH.fullmatch(str(width).strip().lower())
        unit = _WIDTHS.get(found[2]) if found else None
        if found is None or unit is None or float(found[1] or 1) <= 0:
            raise SettingsError(
                f"[task.every] '{width}' was given; write a width such as 15min, 1h, 1d, 1w, 1month or 1quarter."
            )
        return Clock(unit[0], float(found[1] or 1) * unit[1], form, offset)

    # --- counting -------------------------------------------------------------------------------------------------

    def units(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times, as `Times` has them, in units since its zero."""
        if self.unit == "number":
            return times
        if self.unit == "second":
            return times + self.offset  # so that days begin at the user's midnight
        if self.unit == "weekday":
            days = (times + self.offset - self.moment) / DAY - 4  # since Monday 1970-01-05
            week = np.floor(days / 7)
            within = days - 7 * week
            found: NDArray[np.float64] = 5 * week + np.minimum(within, 5.0)
            return found
        dates = [self._local(time) for time in times.tolist()]
        return np.array([12 * date.year + date.month - 1 for date in dates], dtype=np.float64)

    def positions(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times in steps; a whole number apart from each other where they are on the clock."""
        return self.units(times) / self.step

    def _local(self, time: float) -> datetime:
        return datetime.fromtimestamp(time, UTC) + timedelta(seconds=self.offset)

    def _at(self, position: float) -> datetime:
        """The local time at a position of a clock of dates."""
        units = position * self.step
        if self.unit == "second":
            return self._local(round(units, 3) - self.offset)
        if self.unit == "weekday":
            week, within = divmod(round(units), 5)
            return self._local((4 + 7 * week + within) * DAY + self.moment - self.offset)
        year, month = divmod(round(units), 12)
        last = monthrange(year, month + 1)[1]
        return datetime(year, month + 1, min(self.day, last), tzinfo=UTC) + timedelta(seconds=self.moment)

    def written(self, position: float) -> str:
        """The time at a position, as the user writes times."""
        if self.unit == "number":
            return f"{round(position * self.step, 9):.12g}"
        date = self._at(position)
        if self.form == "month":
            return date.strftime("%Y-%m")
        if self.form == "quarter":
            return f"{date.year}Q{(date.month + 2) // 3}"
        if self.form in ("iso", "isoT"):
            zone: tzinfo = timezone(timedelta(seconds=self.offset))
            return date.replace(tzinfo=zone).isoformat(sep="T" if self.form == "isoT" else " ")
        return date.strftime(self.form)

    # --- what a clock knows of its data ---------------------------------------------------------------------------

    def named(self) -> str:
        """How often a step is, in words."""
        if self.unit == "number":
            return f"{self.step:g}"
        if self.unit == "weekday":
            return "working day"
        if self.unit == "month":
            names = {1.0: "month", 3.0: "quarter", 12.0: "year"}
            return names.get(self.step, f"{self.step:g} months")
        for width, name in ((WEEK, "week"), (DAY, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
            count = self.step / width
            if count >= 1 and abs(count - round(count)) < 1e-9:
                return name if count == 1 else f"{count:g} {name}s"
        return f"{self.step:g} seconds"

    def cycles(self) -> tuple[float, ...]:
        """How many steps the cycles of the calendar take that are longer than two: a day, a week, a year."""
        if self.unit == "number":
            return ()
        if self.unit == "month":
            found = [12 / self.step]
        elif self.unit == "weekday":
            found = [5.0, YEAR / DAY * 5 / 7]
        else:
            found = [width / self.step for width in (DAY, WEEK, YEAR)]
        return tuple(cycle for cycle in found if cycle > 2)

    def calendar(self, positions: NDArray[np.float64], cycles: Sequence[float]) -> NDArray[np.float64]:
        """sin and cos of where each position stands in each of ``cycles``: float64 [positions, 2 · cycles]."""
        angles = [2 * np.pi * (positions % cycle) / cycle for cycle in cycles]
        waves = [wave for angle in angles for wave in (np.sin(angle), np.cos(angle))]
        return np.stack(waves, axis=1) if waves else np.empty((len(positions), 0))

    def alike(self, other: Clock) -> bool:
        """Whether both go at the same pace."""
        return self.unit == other.unit and abs(self.step - other.step) < 1e-9 * max(1.0, self.step)

    def tree(self) -> dict[str, Any]:
        """As JSON knows it: what the constructor takes."""
        return asdict(self)


def _usual(gaps: NDArray[np.float64]) -> float:
    """The commonest of some widths, those that differ by rounding taken for one; of equally common ones the least."""
    counts = Counter(float(f"{gap:.9g}") for gap in gaps.tolist())
    most = max(counts.values())
    return min(gap for gap, count in counts.items() if count == most)


def _monthly(times: NDArray[np.float64], form: str, offset: float) -> Clock | None:
    """The clock of months that all times are on: on the same day of theirs, or the last."""
    clock = Clock("month", 1.0, form, offset)
    dates = [clock._local(time) for time in times.tolist()]
    moments = {date.hour * 3600 + date.minute * 60 + date.second for date in dates}
    if len(moments) > 1:
        return None
    days = {date.day for date in dates}
    last = all(date.day == monthrange(date.year, date.month)[1] for date in dates)
    if len(days) > 1 and not last:
        return None
    return Clock("month", 1.0, form, offset, 31 if last else days.pop(), float(moments.pop()))


def _on_weekend(seconds: NDArray[np.float64]) -> bool:
    return bool(np.any(np.floor(seconds / DAY - 4) % 7 >= 5))
