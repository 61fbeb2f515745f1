"""Sequence to sequence: a source text in, a target text out (translation, transliteration, g2p, inflection, …)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.base.protocol import END, PAD, Loss, Stepper
from unrolled.base.settings import Tree
from unrolled.data.parts import Part
from unrolled.data.table import Table
from unrolled.search import Hypothesis, SearchSettings, decode, replace_unknown
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Validation, texts_of
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.feature_columns import Column, columns_of, guess
from unrolled.tasks.judging import RUNNING, Grouping, Judged, checked, judged, kind_of, scored, suiting
from unrolled.tasks.scores import References
from unrolled.tasks.sizing import size_columns
from unrolled.text.featured import Featured, joined
from unrolled.text.texts import TextPair

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from unrolled.data.batching import Pairs
    from unrolled.data.store import Encoder, Store
    from unrolled.models import Seq2Seq
    from unrolled.text.tokenizer import Encoded

QUICK = ("bleu", "chrf", "exact_match", "cer")
"""Measures of outputs that are taken at every validation."""


VALID_OUTPUTS = 500
"""Validation rows that are translated at each validation; the loss is taken over all of them."""


class Translation(NamedTuple):
    """One hypothesis of one line, with what is needed to show where it looked."""

    text: str
    tokens: list[str]  # the target symbols as text, without the end
    hypothesis: Hypothesis
    source: Encoded  # the source's symbols and their spans in the given line


@TASKS.register("translate")
class Translate(Task[TextPair]):
    """Pairs of texts. Trained on the gold previous symbol (teacher forcing) unless ``sampling`` is above 0.

    ``features`` is a column or several, by name or 1-based number, of what is known of a source beside its text: tags,
    a language, a style. They are read in front of it, in vocabularies of their own (``text.features``).

    ``scores`` are measures of the outputs (null: those that suit the target: sentences, symbols set apart, words).
    ``references``: each row has its own reference, or rows with the same source are ``grouped`` and the best of their
    references counts (null: sentences each, others grouped).
    """

    columns: tuple[str, ...] = ("source", "target")
    noun = "pair"
    text = TextPair
    read_by = {"source": "text.source", "target": "text.target"}
    embedded = {"source": "source_embedding", "target": "target_embedding"}
    contextual = {"text.source": "source_embedding"}
    written = ("target",)
    models = ("seq2seq",)
    preset = "default"
    stop_on = "chrf"
    measures: tuple[str, ...] = ("loss", "perplexity", *QUICK)
    unsized = {"text": {"source": {"kind": "bpe"}, "target": {"kind": "bpe"}}}
    instead = ", or give parallel files with --source and --target"
    manual = Manual(
        commands=("unrolled predict {} lines.txt", "unrolled evaluate {} pairs.tsv"),
        attending=("unrolled explain {} 'one line' --to picture.svg",),
        python="predict(['one line'])",
        tags=("sequence-to-sequence", "rnn"),
        pipeline="translation",
    )

    def __init__(
        self,
        *,
        features: Column | list[Column] | None = None,
        scores: list[str | dict[str, Any]] | None = None,
        references: Grouping | None = None,
    ) -> None:
        self.scores = None if scores is None else checked(scores, "task.scores")
        self.references = references
        self.measures = tuple(dict.fromkeys([*Translate.measures, *map(kind_of, self.scores or ())]))
        given = features if isinstance(features, list) else [] if features is None else [features]
        self.features = tuple(given)
        names = tuple(one if isinstance(one, str) else f"features {one}" for one in self.features)
        self.columns = ("source", *names, "target")
        if names:
            self.manual = _with_features(Translate.manual, len(names))

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        found = guess(table)
        if found is None:
            return {}, []
        column, sentence = found
        return {"task": {"features": [column]}}, [
            f"{sentence} (task.features; to read none: --set task.features=null)."
        ]

    def named(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        return columns_of(self.features, columns) if self.features else super().named(columns)

    def picked(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        return columns_of(self.features, columns) if self.features else None

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        if settings["text"]["source"]["kind"] == "contextual":
            for name, given in (("model.copy", settings["model"].get("copy")), ("task.features", self.features)):
                if given:
                    raise SettingsError(
                        f"[{name}] {given} was given, and contextual vectors are of words spelled out: there is "
                        "neither a symbol to copy nor one for a feature. Leave it out, or take another tokenizer."
                    )
        if settings["model"].get("tie") == "all" and not settings["text"]["joint"]:
            raise SettingsError(
                "[model.tie] 'all' needs one vocabulary for both sides. Set text.joint to true, or tie 'decoder'."
            )

    def size(self, part: Part) -> Sized:
        return size_columns(part, {"text.source": 0, "text.target": len(self.columns) - 1})

    def encoders(self, text: TextPair) -> dict[str, Encoder]:
        return {"source": text.source, "target": text.target}

    def store(self, folder: Path, part: Part, text: TextPair, mark: str) -> Store:
        from unrolled.data.store import Store

        def rows() -> Iterator[tuple[int, tuple[str, str]]]:
            return ((row.place, (joined(row.fields[:-1]), row.fields[-1])) for row in part.rows())

        return Store.encode(folder, rows, self.encoders(text), fingerprint=mark, name=str(part.table.path))

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.batching import collate_pairs

        return bucketed(store, settings, train=train, name=name, specials=(1, 2), collate=collate_pairs)

    def network(self, settings: Mapping[str, Any], text: TextPair) -> nn.Module:
        from unrolled.models import MODELS, Seq2Seq

        beside = [text.source.features_size] if isinstance(text.source, Featured) else []
        sizes = text.plain.vocabulary_size, text.target.vocabulary_size, *beside
        model = MODELS.build(settings, *sizes, where="model")
        if isinstance(model, Seq2Seq) and model.pointer is not None:
            model.pointer.point(copied_as(text))
        if isinstance(model, Seq2Seq) and model.feature_embedding is not None and isinstance(text.source, Featured):
            model.feature_embedding.weight.data[text.source.unknown_features()] = 0.0
        return model

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:
        from unrolled.models import MODELS

        if settings["text"]["joint"] or settings["model"].get("tie") == "all":
            target = source
        model = MODELS.build(settings["model"], source, target, where="model")
        return model, f"{source:,} source and {target:,} target symbols"

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
        total = cast("Seq2Seq", network).loss(*given, smoothing=smoothing, sampling=sampling)
        return Loss(total, int(target.mask[:, 1:].sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        """Loss and perplexity over all rows; BLEU, chrF, … of the argmax outputs of the first ones."""
        from unrolled.models.stepper import TorchStepper

        loss = self.mean_loss(given)
        rows = given.rows(VALID_OUTPUTS)
        shown = self.judged(given.text, [joined(row[:-1]) for row in rows], [row[-1] for row in rows])
        outputs = [""] * len(shown.sources)
        engine = TorchStepper(cast("Any", given.network), given.device)
        for line, best in translate(engine, given.text, shown.sources, SearchSettings(kind="argmax"), sentences=128):
            outputs[line] = best[0].text if best else ""
        own = [measure for measure in self.scores or () if measure["kind"] not in QUICK]
        found = {one.name: one.value for one in scored([*QUICK, *own], outputs, shown)}
        return {"loss": loss, "perplexity": perplexity(loss), **found}

    def judged(
        self, text: TextPair, sources: Sequence[str], references: References, grouping: Grouping | None = None
    ) -> Judged:
        """What is scored of some rows, as ``grouping`` has it, else the task's ``references``."""
        if grouping not in (None, "each", "grouped"):
            raise UsageError(f"evaluate: references are 'each' or 'grouped', and {grouping!r} was given.")
        usual = "each" if suiting(text.target, references) is RUNNING else "grouped"
        return judged(sources, references, grouped=(grouping or self.references or usual) == "grouped")

    def suiting(self, text: TextPair, references: References) -> Sequence[str | Mapping[str, Any]]:
        """The measures that the settings name, else those that suit."""
        return suiting(text.target, references) if self.scores is None else self.scores


def _with_features(manual: Manual, columns: int) -> Manual:
    """How a model is used whose sources have so many columns of features."""
    commands = tuple(command.replace("lines.txt", "table.tsv") for command in manual.commands)
    beside = " --features 'A;B'" * columns
    attending = tuple(command.replace(" --to", f"{beside} --to") for command in manual.attending)
    row = ", ".join(["'one line'", *["'A;B'"] * columns])
    return manual._replace(commands=commands, attending=attending, python=f"predict([({row})])")


def pairs(part: Part, most: int | None = None) -> tuple[list[str], list[str]]:
    """The sources (with their features) and targets of the first rows, as text."""
    rows = texts_of(part, most)
    return [joined(fields[:-1]) for fields in rows], [fields[-1] for fields in rows]


def copied_as(text: TextPair) -> list[int]:
    """The target symbol that each source symbol is copied as: the one that is written alike, UNKNOWN without one, PAD
    for a feature, which is no part of the text."""
    aside = text.source.vocabulary_size - text.plain.vocabulary_size
    return [*(text.target.id_of(symbol) for symbol in text.plain.vocabulary), *[PAD] * aside]


def translate(
    engine: Stepper,
    text: TextPair,
    lines: Sequence[str],
    search: SearchSettings,
    *,
    sentences: int = 64,
    prefixes: Sequence[str] | None = None,
) -> Iterator[tuple[int, list[Translation]]]:
    """(line number, n best translations) of each line, longest first so that a batch holds little padding.

    A line without symbols gives no hypothesis, an empty list. What a line gives does not depend on the others: each is
    searched alone within its batch, and random draws are counted from its own number.
    """
    sources = text.source.encode_batch(list(lines))
    forced = text.target.encode_batch(list(prefixes)) if prefixes is not None else None
    order = sorted(range(len(lines)), key=lambda line: (-len(sources[line].ids), line))
    for line in [line for line in order if not sources[line].ids]:
        yield line, []
    order = [line for line in order if sources[line].ids]
    for start in range(0, len(order), sentences):
        batch = order[start : start + sentences]
        ids, mask = pad([[*sources[line].ids, END] for line in batch])
        starts = [forced[line].ids for line in batch] if forced is not None else None
        found = decode(engine, ids, mask, search, prefixes=starts, numbers=batch)
        for line, hypotheses in zip(batch, found, strict=True):
            yield line, [surface(text, lines[line], sources[line], one, search) for one in hypotheses]


def surface(text: TextPair, line: str, source: Encoded, hypothesis: Hypothesis, search: SearchSettings) -> Translation:
    """A hypothesis as text; an unknown symbol becomes the most attended source word where the settings ask for it."""
    tokens = text.target.tokens(hypothesis.ids)
    if search.replace_unknown and hypothesis.weights is not None:
        words = text.source.pieces(line)
        owner = [_word_at(words, span) for span in source.spans]
        surfaces = [text.target.standing_in(line[slice(*words[word])]) if word is not None else "" for word in owner]
        looked = hypothesis.weights[:, : len(surfaces)]
        if isinstance(text.source, Featured):
            looked = np.where(np.array(source.ids) >= text.source.border, 0.0, looked)
        replaced = replace_unknown(tokens, looked, surfaces)
        return Translation(text.target.join(replaced), replaced, hypothesis, source)
    return Translation(text.target.decode(hypothesis.ids), tokens, hypothesis, source)


def _word_at(words: Sequence[tuple[int, int]], span: tuple[int, int]) -> int | None:
    """The word that holds most of ``span``."""
    overlaps = [min(end, span[1]) - max(start, span[0]) for start, end in words]
    best = max(range(len(words)), key=lambda index: (overlaps[index], -index), default=None)
    return best if best is not None and overlaps[best] > 0 else None


def pad(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids as int64 [rows, longest] filled with PAD (0), and their mask, True = real."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]) if len(rows) else 0
    return ids, mask


def perplexity(loss: float) -> float:
    """exp(loss per symbol), infinity where it does not fit a float."""
    return math.exp(loss) if loss < 700 else math.inf
