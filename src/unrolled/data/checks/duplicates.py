"""Rows that are there twice: inside a split, across splits, or with another target each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unrolled.data.census import FIRST_FEATURES, Census
from unrolled.data.column import PLACES, ColumnCensus
from unrolled.data.findings import Finding, Severity, percent


def _source(census: Census) -> np.ndarray:
    """One digest a row, over the source and its features: int64 [rows]."""
    return _mixed(census, [census.columns[0], *census.columns[FIRST_FEATURES:]])


def _whole(census: Census) -> np.ndarray:
    """One digest a row, over all its columns: int64 [rows]."""
    return _mixed(census, census.columns)


def _mixed(census: Census, columns: Sequence[ColumnCensus]) -> np.ndarray:
    mixed = np.zeros(len(census.columns[0].digests), dtype=np.uint64)
    for column in columns:
        mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ np.frombuffer(column.digests, dtype=np.uint64)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _groups(digests: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows ordered by digest and then by place, for each the first row of its digest)."""
    order = np.argsort(digests, kind="stable")
    ordered = digests[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else np.zeros(0, dtype=np.int64)
    sizes = np.diff(np.r_[starts, len(order)])
    return order, order[np.repeat(starts, sizes)]


def repeated(census: Census) -> Iterator[Finding]:
    """Rows that repeat an earlier row exactly."""
    order, first = _groups(_whole(census))
    again = order != first
    count = int(again.sum())
    if not count:
        return
    pairs = sorted(zip(order[again].tolist(), first[again].tolist(), strict=True))[:PLACES]
    numbers, what = census.places, "line " if census.table.sign == ":" else census.table.sign
    places = tuple(f"{census.table.place(numbers[row])} (as {what}{numbers[earlier]})" for row, earlier in pairs)
    share = count / census.rows
    message = f"{count:,} {'row repeats' if count == 1 else 'rows repeat'} an earlier row exactly ({percent(share)})."
    severity: Severity = "warning" if share >= 0.05 and census.split == "train" else "note"
    yield Finding(severity, "duplicate", census.split, count, message, places)


def identical(census: Census) -> Iterator[Finding]:
    """Pairs whose two sides are the same text: natural in normalisation, untranslated in translation."""
    tally = census.identical
    if tally.count:
        sides = "pair has the same text" if tally.count == 1 else "pairs have the same text"
        message = f"{tally.count:,} {sides} on both sides ({percent(tally.count / census.rows)})."
        yield Finding("note", "identical sides", census.split, tally.count, message, tuple(tally.places))


def ambiguous(census: Census) -> Iterator[Finding]:
    """Sources with several targets: how many, and the exact match that no fixed answer can pass."""
    if len(census.columns) < 2:
        return
    sources = _source(census)
    if not len(sources):
        return
    _, whole_index, whole_counts = np.unique(_whole(census), return_index=True, return_counts=True)
    _, group = np.unique(sources[whole_index], return_inverse=True)
    different = np.bincount(group)
    many = int((different > 1).sum())
    if not many:
        return
    most = np.zeros(len(different), dtype=np.int64)
    np.maximum.at(most, group, whole_counts)
    ceiling = most.sum() / len(sources)
    rows = np.sort(whole_index[different[group] > 1])[:PLACES]
    message = f"{many:,} source{'s have' if many > 1 else ' has'} several targets."
    if ceiling < 0.9995:
        message += f" One answer for each is exactly right on at most {ceiling:.1%} of the rows."
    places = tuple(census.table.place(census.places[row]) for row in rows)
    yield Finding("note", "several targets", census.split, many, message, places)


def overlap(train: Census, census: Census) -> Iterator[Finding]:
    """Rows, and sources, that train holds too: they are remembered, not understood."""
    rows = np.isin(_whole(census), _whole(train))
    count, total = int(rows.sum()), max(census.rows, 1)
    if count:
        share = count / total
        severity: Severity = "warning" if share >= 0.01 else "note"
        part = f"{count:,} of {total:,} rows ({percent(share)})"
        message = f"{part} stand in train too, where they are answered by heart."
        yield Finding(severity, "overlap", census.split, count, message, _places(census, rows))
    if len(census.columns) < 2 or len(train.columns) < 2:
        return
    sources = np.isin(_source(census), _source(train)) & ~rows
    count = int(sources.sum())
    if count:
        part = f"{count:,} of {total:,} rows ({percent(count / total)})"
        message = f"{part} have a source that train holds with another target."
        yield Finding("note", "source overlap", census.split, count, message, _places(census, sources))


def _places(census: Census, rows: np.ndarray) -> tuple[str, ...]:
    return tuple(census.table.place(census.places[row]) for row in np.flatnonzero(rows)[:PLACES].tolist())
