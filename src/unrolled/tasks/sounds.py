"""Sounds: a recording in, its label out, or several labels of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from unrolled.base.settings import Tree
from unrolled.data.table import Table
from unrolled.tasks.base import TASKS, Manual
from unrolled.tasks.named_files import concluded, labelled, looked_at, told
from unrolled.tasks.numbers import check_read, in_source
from unrolled.tasks.read_labels import ReadLabelTask
from unrolled.text.recordings import check_recording

if TYPE_CHECKING:
    from unrolled.data.parts import Part
    from unrolled.text.readers import ReadLabels


@TASKS.register("sounds")
class Sounds(ReadLabelTask):
    """One label a recording, or any number of them (``text.separator``).

    A folder for each label holds the recordings that have it; or a table names recordings in one column and has their
    labels in another. ``label`` is that column, by name or 1-based number; null: the one that is called label, class,
    category, …, else the one with few short values that come again and again.
    """

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

    def __init__(self, *, label: str | Annotated[int, Ge(1)] | None = None) -> None:
        self.label = label

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        return told(table, "sound")

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        return concluded(table, "sound")

    def adapt(self, table: Table) -> Table:
        return looked_at(labelled(table, "sound", self.label), "recording", check_recording)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_read(settings, "recordings", "audio", "frames")

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadLabels:
        with in_source():
            return super().learn(settings, part)
