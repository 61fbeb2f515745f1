"""The flow: text → ids → encode → step by step, attending → search → text; and back, to see where it looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError, UsageError
from unrolled.data.parts import Part
from unrolled.pipeline import translator_tables as tables
from unrolled.pipeline.model import TRAINED, Evaluated, Model
from unrolled.pipeline.source_rows import source_lines
from unrolled.pipeline.writing import Writer
from unrolled.tasks.judging import Grouping, checked
from unrolled.tasks.translate import Translate
from unrolled.tasks.writing import Written
from unrolled.text.featured import Featured
from unrolled.workshop import arguments
from unrolled.workshop.promises import longer_line, random_lines
from unrolled.workshop.seeing import Span, align, check_line, explain_translation, trust

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation

Source = str | Sequence[str]
"""A line; where the task has features, a row of the text and these."""

TRUSTED = 50
"""Validation rows over which the faithfulness of attention is measured after training."""


@TRAINED.register("translate")
class Translator(Writer):
    """A trained model that turns a text into a text: ``predict``, ``explain``, ``evaluate``, ``score``, ``align``,
    ``embed``."""

    task: Translate
    lacks = {"generate": "it writes what a source says: predict, with --search sampling for draws"}

    # --- text to text ---------------------------------------------------------------------------------------------

    def sources(self, verb: str, name: str, given: Any) -> list[Any]:
        """Lines; where the task has features also rows: ``("walk", "V;PST")``, or ``"walk\\tV;PST"``."""
        return arguments.sources(verb, name, given, self.text.source)

    def sources_in(self, file: str) -> Iterator[str]:
        return source_lines(file, self.task)

    def looked(self, source: Any, one: Written) -> dict[str, Any]:
        picture = explain_translation(self.text, source, one)
        return {
            "source": list(picture.source),
            "target": list(picture.target),
            "weights": [[round(float(value), 5) for value in row] for row in picture.weights],
        }

    def made_up(self, count: int) -> list[Any]:
        return random_lines(self, count)

    def longer(self, source: Any) -> str:
        return longer_line(self, source)

    def remarks(self, source: Any) -> tuple[str, ...]:
        """What to say of features that no training row had."""
        if not isinstance(self.text.source, Featured):
            return ()
        return tuple(
            f"the feature {name!r} was in no training row: it is read as unknown"
            for name in self.text.source.unseen(source)
        )

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, line: Source, target: str | None = None, *, trusted: bool = True) -> Explanation:
        """Which source words each target word looked at: of the model's own output, or of a given ``target``.

        ``trusted`` erases source words one by one to say how far the picture can be trusted. An output without words
        has no rows, and nothing to trust. UsageError for a model without attention, DataError for an empty line.
        """
        line = self._one("explain", line)
        check_line(line)
        found: list[Written] | None = None
        if target is None:
            found = self.translations([line], replace(self.search, nbest=1))[0]
            if not found:
                raise DataError(f"explain: {line!r} has no text beside its features. Give a sentence.")
            one = explain_translation(self.text, line, found[0])
        else:
            check_line(arguments.text("explain", "target", target), "target")
            one = self.align([line], [target])[0]
        if not trusted or not one.target:
            return one
        faith = trust(self.network, self.text, [one], written=found and found[:1], device=self.device)
        return replace(one, faithfulness=faith)

    def _one(self, verb: str, line: Source) -> str:
        """One source as a line."""
        if isinstance(self.text.source, Featured):
            return arguments.sources(verb, "line", [line], self.text.source)[0]
        if not isinstance(line, str) and isinstance(line, Sequence):
            raise UsageError(f"{verb}: features were given beside the text, and this model was trained without any.")
        return arguments.text(verb, "line", line)

    def align(
        self,
        sources: Sequence[Source],
        targets: Sequence[str],
        source_words: Sequence[Sequence[Span]] | None = None,
        target_words: Sequence[Sequence[Span]] | None = None,
        *,
        read_at: int = 0,
    ) -> list[Explanation]:
        """Attention over given pairs (forced decoding), on words given by their spans or the tokenizer's own."""
        sources, targets = arguments.pairs("align", sources, targets, read=self.text.source)
        return align(
            self.network,
            self.text,
            sources,
            targets,
            source_words=source_words,
            target_words=target_words,
            read_at=read_at,
            device=self.device,
        )

    # --- after training -------------------------------------------------------------------------------------------

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far the attention can be trusted, where there is attention."""
        sources, targets = self.task.pairs(valid, TRUSTED)
        both = [(left, right) for left, right in zip(sources, targets, strict=True) if left.strip() and right.strip()]
        try:
            pictures = self.align([left for left, _ in both], [right for _, right in both])
        except UsageError:
            return {"faithfulness": None}
        found = trust(self.network, self.text, pictures, device=self.device)
        return {"faithfulness": {name: one._asdict() for name, one in found.items()}}

    # --- on the command line --------------------------------------------------------------------------------------

    def show_explain(
        self,
        line: str,
        *,
        target: str | None = None,
        features: list[str] | None = None,
        untrusted: bool = False,
    ) -> Explanation:
        """As ``explain``, of a line and its ``features``; ``untrusted`` leaves out how far to trust it."""
        wanted = len(self.text.source.features) if isinstance(self.text.source, Featured) else 0
        if wanted and "\t" not in line and len(features or ()) != wanted:
            raise UsageError(
                f"explain: the model reads {wanted} column{'s' * (wanted > 1)} of features beside the text, and "
                f"{len(features or ())} were given. Give --features once for each."
            )
        given: Source = [line, *features] if features else line
        self.asides += self.remarks(self._one("explain", given))
        found = self.explain(given, target, trusted=not untrusted)
        self.say_if_empty(found.target_text)
        return found

    def show_evaluate(
        self,
        part: Part,
        *,
        beam: int | None = None,
        links: str | None = None,
        compare: Model | None = None,
        by_length: bool = False,
        score: list[str] | None = None,
        references: Grouping | None = None,
        ensemble: Sequence[Model] | None = None,
        precision: str = "float32",
    ) -> Evaluated:
        """Scores of the outputs; of the attention against gold ``links``; against another model, by length.

        ``ensemble``: of this model `joined` with others, all `computing` in that ``precision``; alignments are its own,
        and the model to ``compare`` is as it is.
        """
        model = self.alongside(ensemble, precision)
        found, given, outputs = model.judged(part, beam=beam, compare=compare, score=score, references=references)
        more = dict(found.tables)
        if by_length:
            first = checked(score, "--score")[0] if score else self.task.suiting(self.text, given.references)[0]
            more["by_length"] = "By source length", tables.by_length(given, outputs, first)
        extra = tables.alignment_scores(self, *self.pairs(part), links) if links else []
        return found._replace(scores=[*found.scores, *extra], tables=more)
