"""Documents and questions as symbols; answers by number: of a list, of the document's entities, or as spans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from unrolled.base.errors import DataError
from unrolled.base.protocol import UNKNOWN
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.labelled import Labels
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.trees import tree_of, write_tree

Span = tuple[int, int]
Answering = Literal["entity", "anonymous", "span"]
"""What an answer is: one of a closed list; an entity of its own document, whatever it is called; a piece of it."""

TAB = "\t"
NAMED = re.compile(r"@entity\d+")
"""How the entities of the CNN and Daily Mail corpora are called."""


@dataclass(frozen=True, kw_only=True)
class ReadingSettings:
    """Which tokenizer reads documents and questions."""

    tokenizer: Annotated[Part, TOKENIZERS] = "plain_word"


class Passage(NamedTuple):
    """A document and a question as symbols, without END."""

    ids: list[int]
    spans: list[Span]  # of each symbol in the document
    question_ids: list[int]
    question_spans: list[Span]
    entities: tuple[str, ...]  # by number, where entities are anonymous: as they are first called
    candidates: tuple[int, ...]  # the numbers of the answers that come into question; none: all


class ReadText(Text):
    """One tokenizer for documents and questions, and what answers there are.

    ``labels``: the answers and candidates of training rows, how often each is the answer; of spans only the commonest.
    ``nowhere``: some training rows have no answer in their document, and a span may be none.
    ``slots``: most entities of a training row, where they are anonymous: an entity is then the symbol
    ``tokenizer.vocabulary_size`` + its number, counted by where it first stands in document and question, so that its
    name says nothing.
    """

    settings = ReadingSettings

    def __init__(
        self, tokenizer: Tokenizer, labels: Labels, answering: Answering, slots: int = 0, *, nowhere: bool = False
    ) -> None:
        self.tokenizer, self.labels, self.answering, self.slots = tokenizer, labels, answering, slots
        self.nowhere = nowhere
        self.entity_pattern = _pattern(labels.names if answering == "anonymous" else ())

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows, answering: Answering = "entity") -> ReadText:
        """``rows`` have document, question, answers and candidates, several with tabs between; no answers: there is
        none in the document."""
        answers: Counter[str] = Counter()
        names: dict[str, None] = {}
        count = 0
        for row in rows():
            first, *_ = row[2].split(TAB)
            answers[first] += 1
            count += 1
            names.update(dict.fromkeys(one for one in row[3].split(TAB) if one))
        nowhere = "" in answers
        if answering == "span":
            answers = Counter(dict(answers.most_common(1)))
        labels = Labels(answers, count).admitting(names if answering != "span" else ())
        tokenizer = TOKENIZERS.build(settings["tokenizer"], where="text.tokenizer")
        text = ReadText(tokenizer, labels, answering, nowhere=nowhere)
        if answering != "anonymous":
            tokenizer.train(one for row in rows() for one in row[:2])
            return text
        tokenizer.train(" ".join(piece) for row in rows() for one in row[:2] if (piece := text.outside(one)))
        text.slots = max(len(text.called(row[0], row[1])) for row in rows())
        return text

    def fingerprint(self) -> str:
        nowhere = " nowhere" if self.nowhere else ""
        return f"{self.tokenizer.fingerprint()} {self.labels.fingerprint()} {self.answering} {self.slots}{nowhere}"

    def save(self, folder: str | Path) -> None:
        self.labels.save(Path(folder))
        self.tokenizer.save(Path(folder) / "text.json")
        tree = {"answering": self.answering, "slots": self.slots}
        write_tree(Path(folder) / "reading.json", tree | ({"nowhere": True} if self.nowhere else {}))

    @classmethod
    def load(cls, folder: str | Path) -> ReadText:
        with tree_of(Path(folder) / "reading.json", "reading") as tree:
            answering, slots, nowhere = tree["answering"], int(tree["slots"]), tree.get("nowhere") is True
        tokenizer = Tokenizer.load(Path(folder) / "text.json")
        return ReadText(tokenizer, Labels.load(folder), answering, slots, nowhere=nowhere)

    def about(self) -> dict[str, str]:
        """How each column is read, in words."""
        said = {
            "entity": f"one of {len(self.labels):,}",
            "anonymous": f"an entity of the document, at most {self.slots} in one",
            "span": f"a span of the document{', or none' if self.nowhere else ''}",
        }
        return {"document and question": self.tokenizer.about(), "answer": said[self.answering]}

    # --- sizes ----------------------------------------------------------------------------------------------------

    @property
    def vocabulary_size(self) -> int:
        """Symbols that the network reads, entities among them."""
        return self.tokenizer.vocabulary_size + self.slots

    @property
    def answers(self) -> int:
        """How many numbers an answer may have; 0: it is a span."""
        return {"entity": len(self.labels), "anonymous": self.slots, "span": 0}[self.answering]

    @property
    def commonest(self) -> str:
        """The answer that most training rows have."""
        return max(zip(self.labels.counts, self.labels.names, strict=True), key=lambda one: one[0])[1]

    def symbols(self) -> list[int]:
        """Of each symbol that the network reads the number of the answer that it spells; -1 where it spells none."""
        found = [-1] * self.vocabulary_size
        if self.answering == "entity":
            for number, ids in enumerate(self.tokenizer.encode_ids(self.labels.names)):
                if len(ids) == 1 and ids[0] != UNKNOWN:
                    found[ids[0]] = number
        for number in range(self.slots):
            found[self.tokenizer.vocabulary_size + number] = number
        return found

    # --- entities -------------------------------------------------------------------------------------------------

    def called_as(self, name: str) -> str:
        return name.casefold() if self.tokenizer.settings.get("lowercase") else name

    def _entities(self, candidates: Sequence[str] = ()) -> re.Pattern[str]:
        """What entities look like, where some come into question that training rows did not have."""
        if self.answering != "anonymous" or all(name in self.labels for name in candidates):
            return self.entity_pattern
        return _pattern((*self.labels.names, *candidates))

    def called(self, document: str, question: str, candidates: Sequence[str] = ()) -> dict[str, str]:
        """The entities in document and question, in the order in which they first stand there: what tells each from the
        others → how it is written there first."""
        found: dict[str, str] = {}
        for text in (document, question):
            for one in self._entities(candidates).finditer(text):
                found.setdefault(self.called_as(one[0]), one[0])
        return found

    def outside(self, text: str) -> list[str]:
        """The pieces of a text between its entities."""
        cuts = [0, *(end for one in self.entity_pattern.finditer(text) for end in one.span()), len(text)]
        return [
            piece
            for piece in (text[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True))
            if piece.strip()
        ]

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, document: str, question: str, candidates: Sequence[str] = ()) -> Passage:
        """The symbols of a document and a question. Candidates that no training row knows are left out; DataError where
        that leaves none."""
        entities = self.called(document, question, candidates)
        numbers = {name: number for number, name in enumerate(entities)}
        pattern = self._entities(candidates)
        one, other = (self._symbols(text, pattern, numbers) for text in (document, question))
        if self.answering == "anonymous":
            known = [numbers.get(self.called_as(name), -1) for name in candidates]
        else:
            known = [self.labels.number(name) for name in candidates] if self.answering == "entity" else []
        known = [number for number in known if 0 <= number < self.answers]
        if self.answering == "entity" and candidates and not known:
            raise DataError(
                f"none of the candidates ({', '.join(candidates[:5])}) is an answer or a candidate of training rows. "
                "Give one that is, or leave the candidates out."
            )
        return Passage(*one, *other, tuple(entities.values()), tuple(dict.fromkeys(known)))

    def _symbols(self, text: str, pattern: re.Pattern[str], numbers: Mapping[str, int]) -> tuple[list[int], list[Span]]:
        ids: list[int] = []
        spans: list[Span] = []
        begin = 0
        for entity in (*pattern.finditer(text), None):
            piece = text[begin : len(text) if entity is None else entity.start()]
            if piece.strip():
                encoded = self.tokenizer.encode(piece)
                ids += encoded.ids
                spans += [(start + begin, end + begin) for start, end in encoded.spans]
            if entity is not None:
                number = numbers[self.called_as(entity[0])]
                ids.append(self.tokenizer.vocabulary_size + number if number < self.slots else UNKNOWN)
                spans.append(entity.span())
                begin = entity.end()
        return ids, spans

    def number(self, passage: Passage, answer: str, place: Span | None) -> list[int]:
        """What the network is to say: the number of the answer, or of a span its first and last symbol. DataError where
        it cannot say it; ``place`` is where the answer stands in the document, None: nowhere. An empty answer is that
        there is none, and then both ends are the END of the document."""
        if self.answering == "entity":
            return self.labels.encode_ids([answer])[0]
        if self.answering == "anonymous":
            names = [self.called_as(name) for name in passage.entities]
            number = names.index(self.called_as(answer)) if self.called_as(answer) in names else -1
            first = self.tokenizer.vocabulary_size
            if not 0 <= number < self.slots or first + number not in passage.ids:
                raise DataError(
                    f"the answer '{answer[:60]}' is no entity of the document: {', '.join(passage.entities[:6])}. An "
                    "anonymous one is told by its document alone; leave the row out, or take task.answer=entity."
                )
            return [number]
        if not answer:
            if not self.nowhere:
                raise DataError(
                    "the document is said not to answer it, and no training row is so: this model cannot say that "
                    "there is no answer. Leave the row out, or train on such rows too."
                )
            return [len(passage.ids)] * 2
        touched = [
            symbol
            for symbol, (start, end) in enumerate(passage.spans)
            if place is not None and start < place[1] and end > place[0]
        ]
        if not touched:
            raise DataError(f"the answer '{answer[:60]}' does not stand in the document, and is to be found there.")
        return [touched[0], touched[-1]]


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Where entities stand in a text: as corpora have named them, else ``names``, whole words."""
    if any(NAMED.fullmatch(name) for name in names):
        return NAMED
    longest = sorted(filter(None, names), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?!\w)", re.IGNORECASE)
