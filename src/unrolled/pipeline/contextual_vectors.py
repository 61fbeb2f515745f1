"""A trained two-direction language model: the vectors of words in their texts, and how probable the texts are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.data.documents import is_plain
from unrolled.data.parts import Part
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.tasks.contextual_scores import Sides, Tally, log_probs, vectors
from unrolled.tasks.contextual_vectors import ContextualVectors, Written
from unrolled.workshop import arguments, contextual_files
from unrolled.workshop.context import explain_vectors
from unrolled.workshop.contextual_promises import check_promises
from unrolled.workshop.embedding import tabbed
from unrolled.workshop.nearness import plane
from unrolled.workshop.promises import Promise
from unrolled.workshop.seeing import check_line

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.explain.places import WordMap
    from unrolled.tasks.scores import Score

TOGETHER = 1024
"""Texts that are read together: memory does not grow with the file."""


AROUND = 2
"""Words on each side by which a place of a word is called in a map."""


class Embedded(NamedTuple):
    """A text's words and their vectors."""

    words: list[str]
    spans: list[tuple[int, int]]  # ``text[start:end]`` is a word
    vectors: np.ndarray  # float32 [words, layers, size], the layer of the characters alone first


class Scored(NamedTuple):
    """A text, as the model finds it from both sides."""

    text: str
    words: list[str]
    sides: Sides
    place: int = 1  # the 1-based line where it begins

    @property
    def perplexity(self) -> float:
        """Of a word, mean of both directions."""
        said = np.concatenate(self.sides)
        return float(np.exp(min(700.0, -said.mean()))) if len(said) else 1.0


@TRAINED.register("contextual_vectors")
class ContextualModel(Model):
    """A trained two-direction language model: ``embed``, ``score``, ``evaluate``, ``explain``."""

    task: ContextualVectors
    lacks = {
        "predict": "it gives vectors and probabilities: embed, score",
        "generate": "it knows each word from both sides: train a language model",
    }

    # --- vectors --------------------------------------------------------------------------------------------------

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """The words of each text and their vectors, of every layer; a text is read by itself."""
        texts = arguments.texts("embed", "texts", texts)
        spans = [self.text.spans(text) for text in texts]
        words = [[text[start:stop] for start, stop in one] for text, one in zip(texts, spans, strict=True)]
        found = vectors(self.network, words, self.text, device=self.device)
        return [Embedded(*one) for one in zip(words, spans, found, strict=True)]

    def map(self, word: str, texts: Sequence[str], method: Literal["pca", "tsne"] = "pca") -> WordMap:
        """Where ``word`` stands in ``texts``, on a plane: the nearer two places, the more alike the word is read there.

        By the directions of the vectors, all layers' mean but that of the characters, which is everywhere the same. A
        place is called by the words around it. DataError where there are less than two places.
        """
        from unrolled.explain.places import WordMap

        word = arguments.text("map", "word", word)
        names, found = [], []
        for one in self.embed(texts):
            for place, other in enumerate(one.words):
                if other == word:
                    around = one.words[max(0, place - AROUND) : place + AROUND + 1]
                    names.append(" ".join(around))
                    found.append(one.vectors[place, 1:].mean(axis=0))
        if len(found) < 2:
            raise DataError(
                f"map: '{word}' stands in {len(found)} place{'s' * (len(found) != 1)} of the texts, and two make a map."
            )
        unit = np.stack(found) / np.linalg.norm(found, axis=1, keepdims=True)
        on = plane(unit, method)
        return WordMap(words=names, places=on.places, method=on.method, kept=on.kept)

    def explain(self, text: str) -> Explanation:
        """On which other words each word's vector rests: how far it turns when one of them cannot be read.

        DataError for an empty text.
        """
        check_line(arguments.text("explain", "text", text))
        return explain_vectors(self.network, self.text, " ".join(text.split("\n")), device=self.device)

    # --- numbers --------------------------------------------------------------------------------------------------

    def score(self, texts: Sequence[str]) -> list[Scored]:
        """Natural-log probability of each word of each text, from both sides."""
        texts = arguments.texts("score", "texts", texts)
        return self._scored([Written(1, text) for text in texts])

    def evaluate(self, texts: Sequence[str]) -> list[Score]:
        """Loss and perplexities of some texts: both directions' mean, and each."""
        return self._tally(self.score(texts)).scores()

    def lines(self, part: Part) -> Iterator[Scored]:
        """Every text of a part, as the task's ``documents`` have it."""
        texts = self.task.texts(part)
        while held := list(islice(texts, TOGETHER)):
            yield from self._scored(held)

    def _scored(self, texts: Sequence[Written]) -> list[Scored]:
        words = [self.text.cut(one.text) for one in texts]
        found = log_probs(self.network, words, self.text, device=self.device)
        return [Scored(one.text, row, sides, one.place) for one, row, sides in zip(texts, words, found, strict=True)]

    def _tally(self, found: Iterable[Scored]) -> Tally:
        tally = Tally()
        for one in found:
            tally.add(one.sides, self.text.numbers(one.words))
        return tally

    # --- after training -------------------------------------------------------------------------------------------

    def test(self, part: Part) -> Tested:
        tally = self._tally(self.lines(part))
        return Tested(tally.scores(), tally.count)

    def promises(self, file: str | None, count: int) -> list[Promise]:
        from unrolled.data.lines import lines_of

        return check_promises(self, list(islice(lines_of(file), count)) if file else None, count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_embed(  # type: ignore[override]  # its options are others: they are what `showing` allows
        self, file: str | None, *, to: str | None = None, layer: str = "mean"
    ) -> Iterator[Shown]:
        """The vectors of each word of each line of ``file``, shown, or written ``to`` an .npz or .jsonl file."""
        from unrolled.data.lines import lines_of

        if file is None:
            raise UsageError("embed: the vectors of a word hang on the text around it. Give lines: embed MODEL FILE.")
        lines = iter(lines_of(file))
        found = (one for block in iter(lambda: list(islice(lines, TOGETHER)), []) for one in self.embed(block))
        if to is not None:
            count, words = contextual_files.write(Path(to), found, layer)
            tree: dict[str, Any] = {"lines": count, "words": words, "to": to}
            yield Shown("", tree, (f"written: {to}, {words:,} words of {count:,} lines",))
            return
        for number, one in enumerate(found):
            rows = contextual_files.chosen(one.vectors, layer)
            shown = [f"{number}\t{word}\t{tabbed(row.ravel())}" for word, row in zip(one.words, rows, strict=True)]
            yield Shown("\n".join(shown), dict(contextual_files.tree(number, one, layer)))

    def show_explain(self, line: str) -> Explanation:
        return self.explain(line)

    def show_score(self, part: Part, *, tokens: bool = False) -> Iterator[Shown]:
        """One result a text, blank lines too, then one of all."""
        tally, done = Tally(), 0
        lines = is_plain(part) and self.task.documents == "line"
        for one in self.lines(part):
            yield from _blank(done, one.place - 1 if lines else done)
            done = one.place
            tally.add(one.sides, self.text.numbers(one.words))
            sums = {name: float(side.sum()) for name, side in one.sides._asdict().items()}
            row: dict[str, Any] = {"line": one.place - 1, "words": len(one.words), **sums, "perplexity": one.perplexity}
            if tokens:
                given = (one.words, one.sides.forward, one.sides.backward[1:])
                row["tokens"] = [[word, float(left), float(right)] for word, left, right in zip(*given, strict=False)]
            yield Shown(f"{sums['forward']:.4f}\t{sums['backward']:.4f}\t{len(one.words)}\t{one.perplexity:.4f}", row)
        yield from _blank(done, max((row.place for row in part.rows()), default=0) if lines else done)
        scores = tally.scores()
        total: dict[str, Any] = {"texts": tally.count, **{score.name: score.value for score in scores}}
        remarks = tuple(f"{one.name} {one.value:.4f} ({one.protocol})" for one in scores)
        yield Shown("", total | {"protocol": scores[0].protocol}, remarks)

    def show_evaluate(self, part: Part, *, compare: Model | None = None) -> Evaluated:
        """Perplexities; beside them another model's, of as many words only where both know the same ones."""
        tested = self.test(part)
        if compare is None:
            return Evaluated(tested.scores, tested.rows)
        if not isinstance(compare, ContextualModel):
            raise UsageError(f"evaluate: --compare is a model of the task '{compare.kind}', this one of '{self.kind}'.")
        found = {"this": tested.scores, "other": compare.test(part).scores}
        rows = [{"model": name, **{one.name: one.value for one in scores}} for name, scores in found.items()]
        title = "Side by side (alike only where both predict the same words: an unknown one is cheap)"
        return Evaluated(tested.scores, tested.rows, tables={"compare": (title, rows)})


def _blank(first: int, last: int) -> Iterator[Shown]:
    """Results of the lines ``first`` to ``last`` (0-based), which hold no text."""
    for line in range(first, last):
        row = {"line": line, "words": 0, "forward": 0.0, "backward": 0.0, "perplexity": 1.0}
        yield Shown("0.0000\t0.0000\t0\t1.0000", row)
