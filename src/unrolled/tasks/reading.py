"""Reading: a document and a question in, an answer out: of a closed list, an entity of the document, or a span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.settings import Tree
from unrolled.data.parts import Part, hold_out
from unrolled.data.questions import COLUMNS, UNTAUGHT, Question, paired, place_of, places_of, question_of, questions
from unrolled.data.table import Table
from unrolled.tasks.base import TASKS, Batches, Manual, Validation, moved
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.labelling import LabelTask
from unrolled.tasks.reading_scores import best_spans
from unrolled.text.passages import TAB, Answering, Passage, ReadText

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.data.batching import Columns
    from unrolled.data.store import Encoder, Store
    from unrolled.models.reader import AnswerModel, Asked


class Posed(NamedTuple):
    """A batch of questions and what they should be answered."""

    asked: Asked
    answer: Tensor  # int64 [batch, 1], of spans [batch, 2]


FORMATS = ("babi", "question", "squad")
"""Formats whose rows are questions about documents."""

SKETCHED = 6
"""Answers of a preset that is shown without data."""


@TASKS.register("reading")
class Reading(LabelTask[ReadText]):
    """An answer to a question about a document.

    ``answer``: ``entity``, one of those that training rows answer with or name as candidates; ``anonymous``, an entity
    of the document, whose name is not read: entities are called anew in each epoch and each row, so that only the
    document tells (files that call them @entity0, @entity1, … already are read so); ``span``, a piece of the document.
    """

    columns = COLUMNS
    noun = "question"
    unit = "questions"
    text = ReadText
    read_by = {"document": "text.tokenizer", "question": "text.tokenizer"}
    embedded = {"document": "embedding"}
    models = ("reader", "deep_reader")
    preset = "attentive-reader"
    stop_on = "accuracy"
    measures = ("loss", "accuracy")
    labelled = COLUMNS.index("answer")
    manual = Manual(
        commands=(
            "unrolled predict {} questions.jsonl",
            "unrolled evaluate {} questions.jsonl",
            "unrolled explain {} questions.jsonl#1 --to picture.svg",
        ),
        python="predict([('a document', 'a question?')])",
        tags=("question-answering", "rnn"),
        pipeline="question-answering",
    )

    def __init__(self, *, answer: Answering = "entity") -> None:
        self.answering: Answering = answer

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        if table.format in FORMATS and "question" in table.columns:
            return f"{table.path}: documents with questions."
        places = places_of(table.columns)
        if all(name in places for name in ("document", "question", "answer")):
            names = [table.columns[places[name]] for name in ("document", "question", "answer")]
            return f"{table.path}: columns called {', '.join(names)}."
        return None

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        if table.format == "squad":
            return {"task": {"answer": "span"}}, ["Answers are pieces of their document: spans (task.answer)."]
        if table.format != "question":
            return {}, []
        return {"task": {"answer": "anonymous"}}, ["The entities have no names: answers are anonymous (task.answer)."]

    def adapt(self, table: Table) -> Table:
        return questions(table, inside=self.answering != "entity", nowhere=self.answering == "span")

    def for_evaluation(self, table: Table) -> Table:
        return questions(table, nowhere=self.answering == "span")

    def named(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        return tuple(columns.index(name) for name in self.columns)

    def picked(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        return self.named(columns)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        if settings["data"]["too_long"] == "cut" and self.answering != "entity":
            raise SettingsError(
                "[data.too_long] cut was given, and the answer may stand in what is cut off. Take drop, or a higher "
                "data.max_length."
            )

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return hold_out(part, data, "document")

    def label_of(self, fields: Sequence[str]) -> str:
        return fields[self.labelled].partition(TAB)[0]

    def learn(self, settings: Mapping[str, Any], part: Part) -> ReadText:
        whole = part if self.answering != "anonymous" else part._replace(low=0.0, high=1.0)

        def rows() -> Iterator[tuple[str, ...]]:
            for row in whole.rows():
                yield tuple(row.fields[place] for place in (1, 2, 3, 5))

        text = ReadText.learn(settings, rows, self.answering)
        if self.answering == "span" and text.nowhere and not any(row.fields[self.labelled] for row in whole.rows()):
            raise DataError(f"{part.table.path}: {UNTAUGHT}")
        if self.answering == "entity":
            self.admit(text, part)
        elif self.answering == "anonymous" and text.slots < 2:
            raise DataError(
                f"{part.table.path}: no document holds two of the entities that answers name: there is nothing to tell "
                "apart. Give other data, or take task.answer=entity."
            )
        return text

    def encoders(self, text: ReadText) -> dict[str, Encoder]:
        size = text.vocabulary_size
        return {"document": Numbers(size), "question": Numbers(size), "answer": Numbers(), "candidates": Numbers()}

    def store(self, folder: Path, part: Part, text: ReadText, mark: str) -> Store:
        from unrolled.data.store import Store

        def rows() -> Iterator[tuple[int, tuple[str, ...]]]:
            for row in part.rows():
                try:
                    yield row.place, _cells(text, question_of(row.fields))
                except DataError as error:
                    where = f"{part.table.place(row.place)}: {part.table.nested(row.place)}"
                    raise DataError(f"{where}{error}") from None

        return Store.encode(folder, rows, self.encoders(text), fingerprint=mark, name=str(part.table.path))

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        return bucketed(store, settings, train=train, name=name, specials=(1, 1), collate=_collate)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: ReadText) -> nn.Module:
        from unrolled.models import MODELS

        network = MODELS.build(settings, text.vocabulary_size, text.answers, text.slots, where="model")
        spelled = text.symbols()
        if settings.get("answer") == "attention_sum" and text.answering == "entity":
            lost = next((name for place, name in enumerate(text.labels.names) if place not in spelled), None)
            if lost is not None:
                raise SettingsError(
                    f"[model.answer] attention_sum points at one symbol of the document, and the answer "
                    f"'{lost[:40]}' is several, or unknown. Take answer: output, or task.answer=span."
                )
        cast("AnswerModel", network).spell(spelled, nowhere=text.nowhere)
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        answering = settings["task"]["answer"]
        answers, slots = (0 if answering == "span" else SKETCHED), (SKETCHED if answering == "anonymous" else 0)
        network = MODELS.build(settings["model"], source + slots, answers, slots, where="model")
        said = f"{answers} {'entities' if slots else 'answers'}" if answers else "spans for answers"
        return network, f"{source:,} symbols and {said}"

    def answers(self, model: Any, batch: Any) -> tuple[Tensor, Tensor]:
        return model(batch.asked).logits, batch.answer

    def validate(self, given: Validation) -> dict[str, float]:
        total, right, count = 0.0, 0, 0
        model = cast("AnswerModel", given.network)
        with given.forward():
            for rows in given.batches.plan(0):
                batch = moved(given.batches.load(rows), given.device)
                logits, wanted = self.answers(model, batch)
                total += float(model.loss(logits, wanted))
                said = logits.float().softmax(dim=-1).cpu().numpy()
                ends = batch.asked.document_mask.sum(dim=1) - 1 if model.points_nowhere else [None] * len(said)
                right += sum(
                    decided(one, None if end is None else int(end)) == gold
                    for one, end, gold in zip(said, ends, wanted.tolist(), strict=True)
                )
                count += len(said)
        return {"loss": total / max(count, 1), "accuracy": right / max(count, 1)}


class Numbers:
    """Cells of whole numbers, below ``size`` where that is known."""

    def __init__(self, size: int = 1 << 31) -> None:
        self.vocabulary_size = size

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[int(number) for number in text.split()] for text in texts]


def decided(said: np.ndarray, end: int | None) -> list[int]:
    """The number of the likeliest answer of probabilities [1, answers], or the ends of the likeliest span of
    [2, positions]; ``end``: the position that stands for no answer, where a span may be none."""
    return [int(said[0].argmax())] if len(said) == 1 else list(best_spans(said[0], said[1], end=end)[0][:2])


def _cells(text: ReadText, one: Question) -> tuple[str, ...]:
    passage = text.read(one.document, one.question, one.candidates)
    if not passage.ids or not passage.question_ids:
        name = "question" if passage.ids else "document"
        raise DataError(f"the {name} holds no word ('{(one.question if passage.ids else one.document)[:40]}').")
    place = None if one.nowhere else place_of(one.document, one.answer, one.starts[0] if one.starts else None)
    wanted = text.number(passage, one.answer, place)
    cells = (passage.ids, passage.question_ids, wanted, passage.candidates)
    return tuple(" ".join(map(str, cell)) for cell in cells)


def asked_of(passages: Sequence[Passage]) -> Asked:
    """A batch of passages, padded."""
    documents, asking = [one.ids for one in passages], [one.question_ids for one in passages]
    return _asked(documents, asking, [one.candidates for one in passages])


def _asked(documents: Sequence[Any], asking: Sequence[Any], candidates: Sequence[Any]) -> Asked:
    import torch

    from unrolled.data.batching import collate
    from unrolled.models.reader import Asked

    rows = range(len(documents))
    document, question = collate(documents, None, rows).source, collate(asking, None, rows).source
    chosen = np.full((len(documents), max([1, *map(len, candidates)])), -1, dtype=np.int64)
    for row, numbers in zip(chosen, candidates, strict=True):
        row[: len(numbers)] = numbers
    return Asked(*document, *question, torch.from_numpy(chosen))


def _collate(columns: Columns, rows: np.ndarray) -> Posed:  # noqa: ARG001
    import torch

    documents, asking, answers, candidates = columns
    return Posed(_asked(documents, asking, candidates), torch.from_numpy(np.stack(answers).astype(np.int64)))


def questions_first(tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables as pairs of what is asked and the answer, where they look like questions about documents; else
    nothing."""
    first = tables.get("train") or next(iter(tables.values()))
    if Reading.recognises(first) is None:
        return {}
    return {name: paired(table) for name, table in tables.items()}
