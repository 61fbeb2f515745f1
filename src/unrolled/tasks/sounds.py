"""Sounds: a recording in, its label out, or several labels of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unrolled.data.table import Table
from unrolled.tasks.base import TASKS, Manual
from unrolled.tasks.named_files import looked_at
from unrolled.tasks.numbers import check_read, in_source
from unrolled.tasks.read_labels import FileLabelTask
from unrolled.text.recordings import check_recording

if TYPE_CHECKING:
    from unrolled.data.parts import Part
    from unrolled.text.readers import ReadLabels


@TASKS.register("sounds")
class Sounds(FileLabelTask):
    """One label a recording, or any number of them (``text.separator``).

    A folder for each label holds the recordings that have it; or a table names recordings in one column and has their
    labels in another. ``label`` is that column, by name or 1-based number; null: the one that is called label, class,
    category, …, else the one with few short values that come again and again.
    """

    files = "sound"
    columns = ("sound", "label")
    noun = "recording"
    unit = "recordings"
    preset = "sounds"
    instead = ", or give a folder of recordings with a folder for each label"
    manual = Manual(
        commands=("unrolled predict {} clip.wav", "unrolled evaluate {} recordings.tsv"),
        attending=("unrolled explain {} clip.wav --to picture.svg",),
        python="predict(['clip.wav'])",
        tags=("audio-classification", "rnn"),
        pipeline="audio-classification",
    )

    def adapt(self, table: Table) -> Table:
        return looked_at(super().adapt(table), "recording", check_recording)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_read(settings, "recordings", "audio", "frames")

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadLabels:
        with in_source():
            return super().learn(settings, part)
