"""Trained word vectors: which words are alike, which is to one as another to a third, and how they lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.base.protocol import BEGIN, SPECIALS
from unrolled.data.parts import Part
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.tasks.analogies import Space, analogy_scores, exam, likeness_scores
from unrolled.tasks.running import encoded_pieces
from unrolled.tasks.scores import Score
from unrolled.tasks.word_vectors import WordVectorsTask
from unrolled.workshop import arguments
from unrolled.workshop.nearness import plane
from unrolled.workshop.nearness_promises import check_promises
from unrolled.workshop.promises import Promise
from unrolled.workshop.seeing import check_line

if TYPE_CHECKING:
    from unrolled.explain.places import WordMap

SHOWN = 10
"""Neighbours, where nobody says how many."""

ROWS = 4096
"""Rows of a text whose loss is taken together."""

AROUND = 30
"""Neighbours on the map of a word."""


class Neighbour(NamedTuple):
    """A word that is like another."""

    word: str
    cosine: float


@TRAINED.register("word_vectors")
class WordVectors(Model):
    """Trained word vectors: ``predict`` and ``neighbours``, ``analogy``, ``evaluate``, ``explain`` and ``map``,
    ``embed`` and ``vectors``."""

    task: WordVectorsTask
    lacks = {
        "score": "words alone have no probability: train a language model",
        "generate": "words alone make no text: train a language model",
    }

    @cached_property
    def space(self) -> Space:
        """The words by the direction of their vectors."""
        return Space(self.vectors())

    @property
    def words(self) -> tuple[str, ...]:
        """Every word, the most frequent first."""
        found: tuple[str, ...] = self.text.words
        return found

    def _read(self, verb: str, text: str) -> list[int]:
        """The rows of the words of a text; DataError for an unknown one, with the nearest spelling."""
        return [self.space.place(word, verb) for word in self.text.tokenizer.normalize(text).split()]

    # --- which words are alike ------------------------------------------------------------------------------------

    def neighbours(self, word: str, count: int = SHOWN) -> list[Neighbour]:
        """The ``count`` words that are likest ``word``, by cosine; of several words, likest their mean direction.

        DataError for an unknown word, with the nearest spelling.
        """
        count = arguments.count("neighbours", "count", count)
        rows = self._read("neighbours", arguments.text("neighbours", "word", word))
        if not rows:
            raise DataError("neighbours: there is no word. Give one.")
        return [Neighbour(*one) for one in self.space.near(self.space.unit[rows].mean(axis=0), count, rows)]

    def predict(self, lines: Sequence[str], count: int = SHOWN) -> list[list[Neighbour]]:
        """The `neighbours` of each line's word; none for a line of nothing."""
        lines = arguments.texts("predict", "lines", lines)
        return [self.neighbours(line, count) if line.strip() else [] for line in lines]

    def analogy(self, a: str, b: str, c: str, count: int = SHOWN) -> list[Neighbour]:
        """What is to ``c`` as ``b`` is to ``a``: the words that are likest b - a + c (3CosAdd)."""
        count = arguments.count("analogy", "count", count)
        given = {name: self._read("analogy", arguments.text("analogy", name, one)) for name, one in
                 (("a", a), ("b", b), ("c", c))}  # fmt: skip
        wrong = [name for name, rows in given.items() if len(rows) != 1]
        if wrong:
            raise DataError(f"analogy: {wrong[0]} is {len(given[wrong[0]])} words, and one is wanted.")
        rows = [one for (one,) in given.values()]
        unit = self.space.unit
        return [Neighbour(*one) for one in self.space.near(unit[rows[1]] - unit[rows[0]] + unit[rows[2]], count, rows)]

    # --- seeing ---------------------------------------------------------------------------------------------------

    def map(self, words: Sequence[str], method: Literal["pca", "tsne"] = "pca") -> WordMap:
        """Words on a plane, by their directions: the two of most variance, or t-SNE (van der Maaten & Hinton 2008)."""
        rows = [row for word in arguments.texts("map", "words", words) for row in self._read("map", word)]
        return self._map(list(dict.fromkeys(rows)), [], method)

    def explain(self, text: str, method: Literal["pca", "tsne"] = "pca") -> WordMap:
        """One word: its neighbours on a plane. Several: these words on a plane. DataError for an empty text."""
        check_line(arguments.text("explain", "text", text))
        rows = list(dict.fromkeys(self._read("explain", text)))
        if len(rows) > 1:
            return self._map(rows, [], method)
        near = [self.space.places[one.word] for one in self.neighbours(text, AROUND)]
        return self._map([*rows, *near], rows, method)

    def _map(self, rows: Sequence[int], marked: Sequence[int], method: str) -> WordMap:
        from unrolled.explain.places import WordMap

        if len(rows) < 2:
            raise UsageError(f"map: {len(rows)} different words were given, and two make a map.")
        found = plane(self.space.unit[list(rows)], method)
        words = self.space.words
        likeness = (self.space.unit[list(rows)] @ self.space.unit[marked[0]]).tolist() if marked else None
        return WordMap(
            words=[words[row] for row in rows],
            places=found.places,
            method=found.method,
            kept=found.kept,
            marked=[words[row] for row in marked],
            likeness=likeness,
        )

    # --- vectors and numbers --------------------------------------------------------------------------------------

    def embed(self, lines: Sequence[str]) -> np.ndarray:
        """Float32 [lines, size]: the mean vector of each line's known words; zeros where it has none."""
        rows = self.text.encode_ids([" ".join(line.split("\n")) for line in arguments.texts("embed", "lines", lines)])
        table = self.network.embedding.table().cpu().numpy()
        known = [[one for one in row if one >= len(SPECIALS)] for row in rows]
        return np.stack([table[row].mean(axis=0) if row else np.zeros_like(table[0]) for row in known])

    def evaluate(self, lines: Sequence[str]) -> list[Score]:
        """The scores of lines as a file has them: analogies (questions-words), rated pairs, or running text."""
        lines = arguments.texts("evaluate", "lines", lines)
        numbered = ((f"line {number}", line) for number, line in enumerate(lines, 1))
        rows = ([BEGIN, *row] for row in self.text.encode_ids(lines))
        return self._scored(numbered, rows, len(lines), "evaluate").scores

    def test(self, part: Part) -> Tested:
        """Of text the loss; of a file of questions or of rated pairs their scores."""
        found = self._tested(part)
        return Tested(found.scores, found.rows)

    def _tested(self, part: Part) -> Evaluated:
        name = part.table.path.name
        numbered = ((f"{name}:{row.place}", " ".join(row.fields)) for row in part.table.rows(part.report))
        pieces = encoded_pieces(part, self.task.documents, self.text.encode_ids, ends=False)
        return self._scored(numbered, (ids for _, ids in pieces), sum(1 for _ in part.rows()), str(part.table.path))

    def _scored(
        self, numbered: Iterable[tuple[str, str]], text: Iterable[list[int]], rows: int, name: str
    ) -> Evaluated:
        asked = exam(numbered, lowercase=bool(self.text.tokenizer.settings.get("lowercase")))
        if asked is not None and asked.questions:
            scores, table = analogy_scores(self.space, asked.questions)
            return Evaluated(scores, len(asked.questions), tables={"sections": ("By section", table)})
        if asked is not None:
            return Evaluated(likeness_scores(self.space, asked.rated), len(asked.rated))
        return Evaluated([self._loss(text, name)], rows)

    def _loss(self, text: Iterable[list[int]], name: str) -> Score:
        """The loss of a text, row by row as symbols, by one draw of windows and noise."""
        import torch

        total, predictions, rows = 0.0, 0, iter(text)
        network = self.network.cpu()
        for number, block in enumerate(iter(lambda: list(islice(rows, ROWS)), [])):
            ids = torch.tensor([one for row in block for one in row], dtype=torch.int32)
            learnt = network.learn(ids, rate=0.0, seed=number)
            total, predictions = total + learnt.loss, predictions + learnt.predictions
        self.network = network.to(self.device)
        if not predictions:
            raise DataError(f"{name}: no two known words are beside each other. Give more text.")
        settings = self.plan.settings["model"]
        protocol = f"nats a prediction, {settings['negative']} noise words, windows to {settings['window']}, one draw"
        return Score("loss", total / predictions, protocol, False)

    def promises(self, file: str | None, count: int) -> list[Promise]:
        from unrolled.data.lines import lines_of

        return check_promises(self, list(islice(lines_of(file), count)) if file else None, count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, nbest: int | None = None) -> Iterator[Shown]:
        """The likest words of each line's word, with their cosines; a line of unknown words stays empty."""
        from unrolled.data.lines import lines_of

        for number, line in enumerate(lines_of(file)):
            remarks: tuple[str, ...] = ()
            try:
                found = self.predict([line], nbest or SHOWN)[0]
            except DataError as error:
                found, remarks = [], (str(error).removeprefix("neighbours: "),)
            tree: dict[str, Any] = {"line": number, "text": line, "neighbours": [one._asdict() for one in found]}
            yield Shown("\t".join(f"{one.word} {one.cosine:.4f}" for one in found), tree, remarks)

    def show_explain(self, line: str, *, method: Literal["pca", "tsne"] | None = None) -> WordMap:
        return self.explain(line, method or "pca")

    def show_evaluate(self, part: Part, *, compare: Model | None = None) -> Evaluated:
        """Analogies with a table by section, rated pairs, or text; beside another model's."""
        found = self._tested(part)
        tables = dict(found.tables)
        if compare is not None:
            if not isinstance(compare, WordVectors):
                raise UsageError(f"evaluate: --compare is a model of the task '{compare.kind}', this one of words.")
            both = {"this": found.scores, "other": compare.test(part).scores}
            lines = [{"model": name, **{one.name: one.value for one in own}} for name, own in both.items()]
            tables["compare"] = ("Side by side", lines)
        return found._replace(tables=tables)
