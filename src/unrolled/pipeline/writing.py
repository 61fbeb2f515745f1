"""A trained model that writes a text of what it reads: search, scores and log-probabilities, whatever the source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, cast

from unrolled.base.errors import UsageError
from unrolled.base.protocol import Stepper
from unrolled.base.registry import Part as Measure
from unrolled.data.parts import Part
from unrolled.pipeline import translator_tables as tables
from unrolled.pipeline.model import Evaluated, Model, Shown, Tested
from unrolled.pipeline.searched import searched
from unrolled.pipeline.written_lines import Output, rounds
from unrolled.search import Ensemble, SearchSettings, Unlent
from unrolled.tasks.judging import Grouping, Judged, checked, scored
from unrolled.tasks.writing import WriteTask, Written
from unrolled.workshop import arguments
from unrolled.workshop.embedding import line_vectors
from unrolled.workshop.plan import Plan
from unrolled.workshop.promises import Promise, check_promises
from unrolled.workshop.seeing import Forced, force

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from unrolled.tasks.scores import Score
    from unrolled.text.base import Text
    from unrolled.text.writing import Sides


class Writer(Model):
    """A `Model` of a `WriteTask`: ``predict``, ``evaluate``, ``score``, ``embed`` of sources of any kind."""

    task: WriteTask[Any]

    def __init__(self, plan: Plan, text: Text, network: nn.Module, *, device: str = "auto") -> None:
        from unrolled.models.stepper import TorchStepper

        super().__init__(plan, text, network, device=device)
        self.engine: Stepper = TorchStepper(self.network, self.device, trained=True)
        self.searched: Sides = self.text  # what the engine's symbols are, of an ensemble with those that others lend
        self.search = SearchSettings(**plan.settings["search"])

    # --- what a class of its own gives ----------------------------------------------------------------------------

    @abstractmethod
    def sources(self, verb: str, name: str, given: Any) -> list[Any]:
        """What the user gave as sources, as `Sides.read` takes them; UsageError for anything else."""

    @abstractmethod
    def sources_in(self, file: str) -> Iterator[Any]:
        """The sources in a file, one after the other."""

    @abstractmethod
    def looked(self, source: Any, one: Written) -> dict[str, Any]:
        """Where an output looked, as JSON; UsageError for a model without attention."""

    @abstractmethod
    def made_up(self, count: int) -> list[Any]:
        """Sources to check promises on where no file is given."""

    @abstractmethod
    def longer(self, source: Any) -> Any:
        """A source that is about four times as long."""

    def remarks(self, source: Any) -> tuple[str, ...]:  # noqa: ARG002
        """What to say of a source: nothing."""
        return ()

    def pairs(self, part: Part) -> tuple[list[str], list[str]]:
        """The sources and targets of a table; DataError with the line of one that cannot be read."""
        return self.task.pairs(part)

    # --- source to text -------------------------------------------------------------------------------------------

    def predict(self, sources: Sequence[Any], *, beam: int | None = None, batch: int = 64) -> list[str]:
        """The best output of each source, in order; an empty source gives an empty text.

        ``beam`` overrides the saved search. The result of a source does not depend on the others.
        """
        search = self.searching(beam=beam)
        found = self.translations(sources, search, batch=batch)
        return [one[0].text if one else "" for one in found]

    def translations(
        self,
        lines: Sequence[Any],
        search: SearchSettings | None = None,
        *,
        batch: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Written]]:
        """The n best outputs of each line with their scores and attention; [] for an empty line."""
        lines = self.sources("predict", "lines", lines)
        found: list[list[Written]] = [[] for _ in lines]
        for line, best in self.stream(lines, search or self.search, batch=batch, prefixes=prefixes):
            found[line] = best
        return found

    def embed(self, sources: Sequence[Any]) -> np.ndarray:
        """Float32 [sources, size]: the mean of what the encoder makes of each source's places (of a text, its end
        among them)."""
        rows = self.text.read(self.sources("embed", "sources", sources))
        return line_vectors(
            self.network, rows, device=self.device, padded=self.text.padded, positions=self.text.positions
        )

    def stream(
        self,
        lines: Sequence[Any],
        search: SearchSettings,
        *,
        batch: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> Iterator[tuple[int, list[Written]]]:
        """As ``translations``, one by one as they are found, each with the index of its line."""
        size = arguments.count("predict", "batch", batch)
        return self.task.write(self.engine, self.searched, lines, search, sentences=size, prefixes=prefixes)

    def joined(self, others: Sequence[Model]) -> Self:
        """This model with the mean of what it and ``others`` hold probable in the place of its own probabilities.

        They read and write the same symbols: trained on the same table, with other seeds or networks. What ``predict``
        and ``evaluate`` say is then that of all; ``score``, ``embed`` and ``explain`` stay this model's. UsageError for
        others.
        """
        for one in others:
            if not isinstance(one, Writer) or one.text.vocabulary_fingerprint() != self.text.vocabulary_fingerprint():
                kind = "" if one.kind == self.kind else f" (task '{one.kind}', not '{self.kind}')"
                raise UsageError(
                    f"ensemble: a model of other symbols was given{kind}. Give models that were trained on the same "
                    "table with the same settings of text."
                )
        if not others:
            return self
        all_: list[Writer] = [self, *cast("Sequence[Writer]", others)]
        found = copy(self)
        found.searched = max((one.searched for one in all_), key=lambda text: text.lends)
        found.engine = Ensemble([one._reading(found.searched) for one in all_])
        return found

    def _reading(self, text: Sides) -> Stepper:
        """The engine, for sources as ``text`` reads them, of the same vocabulary, which may lend more symbols."""
        own = self.searched.lends
        first = self.text.source.vocabulary_size + own
        return Unlent(self.engine, first, text.lends - own) if text.lends > own else self.engine

    def alongside(self, ensemble: Sequence[Model] | None, precision: str) -> Self:
        """This model `joined` with others, all of them `computing` in one precision."""
        return self.computing(precision).joined([one.computing(precision) for one in ensemble or ()])

    def searching(self, *, beam: int | None = None, changes: Mapping[str, Any] | None = None) -> SearchSettings:
        """The saved search with some settings changed. ``beam`` alone chooses the kind too: 1 is argmax.

        UsageError for a change that the search would not read.
        """
        given = dict(changes or {})
        if beam is not None:
            given["beam"] = arguments.count("predict", "beam", beam)
        return searched(self.search, given)

    def say_if_empty(self, output: str) -> None:
        """What to say beside an explanation of an ``output`` without words."""
        if not output.strip():
            self.asides.append("the model writes nothing here, so there is little to show. Another output: --target")

    # --- numbers --------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        sources: Sequence[Any],
        references: Sequence[str | Sequence[str]],
        *,
        beam: int | None = None,
        scores: Sequence[Measure] | None = None,
        grouping: Grouping | None = None,
    ) -> list[Score]:
        """Scores of the model's outputs, each with its protocol: by the measures ``scores``, else the task's own.

        A source has one reference or several; ``grouping`` says whether equal sources share theirs (`WriteTask`).
        """
        lines = self.sources("evaluate", "sources", sources)
        several = arguments.references("evaluate", references, len(lines))
        given = self.task.judged(self.text, lines, several, grouping)
        measures = self.task.suiting(self.text, several) if scores is None else checked(scores, "evaluate")
        return scored(measures, self.predict(given.sources, beam=beam), given)

    def score(self, sources: Sequence[Any], targets: Sequence[str], *, batch: int = 64) -> list[Forced]:
        """Natural log-probability of each target symbol and the end, of each pair (forced decoding)."""
        left, right = self.sources("score", "sources", sources), arguments.texts("score", "targets", targets)
        if len(left) != len(right):
            raise UsageError(f"score: {len(left)} sources and {len(right)} targets; give as many of both.")
        size = arguments.count("score", "batch", batch)
        return force(self.network, self.text, left, right, device=self.device, batch=size)

    # --- after training -------------------------------------------------------------------------------------------

    def test(self, part: Part) -> Tested:
        sources, targets = self.pairs(part)
        return Tested(self.evaluate(sources, targets), len(sources))

    def promises(self, file: str | None, count: int) -> list[Promise]:
        return check_promises(self, list(islice(self.sources_in(file), count)) if file else self.made_up(count))

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
        ensemble: Sequence[Model] | None = None,
        precision: str = "float32",
    ) -> Iterator[Shown]:
        """One result a source in ``file``, in order; ``ensemble``: of this model `joined` with others, all `computing`
        in that ``precision``."""
        model = self.alongside(ensemble, precision)
        given = {
            "kind": search, "beam": beam, "nbest": nbest, "length_penalty": length_penalty,
            "coverage_penalty": coverage_penalty, "min_length": min_length, "max_length": max_length,
            "no_repeat_ngram": no_repeat_ngram, "replace_unknown": replace_unknown, "temperature": temperature,
            "top_k": top_k, "top_p": top_p, "seed": seed,
        }  # fmt: skip
        changes = {name: value for name, value in given.items() if value is not None}
        settings = self.searching(beam=beam, changes=changes)
        output, number = Output(self, settings.nbest, attention=attention), 0
        for lines, prefixes in rounds(self.sources_in(file), prefix):
            begun: Sequence[str | None] = prefixes or [None] * len(lines)
            every = model.translations(lines, settings, batch=batch, prefixes=prefixes)
            for line, found, first in zip(lines, every, begun, strict=True):
                yield output(number, line, found, first)
                number += 1

    def show_score(self, part: Part, *, tokens: bool = False) -> Iterator[Shown]:
        """One result a pair, then one of all."""
        sources, targets = self.pairs(part)

        def symbols(row: int) -> list[str]:
            (read,) = self.text.read_targets([sources[row]], [targets[row]])
            return [*self.text.names(sources[row], read.ids), "</s>"]

        protocol = f"{self.text.target.kind} symbols, end included, natural log"
        return tables.scored(self.score(sources, targets), symbols if tokens else None, protocol)

    def show_evaluate(
        self,
        part: Part,
        *,
        beam: int | None = None,
        compare: Model | None = None,
        score: list[str] | None = None,
        references: Grouping | None = None,
        ensemble: Sequence[Model] | None = None,
        precision: str = "float32",
    ) -> Evaluated:
        """Scores of the outputs; against another model; ``ensemble``: of this model `joined` with others, all
        `computing` in that ``precision``, the one to ``compare`` as it is."""
        model = self.alongside(ensemble, precision)
        return model.judged(part, beam=beam, compare=compare, score=score, references=references)[0]

    def judged(
        self,
        part: Part,
        *,
        beam: int | None,
        compare: Model | None,
        score: list[str] | None,
        references: Grouping | None,
    ) -> tuple[Evaluated, Judged, list[str]]:
        """What `show_evaluate` shows, what was scored, and its outputs."""
        sources, targets = self.pairs(part)
        given = self.task.judged(self.text, sources, targets, references)
        measures = checked(score, "--score") if score else self.task.suiting(self.text, targets)
        outputs = self.predict(given.sources, beam=beam)
        more: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        if compare is not None:
            if not isinstance(compare, Writer) or compare.kind != self.kind:
                raise UsageError(
                    f"evaluate: --compare is a model of the task '{compare.kind}', this one of '{self.kind}'."
                )
            rows = tables.compared(outputs, compare.predict(given.sources, beam=beam), given, measures)
            more["compare"] = "Against the other: paired bootstrap, 95 % interval", rows
        return Evaluated(scored(measures, outputs, given), len(sources), tables=more), given, outputs
