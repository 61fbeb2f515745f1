"""Sequence to sequence: a source text in, a target text out (translation, transliteration, g2p, inflection, …)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import PAD
from unrolled.base.settings import Tree
from unrolled.data.parts import Part
from unrolled.data.table import Table
from unrolled.search import Hypothesis, SearchSettings, looked_at
from unrolled.tasks.base import TASKS, Batches, Manual, Sized
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.feature_columns import Column, columns_of, guess
from unrolled.tasks.judging import Grouping
from unrolled.tasks.sizing import size_columns
from unrolled.tasks.writing import WriteTask, Written
from unrolled.text.featured import Featured, joined
from unrolled.text.lending import LENT, Given
from unrolled.text.spacing import behind
from unrolled.text.texts import TextPair

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from unrolled.data.store import Encoder, Store
    from unrolled.text.tokenizer import Encoded


@TASKS.register("translate")
class Translate(WriteTask[TextPair]):
    """Pairs of texts. Trained on the gold previous symbol (teacher forcing) unless ``sampling`` is above 0.

    ``features`` is a column or several, by name or 1-based number, of what is known of a source beside its text: tags,
    a language, a style. They are read in front of it, in vocabularies of their own (``text.features``).

    ``scores`` are measures of the outputs (null: those that suit the target: sentences, symbols set apart, words).
    ``references``: each row has its own reference, or rows with the same source are ``grouped`` and the best of their
    references counts (null: sentences each, others grouped).
    """

    text = TextPair
    read_by = {"source": "text.source", "target": "text.target"}
    embedded = {"source": "source_embedding", "target": "target_embedding"}
    contextual = {"text.source": "source_embedding"}
    models = ("seq2seq",)
    preset = "default"
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
        super().__init__(scores, references)
        self.copies = False
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

    def heed(self, settings: Mapping[str, Any]) -> None:
        self.copies = bool(settings["model"].get("copy"))

    def learn(self, settings: Mapping[str, Any], part: Part) -> TextPair:
        text = super().learn(settings, part)
        text.lends = LENT if self.copies else 0
        return text

    def source_of(self, row: Sequence[str]) -> str:
        """The text, and the features behind it."""
        return joined(row[:-1])

    def store(self, folder: Path, part: Part, text: TextPair, mark: str) -> Store:
        from unrolled.data.store import Store

        def rows() -> Iterator[tuple[int, tuple[str, Any]]]:
            for row in part.rows():
                source, target = joined(row.fields[:-1]), row.fields[-1]
                yield row.place, (source, Given(source, target) if text.lends else target)

        return Store.encode(folder, rows, self.encoders(text), fingerprint=mark, name=str(part.table.path))

    def encoders(self, text: TextPair) -> Mapping[str, Encoder]:
        return text.encoders() if text.lends else super().encoders(text)

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.batching import collate_pairs

        return bucketed(store, settings, train=train, name=name, specials=(1, 2), collate=collate_pairs)

    def network(self, settings: Mapping[str, Any], text: TextPair) -> nn.Module:
        from unrolled.models import MODELS, Seq2Seq

        beside = text.source.features_size if isinstance(text.source, Featured) else 0
        sizes = text.plain.vocabulary_size, text.target.vocabulary_size, beside, text.lends
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

    def surface(
        self, text: TextPair, given: str, row: Encoded, hypothesis: Hypothesis, search: SearchSettings
    ) -> Written:
        """A hypothesis as text; an unknown symbol becomes the most attended source word where the settings ask for
        it."""
        if not search.replace_unknown or hypothesis.weights is None:
            return super().surface(text, given, row, hypothesis, search)
        tokens = text.names(given, hypothesis.ids)
        words = text.source.pieces(given)
        owner = [_word_at(words, span) for span in row.spans]
        surfaces = ["" if word is None else text.target.normalize(given[slice(*words[word])]) for word in owner]
        looked = hypothesis.weights[:, : len(surfaces)]
        if isinstance(text.source, Featured):
            ids = np.array(row.ids)
            aside = (ids >= text.source.border) & (ids < text.source.vocabulary_size)
            looked = np.where(aside, 0.0, looked)
        for place, source in looked_at(tokens, looked, surfaces).items():
            word = owner[source]
            held = "" if word is None else behind(given, words[word][0])
            tokens[place] = text.target.standing_in(surfaces[source], tokens[place - 1] if place else "", held)
        return Written(text.target.join(tokens), tokens, hypothesis, row)


def _with_features(manual: Manual, columns: int) -> Manual:
    """How a model is used whose sources have so many columns of features."""
    commands = tuple(command.replace("lines.txt", "table.tsv") for command in manual.commands)
    beside = " --features 'A;B'" * columns
    attending = tuple(command.replace(" --to", f"{beside} --to") for command in manual.attending)
    row = ", ".join(["'one line'", *["'A;B'"] * columns])
    return manual._replace(commands=commands, attending=attending, python=f"predict([({row})])")


def copied_as(text: TextPair) -> list[int]:
    """The target symbol that each source symbol is copied as: the one that is written alike, UNKNOWN without one, PAD
    for a feature, which is no part of the text, and for a symbol that is lent the one of the same word."""
    aside = text.source.vocabulary_size - text.plain.vocabulary_size
    lent = range(text.target.vocabulary_size, text.target.vocabulary_size + text.lends)
    return [*(text.target.id_of(symbol) for symbol in text.plain.vocabulary), *[PAD] * aside, *lent]


def _word_at(words: Sequence[tuple[int, int]], span: tuple[int, int]) -> int | None:
    """The word that holds most of ``span``."""
    overlaps = [min(end, span[1]) - max(start, span[0]) for start, end in words]
    best = max(range(len(words)), key=lambda index: (overlaps[index], -index), default=None)
    return best if best is not None and overlaps[best] > 0 else None
