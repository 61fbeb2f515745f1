"""Recordings: files that cannot be read, other rates, silence, the same sound twice or in two splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from unrolled.data.census import Census
from unrolled.data.clips import Clip
from unrolled.data.findings import PLACES, Finding, Severity, by_cause
from unrolled.data.table import Table


def recorded(table: Table) -> bool:
    """Whether the rows of ``table`` name recordings."""
    return table.columns[:1] == ("sound",)


def wrong(census: Census) -> Iterator[Finding]:
    """What training would refuse, with the places; and how long the recordings are."""
    if not recorded(census.table):
        return
    split, clips = census.split, [clip for clip in census.clips if not clip.wrong]
    yield from by_cause("recording", split, ((clip.place, clip.wrong) for clip in census.clips if clip.wrong))
    if not clips:
        return
    usual = Counter(clip.rate for clip in clips).most_common(1)[0][0]
    others = [clip for clip in clips if clip.rate != usual]
    if others:
        rates = ", ".join(f"{rate:,}" for rate in sorted({clip.rate for clip in others}))
        message = f"{_count(others)} at {rates} Hz and not at the {usual:,} Hz of most. Convert them, or train with "
        yield _finding("error", "sample rate", split, others, f"{message}--set text.source.resample=true.")
    several = [clip for clip in clips if clip.channels > 1]
    if several:
        message = f"{_count(several)} with several channels. Mix them, or train with --set text.source.channels=mix."
        yield _finding("error", "channels", split, several, message)
    still = [clip for clip in clips if clip.silent]
    if still:
        yield _finding("error", "silence", split, still, f"{_count(still)} without a sound. Leave the rows out.")
    seconds = np.array([clip.seconds for clip in clips])
    span = f"{seconds.min():.2f} to {seconds.max():.2f} s, {seconds.sum() / 60:,.1f} minutes in all, at {usual:,} Hz."
    yield Finding("note", "recordings", split, len(clips), f"recordings of {span}")


def repeated(census: Census) -> Iterator[Finding]:
    """The same sound in several rows, by its samples: with the same text a repeat, with another a contradiction."""
    if not recorded(census.table):
        return
    first: dict[bytes, Clip] = {}
    same: list[Clip] = []
    other: list[Clip] = []
    for clip in census.clips:
        if not clip.wrong:
            before = first.setdefault(clip.digest, clip)
            if before is not clip:
                (same if before.text == clip.text else other).append(clip)
    what = census.table.columns[1] if len(census.table.columns) > 1 else "text"
    if same:
        message = f"{_count(same)} with the samples and the {what} of an earlier row."
        yield _finding("warning", "same recording", census.split, same, message)
    if other:
        message = f"{_count(other)} with the samples of an earlier row and another {what}: one of the two is wrong."
        yield _finding("warning", f"two {what}s", census.split, other, message)


def overlap(train: Census, census: Census) -> Iterator[Finding]:
    """Recordings that train holds too, by their samples."""
    if not (recorded(train.table) and recorded(census.table)):
        return
    held = {clip.digest for clip in train.clips if not clip.wrong}
    found = [clip for clip in census.clips if not clip.wrong and clip.digest in held]
    if found:
        severity: Severity = "warning" if len(found) * 100 >= len(census.clips) else "note"
        message = f"{_count(found)} of {len(census.clips):,} that train holds too, where they are answered by heart."
        yield _finding(severity, "overlap", census.split, found, message)


def _count(clips: Sequence[Clip]) -> str:
    return f"{len(clips):,} recording{'' if len(clips) == 1 else 's'}"


def _finding(severity: Severity, kind: str, split: str, clips: Sequence[Clip], message: str) -> Finding:
    return Finding(severity, kind, split, len(clips), message, tuple(clip.place for clip in clips[:PLACES]))
