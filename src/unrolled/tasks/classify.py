"""Classification: a text in, its label out, or several labels of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

from annotated_types import Ge

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.settings import Tree
from unrolled.data.drawings import FORMATS as DRAWN
from unrolled.data.drawings import has_points
from unrolled.data.endings import KINDS
from unrolled.data.parts import Part
from unrolled.data.referenced import column_of
from unrolled.data.sentences import SENTENCES
from unrolled.data.table import Table, is_date, is_number, listed
from unrolled.tasks.base import TASKS, Batches, Manual, Sized
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.label_columns import LABELS, MOST_GUESSED, label_by_looks, looks_of
from unrolled.tasks.labelling import Labelled, LabelTask
from unrolled.tasks.sizing import size_columns
from unrolled.text.labelled import LabelledText

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from unrolled.data.batching import Columns
    from unrolled.data.store import Encoder, Store
    from unrolled.models.classifier import Classifier

TEXTS = ("text", "sentence", "utterance", "message", "review", "comment", "tweet", "document", "question", "query")
"""What columns of texts are called, the likeliest first; compared in lower case."""

OTHERWISE = frozenset({"source", "target", "summary", "translation", "response", "answer", "completion", "form"})
"""Beside a column with such a name, nothing is concluded from one with labels: it may be a second thing to know."""


NAMED = {"image": ("images", "images"), "sound": ("sounds", "recordings")}
"""The task of files of each kind, and what they are called."""


@TASKS.register("classify")
class Classify(LabelTask[LabelledText]):
    """One label a text, or any number of them (``text.separator``).

    ``label`` is the column of the labels, by name or 1-based number; null: the one that is called label, class,
    category, intent, sentiment or topic, else the second. The labels are those of the training table; rows that are
    held out of it count.
    """

    columns = ("text", "label")
    noun = "text"
    unit = "texts"
    text = LabelledText
    read_by = {"text": "text.tokenizer"}
    embedded = {"text": "embedding"}
    contextual = {"text.tokenizer": "embedding"}
    models = ("classifier",)
    preset = "classify"
    unsized = {"text": {"tokenizer": {"kind": "bpe"}}}
    manual = Manual(
        commands=(
            "unrolled predict {} lines.txt",
            "unrolled evaluate {} table.tsv",
            "unrolled explain {} 'one line' --to picture.svg",
        ),
        python="predict(['one line'])",
        tags=("text-classification", "rnn"),
        pipeline="text-classification",
    )

    def __init__(self, *, label: str | Annotated[int, Ge(1)] | None = None) -> None:
        self.label = label

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        others = SENTENCES | {"text", "running", "parallel", "ts", "npz", *DRAWN}
        if table.format in others or len(table.columns) < 2 or has_points(table.columns):
            return None
        if any(column_of(table, kind) is not None for kind in KINDS):
            return None
        named = _by_names(table.columns)
        looks = looks_of(table)
        if named is not None:
            if any(name.strip().casefold() in OTHERWISE for name in table.columns):
                return None
            name, count = table.columns[named[1]], len(looks[named[1]])
            if count * 2 <= looks[named[0]].total() or count <= MOST_GUESSED // 10:
                return f"{table.path}: a column '{name}' with {count} different values."
            return None
        column = label_by_looks(looks)
        if column is None or len(table.columns) != 2:
            return None
        if all(is_date(value) or is_number(value) for value in looks[1 - column]):  # a series, not texts
            return None
        values = listed([value for value, _ in looks[column].most_common()], 4)
        return f"{table.path}: column {column + 1} has {len(looks[column])} different short values ({values})."

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        if len(table.columns) < 2 or _by_names(table.columns) is not None:
            return {}, []
        looks = looks_of(table)
        column = label_by_looks(looks)
        if column is None:  # one label alone is refused by its name, not taken for the text
            column = label_by_looks(looks, least=1)
        if column is None:
            return {}, []
        return {"task": {"label": column + 1}}, [f"The labels are taken from column {column + 1} (task.label)."]

    def refuse(self, table: Table) -> None:
        columns = table.columns
        kind = next((kind for kind in KINDS if column_of(table, kind) is not None), None)
        if kind is not None:
            task, what = NAMED[kind]
            raise DataError(
                f"{table.path}: the rows name {what}, and a text classifier would read the names of the files. Take "
                f"--task {task}."
            )
        if isinstance(self.label, str) and self.label not in columns:
            raise SettingsError(
                f"[task.label] no column is called '{self.label}', only {listed(columns)}. A number works too."
            )

    def named(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        found = _by_names(columns)
        if self.label is None:
            return found
        if isinstance(self.label, str):
            if self.label not in columns:
                if found is not None:
                    return found
                raise SettingsError(
                    f"[task.label] no column is called '{self.label}', only {listed(columns)}. A number works too."
                )
            label = columns.index(self.label)
        elif found is not None and len(columns) != 2:
            return found
        elif self.label <= len(columns):
            label = self.label - 1
        else:
            raise SettingsError(f"[task.label] {self.label} was given, and there are {len(columns)} columns.")
        others = [place for place in range(len(columns)) if place != label]
        texts = [place for name in TEXTS for place in others if columns[place].casefold() == name]
        return (texts or others)[0], label

    def size(self, part: Part) -> Sized:
        """The tokenizer; and of few rows so few are held out that F1 jumps or stands still, and the loss chooses."""
        found = size_columns(part, {"text.tokenizer": 0})
        if not self.few(part):
            return found

        def said(origins: Mapping[str, str]) -> list[str]:
            mine = origins.get("train.stop_on") == found.origin
            few = ["So few are held out that the loss chooses the best weights (train.stop_on=loss)."] if mine else []
            return [*found.said(origins), *few]

        return Sized(found.origin, {**found.tree, "train": {"stop_on": "loss"}}, said)

    def encoders(self, text: LabelledText) -> dict[str, Encoder]:
        return {"text": text.tokenizer, "label": text.labels}

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        return bucketed(store, settings, train=train, name=name, specials=(1,), collate=_collate)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: LabelledText) -> nn.Module:
        from unrolled.models import MODELS

        network = MODELS.build(settings, text.vocabulary_size, len(text.labels), text.several, where="model")
        cast("Classifier", network).weigh(text.labels.counts, text.labels.rows)
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        several = settings["text"]["separator"] is not None
        network = MODELS.build(settings["model"], source, SKETCHED, several, where="model")
        return network, f"{source:,} symbols and {SKETCHED} labels"


SKETCHED = 10
"""Labels of a preset that is shown without data."""


def _collate(columns: Columns, rows: np.ndarray) -> Labelled:
    """A batch of texts and the numbers of their labels."""
    from unrolled.data.batching import collate
    from unrolled.data.frames import pad_labels

    return Labelled(collate(columns[0], None, rows).source, pad_labels(columns))


def _by_names(columns: Sequence[str]) -> tuple[int, int] | None:
    """The columns of text and label, by their names; with two columns the label's name is enough."""
    names = [name.strip().casefold() for name in columns]
    label = next((names.index(name) for name in LABELS if name in names), None)
    if label is None:
        return None
    text = next((names.index(name) for name in TEXTS if name in names), None)
    if text is None and len(names) == 2:
        text = 1 - label
    return None if text is None else (text, label)
