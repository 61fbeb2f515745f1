"""The flow: text → ids → encode → step by step, attending → search → text; and back, to see where it looked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError, UsageError
from unrolled.base.protocol import END
from unrolled.base.registry import Part as Measure
from unrolled.data.parts import Part
from unrolled.pipeline import translator_tables as tables
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.pipeline.source_rows import source_lines
from unrolled.pipeline.translator_lines import Output, rounds
from unrolled.search import SearchSettings
from unrolled.tasks.judging import Grouping, checked, scored
from unrolled.tasks.translate import Translate, Translation, pairs, translate
from unrolled.text.featured import Featured
from unrolled.workshop import arguments
from unrolled.workshop.embedding import line_vectors
from unrolled.workshop.plan import Plan
from unrolled.workshop.promises import Promise, check_promises
from unrolled.workshop.seeing import Forced, Span, align, check_line, explain_translation, force, trust

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.scores import Score
    from unrolled.text.texts import TextPair

READ_BY = {"beam": "beam", "temperature": "sampling", "top_k": "sampling", "top_p": "sampling", "seed": "sampling"}
"""Settings of a search that one kind of it alone reads."""

Source = str | Sequence[str]
"""A line; where the task has features, a row of the text and these."""

TRUSTED = 50
"""Validation rows over which the faithfulness of attention is measured after training."""


@TRAINED.register("translate")
class Translator(Model):
    """A trained model that turns a text into a text: ``predict``, ``explain``, ``evaluate``, ``score``, ``align``,
    ``embed``."""

    task: Translate
    lacks = {"generate": "it writes what a source says: predict, with --search sampling for draws"}

    def __init__(self, plan: Plan, text: TextPair, network: nn.Module, *, device: str = "auto") -> None:
        from unrolled.models.stepper import TorchStepper

        super().__init__(plan, text, network, device=device)
        self.engine = TorchStepper(self.network, self.device)
        self.search = SearchSettings(**plan.settings["search"])

    # --- text to text ---------------------------------------------------------------------------------------------

    def predict(self, lines: Sequence[Source], *, beam: int | None = None, batch: int = 64) -> list[str]:
        """The best output of each line, in order; an empty line gives an empty line.

        Where the task has features a line is a row: ``("walk", "V;PST")``, or ``"walk\\tV;PST"``.
        ``beam`` overrides the saved search. The result of a line does not depend on the others.
        """
        search = self.searching(beam=beam)
        found = self.translations(lines, search, batch=batch)
        return [one[0].text if one else "" for one in found]

    def translations(
        self,
        lines: Sequence[Source],
        search: SearchSettings | None = None,
        *,
        batch: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Translation]]:
        """The n best outputs of each line with their scores and attention; [] for an empty line."""
        lines = arguments.sources("predict", "lines", lines, self.text.source)
        found: list[list[Translation]] = [[] for _ in lines]
        for line, best in self.stream(lines, search or self.search, batch=batch, prefixes=prefixes):
            found[line] = best
        return found

    def embed(self, lines: Sequence[Source]) -> np.ndarray:
        """Float32 [lines, size]: the mean of what the encoder makes of each line's places, its end among them."""
        lines = arguments.sources("embed", "lines", lines, self.text.source)
        rows = self.text.source.encode_ids(lines)
        return line_vectors(self.network, [[*row, END] for row in rows], device=self.device)

    def stream(
        self,
        lines: Sequence[str],
        search: SearchSettings,
        *,
        batch: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> Iterator[tuple[int, list[Translation]]]:
        """As ``translations``, one by one as they are found, each with the index of its line."""
        size = arguments.count("predict", "batch", batch)
        return translate(self.engine, self.text, lines, search, sentences=size, prefixes=prefixes)

    def searching(self, *, beam: int | None = None, changes: Mapping[str, Any] | None = None) -> SearchSettings:
        """The saved search with some settings changed. ``beam`` alone chooses the kind too: 1 is argmax.

        UsageError for a change that the search would not read.
        """
        changed = dict(changes or {})
        if beam is not None:
            arguments.count("predict", "beam", beam)
            changed |= {"beam": beam, "kind": changed.get("kind", "beam" if beam > 1 else "argmax")}
        if changed.get("kind") == "argmax" or "beam" in changed:
            changed.setdefault("nbest", 1)
        if changed.get("nbest", 1) > 1 and changed.get("kind", self.search.kind) == "argmax" and "kind" not in changed:
            changed["kind"] = "beam"
        search = replace(self.search, **changed)
        for name in changed:
            reader = READ_BY.get(name, search.kind)
            if reader != search.kind and not (name == "beam" and changed[name] == 1):
                raise UsageError(
                    f"predict: {name} {changed[name]} was given, and only the search '{reader}' reads it; this one is "
                    f"'{search.kind}'. Add --search {reader}, or leave it out."
                )
        return search

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, line: Source, target: str | None = None, *, trusted: bool = True) -> Explanation:
        """Which source words each target word looked at: of the model's own output, or of a given ``target``.

        ``trusted`` erases source words one by one to say how far the picture can be trusted. UsageError for a model
        without attention, DataError for an empty line.
        """
        line = self._one("explain", line)
        check_line(line)
        if target is None:
            found = self.translations([line], replace(self.search, nbest=1))[0]
            if not found or not found[0].hypothesis.ids:
                raise DataError(f"explain: the model writes nothing for {line!r}. Give the output with --target.")
            one = explain_translation(self.text, line, found[0])
        else:
            check_line(arguments.text("explain", "target", target), "target")
            one = self.align([line], [target])[0]
        return replace(one, faithfulness=trust(self.network, self.text, [one], device=self.device)) if trusted else one

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

    # --- numbers --------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        sources: Sequence[Source],
        references: Sequence[str | Sequence[str]],
        *,
        beam: int | None = None,
        scores: Sequence[Measure] | None = None,
        grouping: Grouping | None = None,
    ) -> list[Score]:
        """Scores of the model's outputs, each with its protocol: by the measures ``scores``, else the task's own.

        A source has one reference or several; ``grouping`` says whether equal sources share theirs (`Translate`).
        """
        lines = arguments.sources("evaluate", "sources", sources, self.text.source)
        several = arguments.references("evaluate", references, len(lines))
        given = self.task.judged(self.text, lines, several, grouping)
        measures = self.task.suiting(self.text, several) if scores is None else checked(scores, "evaluate")
        return scored(measures, self.predict(given.sources, beam=beam), given)

    def score(self, sources: Sequence[Source], targets: Sequence[str], *, batch: int = 64) -> list[Forced]:
        """Natural log-probability of each target symbol and the end, of each pair (forced decoding)."""
        sources, targets = arguments.pairs("score", sources, targets, read=self.text.source)
        size = arguments.count("score", "batch", batch)
        return force(self.network, self.text, sources, targets, device=self.device, batch=size)

    # --- after training -------------------------------------------------------------------------------------------

    def test(self, part: Part) -> Tested:
        sources, targets = pairs(part)
        return Tested(self.evaluate(sources, targets), len(sources))

    def promises(self, file: str | None, count: int) -> list[Promise]:
        lines = list(islice(source_lines(file, self.task), count)) if file else None
        return check_promises(self, lines, count)

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far the attention can be trusted, where there is attention."""
        sources, targets = pairs(valid, TRUSTED)
        both = [(left, right) for left, right in zip(sources, targets, strict=True) if left.strip() and right.strip()]
        try:
            pictures = self.align([left for left, _ in both], [right for _, right in both])
        except UsageError:
            return {"faithfulness": None}
        found = trust(self.network, self.text, pictures, device=self.device)
        return {"faithfulness": {name: one._asdict() for name, one in found.items()}}

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(
        self,
        file: str,
        *,
        search: str | None = None,
        beam: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        coverage_penalty: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        no_repeat_ngram: int | None = None,
        replace_unknown: bool | None = None,
        prefix: str | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        batch: int = 64,
        attention: bool = False,
    ) -> Iterator[Shown]:
        """One result a line of ``file``, in order."""
        given = {
            "kind": search, "beam": beam, "nbest": nbest, "length_penalty": length_penalty,
            "coverage_penalty": coverage_penalty, "min_length": min_length, "max_length": max_length,
            "no_repeat_ngram": no_repeat_ngram, "replace_unknown": replace_unknown, "temperature": temperature,
            "top_k": top_k, "top_p": top_p, "seed": seed,
        }  # fmt: skip
        changes = {name: value for name, value in given.items() if value is not None}
        settings = self.searching(beam=beam, changes=changes)
        output, number = Output(self.text, settings.nbest, attention=attention), 0
        for lines, prefixes in rounds(source_lines(file, self.task), prefix):
            for line, found in zip(
                lines, self.translations(lines, settings, batch=batch, prefixes=prefixes), strict=True
            ):
                yield output(number, line, found)
                number += 1

    def show_explain(
        self,
        line: str,
        *,
        target: str | None = None,
        features: list[str] | None = None,
        untrusted: bool = False,
    ) -> Explanation:
        """As ``explain``, of a line and its ``features``; ``untrusted`` leaves out how far to trust it."""
        return self.explain([line, *features] if features else line, target, trusted=not untrusted)

    def show_score(self, part: Part, *, tokens: bool = False) -> Iterator[Shown]:
        """One result a pair, then one of all."""
        sources, targets = pairs(part)
        names = (lambda row: [*self.text.target.encode(targets[row]).tokens, "</s>"]) if tokens else None
        protocol = f"{self.text.target.kind} symbols, end included, natural log"
        return tables.scored(self.score(sources, targets), names, protocol)

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
    ) -> Evaluated:
        """Scores of the outputs; of the attention against gold ``links``; against another model, by length."""
        sources, targets = pairs(part)
        given = self.task.judged(self.text, sources, targets, references)
        measures = checked(score, "--score") if score else self.task.suiting(self.text, targets)
        outputs = self.predict(given.sources, beam=beam)
        found = scored(measures, outputs, given)
        if links:
            found += tables.alignment_scores(self, sources, targets, links)
        more: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        if by_length:
            more["by_length"] = "By source length", tables.by_length(given, outputs, measures[0])
        if compare is not None:
            if not isinstance(compare, Translator):
                raise UsageError(f"evaluate: --compare is a model of the task '{compare.kind}', this one translates.")
            rows = tables.compared(outputs, compare.predict(given.sources, beam=beam), given, measures)
            more["compare"] = "Against the other: paired bootstrap, 95 % interval", rows
        return Evaluated(found, len(sources), tables=more)
