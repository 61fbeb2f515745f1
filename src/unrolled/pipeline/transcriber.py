"""A trained model of speech: what is said in a recording, and when each symbol of it was heard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.parts import Part
from unrolled.data.signals import arranged
from unrolled.pipeline.describing import Describer
from unrolled.pipeline.given_files import checked, frames_of, random_frames, recordings_in, sequences_in, tones
from unrolled.pipeline.model import TRAINED
from unrolled.pipeline.numbered import Named, nth
from unrolled.tasks.speech import Speech
from unrolled.text.readers import Framed
from unrolled.workshop import arguments
from unrolled.workshop.hearing import trust
from unrolled.workshop.seeing import NO_ATTENTION

if TYPE_CHECKING:
    from unrolled.explain.listening import Listening

TRUSTED = 20
"""Validation recordings over which the faithfulness of attention is measured after training."""


@TRAINED.register("speech")
class Transcriber(Describer):
    """A trained model that writes down recordings: ``predict``, ``explain``, ``evaluate``, ``score``, ``embed``.

    A recording is a path, or an array [samples] at the model's rate: numbers from -1 to 1, or whole ones of 16 bits. A
    model of frames (``text.source: {kind: frames}``) reads arrays [time, channels].
    """

    task: Speech
    noun = "recording"
    lacks = {"generate": "it writes what is said in a recording: predict, with --search sampling for draws"}

    # --- what is read ---------------------------------------------------------------------------------------------

    def sources_in(self, file: str) -> Iterator[Any]:
        """The recordings of a folder or a table, or the one that ``file`` is."""
        if self.framed:
            return sequences_in(file, self.task.adapt, self.text.source)
        return recordings_in(file, self.task.adapt, self.text.source)

    @property
    def framed(self) -> bool:
        """Whether it reads frames that the user gives, and no recordings."""
        return isinstance(self.text.source, Framed)

    def made_up(self, count: int) -> list[Any]:
        """Tones of 0.1 to 1 seconds that change their pitch, or frames of noise, seed 1."""
        return list((random_frames if self.framed else tones)(self.text.source, count))

    def longer(self, source: Any) -> Any:
        reader = self.text.source
        return np.tile(reader.frames(source), (4, 1)) if self.framed else np.tile(reader.samples(source), 4)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, recording: Any, target: str | None = None, *, trusted: bool = True) -> Listening:
        """When each symbol of the model's output, or of a given ``target``, was heard, over the spectrogram.

        ``trusted`` takes stretches out one by one to say how far the picture can be trusted. UsageError for a model
        without attention. An output without symbols has no rows, and nothing to trust.
        """
        from unrolled.explain.listening import Listening

        (source,) = self.sources("explain", "recording", [recording])
        reader = self.text.source
        frames = reader.scaled(source)
        if target is None:
            found = self.translations([source], replace(self.search, nbest=1))[0]
            target, ids, tokens = found[0].text, found[0].hypothesis.ids, found[0].tokens
            weights, said = found[0].hypothesis.weights, list(found[0].hypothesis.token_log_probs)
        else:
            encoded = self.text.target.encode(arguments.text("explain", "target", target))
            if not encoded.ids:
                raise DataError("explain: the target is empty. Give what is said.")
            forced = self.score([source], [target])[0]
            ids, tokens = encoded.ids, list(encoded.tokens)
            weights, said = forced.weights, forced.log_probs.tolist()
        if weights is None:
            raise UsageError(NO_ATTENTION)
        rows, trusted = np.asarray(weights, np.float32)[: len(ids), : len(frames)], trusted and len(ids) > 0
        return Listening(
            bands=reader.frames(source if self.framed else reader.samples(source)),
            pitches=np.arange(1, reader.given + 1) if self.framed else reader.pitches(),
            step=reader.step,
            seconds=not self.framed,
            symbols=tuple(tokens),
            weights=rows,
            log_probs=said[: len(ids)],
            said=target,
            faithfulness=trust(self.network, self.text, [(frames, ids, rows)], device=self.device) if trusted else None,
        )

    # --- after training -------------------------------------------------------------------------------------------

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far the attention can be trusted, where there is attention."""
        sources, targets = self.task.pairs(valid, TRUSTED)
        forced = self.score(sources, targets)
        heard = []
        for source, text, one in zip(sources, targets, forced, strict=True):
            if one.weights is None:
                return {"faithfulness": None}
            frames, ids = self.text.source.scaled(source), self.text.target.encode(text).ids
            heard.append((frames, ids, one.weights[: len(ids)]))
        found = trust(self.network, self.text, heard, device=self.device)
        return {"faithfulness": {name: one._asdict() for name, one in found.items()}}

    # --- on the command line --------------------------------------------------------------------------------------

    def show_explain(self, line: str, *, target: str | None = None, untrusted: bool = False) -> Listening:
        """``line`` is a recording, or a table or folder and after a # the number of the row in it: ``files.tsv#3``."""
        source = nth("explain", line, Named("recording", "recordings.tsv"), self.sources_in, self.asides)
        found = self.explain(source, target, trusted=not untrusted)
        self.say_if_empty(found.target_text)
        return found

    def pairs(self, part: Part) -> tuple[list[str], list[str]]:
        reader = self.text.source
        if self.framed:
            part = part._replace(table=arranged(part.table, reader.names))
        for row in part.rows():
            if self.framed:
                frames_of(str(part.table.path), row, reader)
            else:
                checked(part.table.place(row.place, part.pick[0]), row.fields[0], reader)
        return super().pairs(part)
