"""A trained reader: what it answers to questions about documents, how sure it is, and where it read that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.base.errors import DataError, UsageError, known
from unrolled.base.protocol import UNKNOWN
from unrolled.data.opening import from_file
from unrolled.data.parts import Part
from unrolled.data.questions import NOWHERE, UNANSWERED, Question, fault, places_in, question_of, questions
from unrolled.data.readers import open_table
from unrolled.data.table import Row, Table
from unrolled.pipeline.answer_tables import Judged, judge
from unrolled.pipeline.label_tables import bootstrap
from unrolled.pipeline.labelling import Answer
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.pipeline.numbered import Named, nth
from unrolled.tasks.reading import Reading
from unrolled.text.passages import Passage, ReadText
from unrolled.workshop import arguments
from unrolled.workshop.answers import Given, explain_answer, explain_steps
from unrolled.workshop.promises import Promise
from unrolled.workshop.reading import Said, end_of, probability_of, ranked, say, trust
from unrolled.workshop.reading_promises import check_promises

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.explain.highlights import Highlights
    from unrolled.tasks.scores import Score

ROUND = 1024
"""Questions that are read, sorted by length and answered together."""

TRUSTED = 50
"""Validation rows on which attention is compared with erasure, for the card."""

By = Literal["words", "steps"]


@TRAINED.register("reading")
class QuestionAnswerer(Model):
    """A trained reader: ``predict``, ``probabilities``, ``evaluate``, ``explain``.

    What is asked is a pair (document, question), or with a third a list of candidates.
    """

    task: Reading
    text: ReadText
    lacks = {
        "score": "it gives texts no probability, only answers theirs: predict --json",
        "generate": "it answers with what it knows or finds: train a language model or a translator",
        "embed": "of lines: a document has another vector for each question; without a file its words' are written",
    }

    # --- answers --------------------------------------------------------------------------------------------------

    def predict(self, asked: Sequence[Any], *, batch: int | None = None) -> list[str]:
        """The answer to each (document, question); an empty one where a span may be none and this one is."""
        return [one.label for one in self.answers(asked, batch=batch)]

    def answers(self, asked: Sequence[Any], *, batch: int | None = None) -> list[Answer]:
        """The answer to each (document, question), its probability, and the likeliest ones in order."""
        rows = self._asked("predict", asked)
        return self._answers(rows, self._said(rows, self._passages(rows), batch))

    def probabilities(self, asked: Sequence[Any], *, batch: int | None = None) -> list[np.ndarray]:
        """Of each (document, question) float32 [1, answers]: columns as `labels`, or as the entities first stand in it;
        of spans [2, symbols of the document], of the first and of the last one; where a document may hold no answer
        [2, symbols + 1], the last column for that."""
        rows = self._asked("predict", asked)
        return [one.probabilities for one in self._said(rows, self._passages(rows), batch)]

    @property
    def labels(self) -> tuple[str, ...]:
        """Every answer of training rows."""
        return self.text.labels.names

    def _answers(self, rows: Sequence[Question], said: Sequence[Said]) -> list[Answer]:
        found = []
        for row, passage, one in zip(rows, self._passages(rows), said, strict=True):
            order = ranked(self.text, row.document, passage, one)
            if not order:
                raise DataError(
                    f"predict: no entity that the model knows stands in '{row.document[:40]}…', so none can be the "
                    "answer. Name some as candidates: (document, question, candidates)."
                )
            found.append(Answer(order[0].answer, order[0].probability, [each[:2] for each in order]))
        return found

    def _said(self, rows: Sequence[Question], passages: Sequence[Passage], batch: int | None = None) -> list[Said]:
        most = None if batch is None else arguments.count("predict", "batch", batch)
        return say(self.network, passages, device=self.device, most=most) if rows else []

    def _passages(self, rows: Sequence[Question]) -> list[Passage]:
        return [self.text.read(row.document, row.question, row.candidates) for row in rows]

    def _asked(self, verb: str, asked: Any, answers: Sequence[str] | None = None) -> list[Question]:
        """What was asked as questions; UsageError where it is something else, DataError where it holds no text."""
        if isinstance(asked, str | bytes) or not isinstance(asked, Sequence):
            raise UsageError(f"{verb}: give a list of pairs (document, question), not {str(asked)[:40]!r}.")
        found = []
        for place, one in enumerate(asked):
            if isinstance(one, str | bytes) or not isinstance(one, Sequence) or not 2 <= len(one) <= 3:
                raise UsageError(f"{verb}: {place} is {str(one)[:40]!r}; a pair (document, question) is wanted.")
            document, question = (
                arguments.text(verb, f"{place}'s {name}", text)
                for name, text in zip(("document", "question"), one, strict=False)
            )
            candidates = arguments.texts(verb, f"{place}'s candidates", one[2]) if len(one) == 3 else []
            answer = "" if answers is None else answers[place]
            start = NOWHERE if answers is not None and not answer and self.text.nowhere else ""
            cells = (document, document, question, answer, start, "\t".join(candidates), "", "")
            wrong = fault(cells, answered=answers is not None)
            if wrong is not None:
                raise DataError(f"{verb}: {place}: {wrong}")
            found.append(question_of(cells))
        return found

    # --- numbers --------------------------------------------------------------------------------------------------

    def evaluate(self, asked: Sequence[Any], answers: Sequence[str]) -> list[Score]:
        """Accuracy and calibration error of the answers, of spans exact match and F1, beside the commonest answer.

        Where a span may be none, an empty answer says that there is none."""
        wanted = arguments.texts("evaluate", "answers", answers)
        if not isinstance(asked, Sequence) or len(asked) != len(wanted):
            raise UsageError(f"evaluate: {len(asked)} questions and {len(wanted)} answers; give as many of both.")
        if not wanted:
            raise DataError("evaluate: there is no question. Give at least one.")
        return self._judged(self._asked("evaluate", asked, wanted)).scores()

    def _judged(self, rows: Sequence[Question]) -> Judged:
        passages = self._passages(rows)
        said = self._said(rows, passages)
        return judge(self.text, rows, passages, said, self._answers(rows, said))

    def test(self, part: Part) -> Tested:
        rows = [question_of(row.fields) for row in part.rows()]
        return Tested(self._judged(rows).scores(), len(rows))

    def show_evaluate(self, part: Part, *, compare: Model | None = None) -> Evaluated:
        """Scores; by kind of question, where rows say one; the commonest mistakes; beside another model."""
        rows = [question_of(row.fields) for row in part.rows()]
        mine = self._judged(rows)
        tables = mine.tables()
        if compare is not None:
            if not isinstance(compare, QuestionAnswerer) or compare.task.answering != self.task.answering:
                raise UsageError(f"evaluate: --compare is a model of the task '{compare.kind}' that answers otherwise.")
            beside = [bootstrap(mine.right, compare._judged(rows).right, mine.measure)]
            tables["compare"] = "Against the other: paired bootstrap, 95 % interval", beside
        return Evaluated(mine.scores(), len(rows), tables=tables)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(
        self, document: str, question: str, answer: str | None = None, *, by: By = "words", trusted: bool = True
    ) -> Highlights | Explanation:
        """Which words and sentences of the document were read to answer, by attention where the model has one, else by
        erasure; or ``by`` steps, a heatmap of what each look read: at each word of the question for an impatient
        reader, at each hop for an attentive one.

        ``answer`` asks for another answer than the likeliest. ``trusted`` erases the words one by one to say how far
        the attention can be trusted.
        """
        (row,) = self._asked("explain", [(document, question)])
        return self._explained(row, answer, by=by, trusted=trusted)

    def _explained(self, row: Question, answer: str | None, *, by: str, trusted: bool) -> Highlights | Explanation:
        passage = self.text.read(row.document, row.question, row.candidates)
        if all(symbol == UNKNOWN for symbol in passage.question_ids):
            raise DataError(f"explain: no word of the question '{row.question[:60]}' is one that training rows had.")
        (said,) = say(self.network, [passage], device=self.device)
        chosen = self._answers([row], [said])[0].label if answer is None else answer
        numbers = self._numbers(row, passage, said, answer)
        likely = probability_of(said, numbers, end_of(self.text, passage))
        asked = Given(chosen or UNANSWERED, numbers, likely)
        if by == "steps":
            return explain_steps(row, passage, said, asked, by_word=self.network.by_word)
        if by != "words":
            raise UsageError(f"explain: {by!r} is no way to show it. {known(by, ('words', 'steps'))}")
        return explain_answer(self.network, self.text, row, passage, said, asked, trusted=trusted, device=self.device)

    def _numbers(self, row: Question, passage: Passage, said: Said, answer: str | None) -> list[int]:
        """An answer as the network says it, of several places where it stands the likeliest; UsageError for one that
        it cannot give."""
        from unrolled.tasks.reading import decided

        end = end_of(self.text, passage)
        if answer is None:
            return decided(said.probabilities, end)
        try:
            places = places_in(row.document, answer) if answer and self.task.answering == "span" else [None]
            if not places and answer in row.document:  # as a part of a word
                at = row.document.index(answer)
                places = [(at, at + len(answer))]
            found = [self.text.number(passage, answer, place) for place in places or [None]]
        except DataError as error:
            raise UsageError(f"explain: {error}") from None
        return max(found, key=lambda numbers: probability_of(said, numbers, end))

    # --- after training -------------------------------------------------------------------------------------------

    def promises(self, file: str | None, count: int) -> list[Promise]:
        found = None
        if file is not None:
            rows = [question_of(row.fields) for row in islice(self._table(file).rows(), count)]
            found = [(row.document, row.question) for row in rows]
        return check_promises(self, found, count)

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far the attention can be trusted, where there is attention."""
        rows = [question_of(row.fields) for row in islice(valid.rows(), TRUSTED)]
        passages = self._passages(rows)
        said = self._said(rows, passages)
        asked = [
            (row.document, passage, self._numbers(row, passage, one, None))
            for row, passage, one in zip(rows, passages, said, strict=True)
        ]
        found = trust(self.network, self.text, asked, device=self.device)
        return {"faithfulness": found and {name: one._asdict() for name, one in found.items()}}

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, nbest: int | None = None, batch: int | None = None) -> Iterator[Shown]:
        """One result a question of ``file``, in order: the answer and its probability, or the ``nbest`` likeliest."""
        count = None if nbest is None else arguments.count("predict", "nbest", nbest)
        table = self._table(file)
        rows, number = table.rows(), 0
        while held := list(islice(rows, ROUND)):
            asked = [question_of(row.fields) for row in held]
            passages = self._passages(asked)
            answers = self._answers(asked, self._said(asked, passages, batch))
            for row, one, passage, answer in zip(held, asked, passages, answers, strict=True):
                yield self._shown(table, row, (number, one, passage, answer), count)
                number += 1
        if not number:
            raise DataError(f"{file}: there is no question in it.")

    @staticmethod
    def _shown(table: Table, row: Row, given: tuple[int, Question, Passage, Answer], nbest: int | None) -> Shown:
        number, asked, passage, one = given
        shown = f"{one.label}\t{one.probability:.6f}"
        if nbest is not None:
            shown = "\n".join(f"{number}\t{probability:.6f}\t{label}" for label, probability in one.ranked[:nbest])
        tree: dict[str, Any] = {"line": row.place, "question": asked.question, "answer": one.label}
        best = dict(reversed(one.ranked[:nbest]))  # of equal texts the likeliest span
        tree |= {"probability": one.probability, "probabilities": dict(reversed(best.items()))}
        unread = all(symbol == UNKNOWN for symbol in passage.question_ids)
        where = table.place(row.place)
        remark = f"{where}: no word of the question is known: the answer is what the document alone says"
        return Shown(shown, tree, (remark,) if unread else ())

    def show_explain(
        self, line: str, *, target: str | None = None, by: str | None = None, untrusted: bool = False
    ) -> Highlights | Explanation:
        """``line`` is a file and after a # the number of the question in it, from 1: ``stories.txt#3``."""
        named = Named("question", "stories.txt")
        row = nth("explain", line, named, lambda file: self._table(file).rows(), self.asides)
        return self._explained(question_of(row.fields), target, by=by or "words", trusted=not untrusted)

    @staticmethod
    def _table(file: str) -> Table:
        return questions(open_table(from_file(file, "questions")), answered=False)
