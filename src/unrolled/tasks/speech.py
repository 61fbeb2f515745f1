"""Speech: recordings in, what is said in them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unrolled.base.errors import SettingsError
from unrolled.data.parts import Part
from unrolled.data.referenced import column_of, resolved
from unrolled.data.signals import arranged, gathered, sequence_column
from unrolled.data.table import Table, listed
from unrolled.data.table import arranged as ordered
from unrolled.tasks.base import TASKS, Manual
from unrolled.tasks.describing import DescribeTask
from unrolled.tasks.judging import Grouping
from unrolled.tasks.named_files import full, labels_beside, looked_at
from unrolled.tasks.numbers import check_read, in_source
from unrolled.text.readers import ReadText
from unrolled.text.recordings import check_recording

if TYPE_CHECKING:
    from unrolled.data.store import Store
    from unrolled.text.readers import Framed

FORMATS = ("ts", "npz", "frames")
"""Formats whose rows are sequences of frames."""

SOUNDS = ("sound", "audio", "recording", "wav", "path", "file", "file_name", "filename")
"""What columns of paths are called, the likeliest first; compared in lower case."""

TEXTS = ("text", "transcript", "transcription", "sentence", "words")
"""What columns of texts are called."""

COLUMNS = ("sound", "text")
"""What a table's columns are called when they are known."""

MEASURES = ("wer", "cer", "exact_match")


@TASKS.register("speech")
class Speech(DescribeTask):
    """Recordings with a text of each; or with ``text.source: {kind: frames}`` sequences of frames that are not heard:
    signs, strokes of a sensor, sounds that somebody else has analysed.

    ``scores`` are measures of the outputs. ``references``: each row has its own reference, or rows of the same
    recording are ``grouped`` and the best of their references counts.
    """

    noun = "recording"
    preset = "speech"
    stop_on = "wer"
    quick = MEASURES
    measures = ("loss", "perplexity", *MEASURES)
    instead = ", or give a folder of recordings with a text beside each (a.wav, a.txt)"
    manual = Manual(
        commands=("unrolled predict {} recordings.tsv", "unrolled evaluate {} recordings.tsv"),
        attending=("unrolled explain {} clip.wav --to picture.svg",),
        python="predict(['clip.wav'])",
        tags=("automatic-speech-recognition", "rnn"),
        pipeline="automatic-speech-recognition",
    )

    def __init__(
        self,
        *,
        scores: list[str | dict[str, Any]] | None = None,
        references: Grouping = "each",
    ) -> None:
        super().__init__(list(MEASURES) if scores is None else scores, references)

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        place = column_of(table, "sound")
        if place is None or len(table.columns) < 2 or labels_beside(table, "sound") is not None:
            return None
        return f"{table.path}: the column '{table.columns[place]}' names recordings."

    def adapt(self, table: Table) -> Table:
        """Paths as seen from here, and the text beside them, where there is one; rows that cannot be used are wrong."""
        framed = in_frames(table)
        if framed is not None:
            return full(framed, "text") if len(framed.columns) > 1 else framed
        found = looked_at(adapted(table), "recording", check_recording)
        return full(found, "text") if len(found.columns) > 1 else found

    def named(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        return (0, 1) if tuple(columns[:2]) == COLUMNS else super().named(columns)

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadText:
        framed, kind = not part.table.root, settings["source"]["kind"]
        if framed != (kind == "frames"):
            what, needed = ("sequences of frames", "frames") if framed else ("recordings", "audio")
            raise SettingsError(
                f"[text.source] '{kind}' was given, and the rows of {part.table.path} are {what}. Say --set "
                f"text.source.kind={needed}."
            )
        with in_source():
            text = super().learn(settings, part)
        if framed:
            cast("Framed", text.source).names = part.table.channels
        return text

    def store(self, folder: Path, part: Part, text: ReadText, mark: str) -> Store:
        names = getattr(text.source, "names", ())
        return super().store(folder, part._replace(table=arranged(part.table, names)), text, mark)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        kind = settings["text"]["source"]["kind"]
        check_read(settings, "recordings", "frames" if kind == "frames" else "audio", "frames")


def in_frames(table: Table) -> Table | None:
    """A table of frames with texts, in files of them or with a frame a row, a sequence a row; None for any other."""
    if table.format in FORMATS:
        return replace(table, columns=COLUMNS[: len(table.columns)])
    if sequence_column(table.columns) is None or column_of(table, "sound") is not None:
        return None
    text = _called(TEXTS, table.columns)
    found = gathered(table, None, None if text is None else table.columns[text], by_frame=False, cure="write one text")
    return replace(found, columns=COLUMNS[: len(found.columns)])


def adapted(table: Table) -> Table:
    """A table of the columns ``sound``, paths as seen from here, and ``text``, where there is a further column."""
    if table.format == "beside":
        return table
    sound = column_of(table, "sound")
    if sound is None:
        sound = _called(SOUNDS, table.columns) or 0
    others = [place for place in range(len(table.columns)) if place != sound]
    named = _called(TEXTS, [table.columns[place] for place in others])
    text = others[named or 0 : (named or 0) + 1]
    said = f"Recordings are named by '{table.columns[sound]}'"
    said += f", their texts stand in '{table.columns[text[0]]}'" if text else ""
    unused = [table.columns[place] for place in others if place not in text]
    said += f"; not used: {listed(unused)}." if unused else "."
    found = ordered(table, [sound, *text], said, COLUMNS[: 1 + len(text)])
    return found if table.root else resolved(found, 0)


def _called(names: Sequence[str], columns: Sequence[str]) -> int | None:
    lower = [name.strip().casefold() for name in columns]
    return next((lower.index(name) for name in names if name in lower), None)
