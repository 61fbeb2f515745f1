"""A trained tagger: which tag each word of a sentence has, and which spans of words the tags write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.base.files import write_beside
from unrolled.data.parts import Part
from unrolled.data.sentences import cells
from unrolled.pipeline.model import TRAINED, Evaluated, Model, Shown, Tested
from unrolled.pipeline.tag_tables import TagTable, compare_spans, compare_words
from unrolled.pipeline.tagged_files import pieces
from unrolled.tasks.tag import Tag, check_scheme, check_tags
from unrolled.text.kinds import read_words
from unrolled.text.spans import Span
from unrolled.workshop import arguments
from unrolled.workshop.promises import Promise
from unrolled.workshop.tag_promises import check_promises
from unrolled.workshop.tag_seeing import explain_tags, explain_word
from unrolled.workshop.tagging import Tagging, tag_rows

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.scores import Score

Sentences = Sequence[Sequence[str]]


ROUND = 1024
"""Sentences that are read, sorted by length and answered together: memory does not grow with the file."""


class Answer(NamedTuple):
    """What is said of a sentence."""

    words: list[str]
    tags: list[str]
    spans: list[Span]  # that the tags write; none where tags are each word's own
    probabilities: list[float]  # of each word's tag
    log_probability: float  # natural log, of all tags together


class Scored(NamedTuple):
    """Given tags by the model: natural logarithms."""

    log_probability: float  # of all tags of the sentence together
    words: list[float]  # of each word's tag, whatever the others are


@TRAINED.register("tag")
class TextTagger(Model):
    """A trained tagger: ``predict``, ``evaluate``, ``score``, ``explain``."""

    task: Tag
    lacks = {
        "generate": "it tags what is there: train a language model",
        "embed": "of lines: its vectors are of words; without a file these are written",
    }

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a word, or a span of words, may be called."""
        names: tuple[str, ...] = self.text.tags.kinds
        return names

    @property
    def _writes_spans(self) -> bool:
        return self.text.tags.scheme is not None

    # --- answers --------------------------------------------------------------------------------------------------

    def predict(self, sentences: Sentences, *, batch: int | None = None) -> list[list[str]]:
        """The tags of each sentence, a tag a word; a sentence is a list of words, and may have none."""
        return [one.tags for one in self.answers(sentences, batch=batch)]

    def answers(self, sentences: Sentences, *, batch: int | None = None) -> list[Answer]:
        """Tags, spans and how probable they are, of each sentence."""
        sentences = arguments.sentences("predict", "sentences", sentences)
        most = None if batch is None else arguments.count("predict", "batch", batch)
        return [
            self._answer(words, one) for words, one in zip(sentences, self._tagged(sentences, most=most), strict=True)
        ]

    def marginals(self, sentences: Sentences, *, batch: int | None = None) -> list[np.ndarray]:
        """Of each sentence float32 [words, tags]: how probable each tag of each word is; columns as `text.tags.names`,
        of spans as they are learnt."""
        sentences = arguments.sentences("marginals", "sentences", sentences)
        most = None if batch is None else arguments.count("marginals", "batch", batch)
        return [one.marginals for one in self._tagged(sentences, most=most)]

    def _tagged(
        self, sentences: Sentences, given: Sequence[Sequence[int]] | None = None, *, most: int | None = None
    ) -> list[Tagging]:
        """What the network says of sentences; of one without words, nothing."""
        full = [row for row, words in enumerate(sentences) if words]
        asked = None if given is None else [given[row] for row in full]
        rows = [self.text.spell(sentences[row]) for row in full]
        nothing = Tagging(np.empty(0, dtype=np.int64), np.empty((0, len(self.text.tags)), dtype=np.float32), 0.0)
        found = [nothing] * len(sentences)
        for row, one in zip(full, tag_rows(self.network, rows, asked, device=self.device, most=most), strict=True):
            found[row] = one
        return found

    def _answer(self, words: Sequence[str], one: Tagging) -> Answer:
        tags = self.text.tags.decode(one.tags.tolist())
        spans = self.text.tags.spans(tags) if self.text.tags.scheme else []
        sure = [float(row[tag]) for row, tag in zip(one.marginals, one.tags, strict=True)]
        return Answer(list(words), tags, spans, sure, one.log_probability)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, sentence: Sequence[str] | str, word: int | None = None) -> Explanation:
        """What each tag was read from: the words of the sentence, each taken away in turn; or with ``word`` (from 0)
        what the tag of that word was read from in it: the word as a whole, and each of its characters.

        ``sentence`` is a list of words, or a text out of which they are cut. DataError where it has none.
        """
        words = _words(sentence)
        if not words:
            raise DataError("explain: the sentence is empty. Give one word at least.")
        if word is None:
            return explain_tags(self.network, self.text, words, device=self.device)
        if not 0 <= word < len(words):
            raise UsageError(f"explain: word {word} was asked for; the sentence has the words 0 to {len(words) - 1}.")
        return explain_word(self.network, self.text, words, word, device=self.device)

    # --- numbers --------------------------------------------------------------------------------------------------

    def score(self, sentences: Sentences, tags: Sentences) -> list[Scored]:
        """How probable the model finds given tags: of each sentence all of them together, and each word's own.

        UsageError for tags that break the scheme; DataError for one that no training row has.
        """
        sentences, tags = arguments.tagged("score", sentences, tags)
        given = []
        for row, one in enumerate(tags):
            given.append(self.text.tags.encode(one, [f"sentence {row}, word {word}" for word in range(len(one))]))
        found = self._tagged(sentences, given)
        return [
            Scored(one.log_probability, np.log(np.maximum(one.marginals[np.arange(len(ids)), ids], 1e-30)).tolist())
            for one, ids in zip(found, given, strict=True)
        ]

    def evaluate(self, sentences: Sentences, tags: Sentences) -> list[Score]:
        """Accuracy of the words, and F1 of spans (exact, partial, …) where the tags write some; each with its
        protocol."""
        sentences, tags = arguments.tagged("evaluate", sentences, tags)
        if not any(sentences):
            raise DataError("evaluate: there is no word. Give one sentence at least.")
        return self._scores(self.predict(sentences), tags)

    def _scores(self, answers: Sentences, targets: Sentences) -> list[Score]:
        from unrolled.tasks.tag_scores import span_scores, word_scores

        scores = word_scores(targets, answers, self.text.tags)
        if self.text.tags.scheme is None:
            return scores
        return [*span_scores(*self._spans(targets, answers)), *scores]

    def _spans(self, *several: Sentences) -> list[list[list[Span]]]:
        """The spans of each sentence."""
        return [[self.text.tags.spans(row) for row in rows] for rows in several]

    # --- after training -------------------------------------------------------------------------------------------

    def test(self, part: Part) -> Tested:
        sentences, tags = self._rows(part)
        return Tested(self.evaluate(sentences, tags), len(sentences))

    def _rows(self, part: Part) -> tuple[list[list[str]], list[list[str]]]:
        """Words and tags of each sentence; DataError with the line of a tag that breaks the scheme."""
        words, tags, scheme = [], [], self.text.tags.scheme
        for row in part.rows():
            words.append(cells(row.fields[0]))
            tags.append(cells(row.fields[1]))
            if scheme is not None:
                check_scheme(part, row.place, tags[-1], scheme)
        return words, tags

    def promises(self, file: str | None, count: int) -> list[Promise]:
        given = (
            None
            if file is None
            else [piece.words for piece in islice(pieces(file, self.task, spans=self._writes_spans), count)]
        )
        if given is not None and not any(given):
            raise DataError(f"selfcheck: {file}: no sentence holds a word. Give some text, or no file.")
        return check_promises(self, given, count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_predict(self, file: str, *, batch: int | None = None, spaces: bool = False) -> Iterator[Shown]:
        """A CoNLL or CoNLL-U file with the model's tags and all else as it was; of other text each line as
        ``word/tag``, its words cut at white space alone with ``spaces``."""
        held = pieces(file, self.task, spans=self._writes_spans, spaces=spaces)
        while part := list(islice(held, ROUND)):
            for piece, one in zip(part, self.answers([piece.words for piece in part], batch=batch), strict=True):
                yield Shown(piece.write(one.tags, one.spans), self._tree(one), end="")

    def show_explain(self, line: str, *, word: int | None = None) -> Explanation:
        """As ``explain``; ``word`` counts from 1."""
        count = len(_words(line))
        if word is not None and count and not 1 <= word <= count:
            raise UsageError(f"explain: --word {word} was asked for; the sentence has the words 1 to {count}.")
        return self.explain(line, None if word is None else word - 1)

    def show_score(self, part: Part, *, tokens: bool = False) -> Iterator[Shown]:
        """One result a sentence, then one of all."""
        total, count, held = 0.0, 0, iter(part.rows())
        while rows := list(islice(held, ROUND)):
            for row in rows:
                check_tags(part, row.place, cells(row.fields[1]), self.text.tags)
            words, tags = [cells(row.fields[0]) for row in rows], [cells(row.fields[1]) for row in rows]
            for one, said, names in zip(self.score(words, tags), words, tags, strict=True):
                total, count = total + one.log_probability, count + len(said)
                tree: dict[str, Any] = {"log_prob": one.log_probability, "words": len(said)}
                if tokens:
                    tree["tokens"] = [list(each) for each in zip(said, names, one.words, strict=True)]
                yield Shown(f"{one.log_probability:.4f}\t{len(said)}\t{one.log_probability / len(said):.4f}", tree)
        mean = total / max(count, 1)
        protocol = "log p(tags | words), all tags of a sentence together, natural log"
        tree = {"log_prob": total, "words": count, "per_word": mean, "protocol": protocol}
        yield Shown("", tree, (f"{count:,} words: log-probability {total:.2f}, {mean:.4f} a word", f"({protocol})"))

    def predict_file(self, file: str | Path, to: str | Path) -> Path:
        """Write ``file`` with the model's tags to ``to``, as `show_predict` does, whole or not at all."""
        text = "".join(one.text for one in self.show_predict(arguments.place("predict_file", "file", file)))
        return write_beside(Path(arguments.place("predict_file", "to", to)), text.encode("utf-8"))

    def _tree(self, one: Answer) -> dict[str, Any]:
        tree: dict[str, Any] = {"words": one.words, "tags": one.tags}
        if self.text.tags.scheme is not None:
            tree["spans"] = [span._asdict() for span in one.spans]
        return tree | {"probabilities": one.probabilities, "log_probability": one.log_probability}

    def show_evaluate(self, part: Part, *, compare: Model | None = None, confusion: str | None = None) -> Evaluated:
        """Scores, a table by tag (with the commonest confusions) or by kind of span; beside another model;
        ``confusion``: which tags are taken for which, as a picture's file."""
        from unrolled.tasks.tag_scores import by_kind

        sentences, tags = self._rows(part)
        answers = self.predict(sentences)
        tables: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        if self.text.tags.scheme is not None:
            if confusion is not None:
                raise UsageError("evaluate --confusion: these tags write spans of words; none is taken for another.")
            tables["kinds"] = "By kind of span", [one._asdict() for one in by_kind(*self._spans(tags, answers))]
        else:
            table = TagTable(tags, answers)
            tables["tags"] = "By tag", table.by_tag()
            mistakes = table.confused()
            tables |= {"confused": ("Most often confused", mistakes)} if mistakes else {}
            if confusion is not None:
                table.picture().to(confusion)
        if compare is not None:
            tables["compare"] = self._beside(compare, sentences, tags, answers)
        return Evaluated(self._scores(answers, tags), len(sentences), tables=tables)

    def _beside(
        self, other: Model, sentences: Sentences, tags: Sentences, answers: Sentences
    ) -> tuple[str, list[dict[str, Any]]]:
        if not isinstance(other, TextTagger) or other.text.tags.scheme != self.text.tags.scheme:
            raise UsageError(f"evaluate: --compare is a model of the task '{other.kind}' that answers otherwise.")
        theirs = other.predict(sentences)
        rows = [compare_words(tags, answers, theirs)]
        if self.text.tags.scheme is not None:
            gold, mine, beside = (self._spans(one)[0] for one in (tags, answers, theirs))
            rows.insert(0, compare_spans(gold, mine, beside))
        return "Against the other: paired bootstrap over sentences, 95 % interval", rows


def _words(sentence: Sequence[str] | str) -> list[str]:
    if isinstance(sentence, str):
        return [sentence[start:stop] for start, stop in read_words(sentence)]
    return arguments.texts("explain", "sentence", sentence)
