"""What every task shares that writes a text: its loss, its search, and how its outputs are scored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from unrolled.base.errors import DataError, UsageError
from unrolled.base.protocol import Loss, Stepper
from unrolled.data.parts import Part
from unrolled.search import Hypothesis, SearchSettings, decode
from unrolled.tasks.base import Carried, Task, Validation, texts_of
from unrolled.tasks.judging import RUNNING, Grouping, Judged, checked, judged, kind_of, scored, suiting
from unrolled.tasks.scores import References
from unrolled.text.tokenizer import SILENT
from unrolled.text.writing import Sides

if TYPE_CHECKING:
    from torch import nn

    from unrolled.data.batching import Pairs
    from unrolled.data.store import Encoder
    from unrolled.models import Writing

QUICK = ("bleu", "chrf", "exact_match", "cer")
"""Measures of outputs that are taken at every validation."""

VALID_OUTPUTS = 500
"""Validation rows that are written at each validation; the loss is taken over all of them."""

T = TypeVar("T", bound=Sides)


class Written(NamedTuple):
    """One hypothesis of one source, with what is needed to show where it looked."""

    text: str
    tokens: list[str]  # the target symbols as text, without the end
    hypothesis: Hypothesis
    source: Any  # what was read, as `Sides.read` gives it; of a text its symbols and their spans


class WriteTask(Task[T]):
    """A source in, a text out. Trained on the gold previous symbol (teacher forcing) unless ``sampling`` is above 0.

    ``scores`` are measures of the outputs (null: those that suit the target: sentences, symbols set apart, words).
    ``references``: each row has its own reference, or rows with the same source are ``grouped`` and the best of their
    references counts (null: sentences each, others grouped).
    """

    columns: tuple[str, ...] = ("source", "target")
    noun = "pair"
    written = ("target",)
    stop_on = "chrf"
    measures: tuple[str, ...] = ("loss", "perplexity", *QUICK)
    quick: Sequence[str] = QUICK
    """Measures of outputs that are taken at every validation."""

    def __init__(self, scores: list[str | dict[str, Any]] | None, references: Grouping | None) -> None:
        self.scores = None if scores is None else checked(scores, "task.scores")
        self.references = references
        self.measures = tuple(dict.fromkeys(["loss", "perplexity", *self.quick, *map(kind_of, self.scores or ())]))

    def source_of(self, row: Sequence[str]) -> str:
        """The source of a row of the table."""
        return row[0]

    def pairs(self, part: Part, most: int | None = None) -> tuple[list[str], list[str]]:
        """The sources and targets of the first rows, as they stand in the table."""
        rows = texts_of(part, most)
        return [self.source_of(fields) for fields in rows], [fields[-1] for fields in rows]

    def encoders(self, text: T) -> Mapping[str, Encoder]:
        return {"source": text.source, "target": text.target}

    def loss(
        self,
        network: nn.Module,
        batch: Pairs,
        smoothing: float = 0.0,
        sampling: float = 0.0,
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        source, target = batch.source, batch.target
        if target is None:
            raise DataError("the batch has no target column: there is nothing to learn from.")
        given = source.ids, source.mask, target.ids, target.mask
        total = cast("Writing", network).loss(*given, smoothing=smoothing, sampling=sampling)
        return Loss(total, int(target.mask[:, 1:].sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        """Loss and perplexity over all rows; BLEU, chrF, … of the argmax outputs of the first ones."""
        from unrolled.models.stepper import TorchStepper

        loss = self.mean_loss(given)
        rows = given.rows(VALID_OUTPUTS)
        shown = self.judged(given.text, [self.source_of(row) for row in rows], [row[-1] for row in rows])
        outputs = [""] * len(shown.sources)
        engine = TorchStepper(cast("Any", given.network), given.device)
        for line, best in self.write(engine, given.text, shown.sources, SearchSettings(kind="argmax"), sentences=128):
            outputs[line] = best[0].text if best else ""
        own = [measure for measure in self.scores or () if measure["kind"] not in self.quick]
        found = {one.name: one.value for one in scored([*self.quick, *own], outputs, shown)}
        return {"loss": loss, "perplexity": perplexity(loss), **found}

    def write(
        self,
        engine: Stepper,
        text: T,
        sources: Sequence[Any],
        search: SearchSettings,
        *,
        sentences: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> Iterator[tuple[int, list[Written]]]:
        """(number, n best outputs) of each source, longest first so that a batch holds little padding.

        A source without a position gives no hypothesis, an empty list. What a source gives does not depend on the
        others: each is searched alone within its batch, and random draws are counted from its own number.
        """
        rows = text.read(sources)
        forced = text.read_targets(sources, prefixes) if prefixes is not None else None
        lengths = [text.positions(row) for row in rows]
        order = sorted(range(len(rows)), key=lambda line: (-lengths[line], line))
        for line in [line for line in order if not lengths[line]]:
            yield line, []
        order = [line for line in order if lengths[line]]
        for start in range(0, len(order), sentences):
            batch = order[start : start + sentences]
            given, mask = text.padded([rows[line] for line in batch])
            starts = [forced[line].ids for line in batch] if forced is not None else None
            found = decode(engine, given, mask, search, prefixes=starts, numbers=batch)
            for line, hypotheses in zip(batch, found, strict=True):
                yield line, [self.surface(text, sources[line], rows[line], one, search) for one in hypotheses]

    def surface(self, text: T, given: Any, row: Any, hypothesis: Hypothesis, search: SearchSettings) -> Written:  # noqa: ARG002
        """A hypothesis as text, of the source ``given`` that was read as ``row``."""
        names = text.names(given, hypothesis.ids)
        loud = [name for name, one in zip(names, hypothesis.ids, strict=True) if one not in SILENT]
        return Written(text.target.join(loud), names, hypothesis, row)

    def judged(
        self, text: T, sources: Sequence[str], references: References, grouping: Grouping | None = None
    ) -> Judged:
        """What is scored of some rows, as ``grouping`` has it, else the task's ``references``."""
        if grouping not in (None, "each", "grouped"):
            raise UsageError(f"evaluate: references are 'each' or 'grouped', and {grouping!r} was given.")
        usual = "each" if suiting(text.target, references) is RUNNING else "grouped"
        return judged(sources, references, grouped=(grouping or self.references or usual) == "grouped")

    def suiting(self, text: T, references: References) -> Sequence[str | Mapping[str, Any]]:
        """The measures that the settings name, else those that suit."""
        return suiting(text.target, references) if self.scores is None else self.scores


def perplexity(loss: float) -> float:
    """exp(loss per symbol), infinity where it does not fit a float."""
    return math.exp(loss) if loss < 700 else math.inf
