"""Series of steps: what training would refuse, with its lines; how many there are and how much of them is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.data.findings import PLACES, Finding, Report, Severity, Split, by_cause, percent
from unrolled.data.opening import Wrong
from unrolled.data.table import Table
from unrolled.text.forecasting import usual_horizon
from unrolled.text.series import Series, read_series


def told(table: Table) -> bool:
    """Whether the rows of ``table`` are series."""
    return table.format == "series"


def report(tables: Mapping[str, Table]) -> Report:
    """Of every split what is wrong, by kind, and what it holds; rows are series."""
    splits: list[Split] = []
    findings: list[Finding] = []
    for split, table in tables.items():
        wrong: dict[str, list[Wrong]] = {}
        found = [read_series(row.fields) for row in table.rows(_noting(wrong))]
        findings += _findings(split, str(table.path), found, wrong)
        if split == "train" and "valid" not in tables:
            findings += _short(str(table.path), found)
        count = sum(map(len, wrong.values()))
        splits.append(Split(split, str(table.path), table.format, len(found), count, (), tuple(table.guessed)))
    findings.sort(key=lambda finding: ("error", "warning", "note").index(finding.severity))
    return Report(tuple(splits), tuple(findings))


def _noting(wrong: dict[str, list[Wrong]]) -> Callable[[Wrong], None]:
    return lambda one: wrong.setdefault(one.kind, []).append(one)


def _findings(
    split: str, path: str, found: Sequence[Series], wrong: Mapping[str, Sequence[Wrong]]
) -> Iterator[Finding]:
    for kind, ones in wrong.items():
        yield from by_cause(kind, split, ((one.where, one.message) for one in ones))
    if not found:
        return
    clock, lengths = found[0].clock, [one.ends for one in found]
    span = f"{min(lengths):,}" if min(lengths) == max(lengths) else f"{min(lengths):,} to {max(lengths):,}"
    count = f"{len(found):,} series" if len(found) > 1 else "one series"
    yield Finding("note", "series", split, len(found), f"{count} of {span} steps, a step each {clock.named()}.", ())
    lacking = [(one, *_lacking(one.values)) for one in found]
    steps = sum(len(one.values) for one in found)
    severities: tuple[tuple[Severity, str], ...] = (
        ("error", "Training refuses them unless task.missing says what to do (mask or forward)."),
        ("warning", "They end a series: training refuses them unless task.known names what is known ahead."),
    )
    for place, (severity, cure) in enumerate(severities):
        lines = [line for one, *rows in lacking for line in one.lines[rows[place]].tolist()]
        if lines:
            message = f"{percent(len(lines) / steps)} of the steps lack a number. {cure}"
            places = tuple(f"{path}:{one}" for one in lines[:PLACES])
            yield Finding(severity, "missing", split, len(lines), message, places)
    for place, name in enumerate(found[0].roles.numbers):
        every = np.concatenate([one.values[:, place] for one in found])
        real = every[np.isfinite(every)]
        if len(real) and real.min() == real.max():
            yield Finding("warning", "constant", split, 1, f"'{name}' is {real[0]:g} in every step.", ())


def _short(path: str, found: Sequence[Series]) -> Iterator[Finding]:
    """Too few steps to hold some out for validation, where nobody says how far ahead is forecast."""
    if not found:
        return
    horizon, longest = usual_horizon(found[0].clock), max(one.ends for one in found)
    least = 2 * horizon + 2
    if longest < least:
        message = (
            f"the longest series has {longest} step{'' if longest == 1 else 's'}; {horizon} are held out for "
            f"validation and forecasts reach {horizon} ahead, so {least} are the least: training refuses fewer. "
            "Give more, or a smaller horizon: --set task.horizon=N"
        )
        yield Finding("error", "few steps", "train", 1, message, (path,))


def _lacking(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Steps of ``values`` [time, channels] that lack a number before the last one of its channel, and after it."""
    real = np.isfinite(values)
    goes_on = np.flip(np.logical_or.accumulate(np.flip(real, axis=0), axis=0), axis=0)
    inside = (~real & goes_on).any(axis=1)
    return np.flatnonzero(inside), np.flatnonzero(~inside & ~real.all(axis=1))
