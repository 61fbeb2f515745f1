"""Words with tags: a word by its form, by its characters, and the closed list of tags that training rows have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from unrolled.base.errors import UsageError
from unrolled.base.protocol import END, UNKNOWN
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.labelled import Labels, UnseenLabel
from unrolled.text.spans import OUTSIDE, Scheme, Span, allowed, converted, spans_of, tags_of, writes_span
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.trees import tree_of, write_tree

TAB = "\t"
"""Stands between the words of a sentence, and between its tags."""

INNER = "▁"
"""Stands for white space inside a word, so that a word stays one symbol."""

LONGEST = 40
"""Characters of a word that are read; of a longer one its beginning and its end."""

_WHITE = re.compile(r"[\s\x1c-\x1f]+")


@dataclass(frozen=True, kw_only=True)
class TaggedSettings:
    """``tokenizer`` keeps the list of words; it must be ``whitespace``, since the words are given. ``characters``
    spells them. ``learn_as``: spans are learnt in tags of ``bioes``, ``iob2`` or those of the data (``same``), and
    written as in the data."""

    tokenizer: Annotated[Part, TOKENIZERS] = "whitespace"
    characters: Annotated[Part, TOKENIZERS] = "character"
    learn_as: Literal["bioes", "iob2", "same"] = "bioes"


class Tags:
    """The tags of training rows, and how they write spans.

    ``scheme`` is that of the user's tags, None where they are no spans but each word's own (parts of speech).
    ``learnt`` is the scheme of ``names``, what a network is taught: every tag that it has for the kinds of spans.
    """

    def __init__(self, labels: Labels, scheme: Scheme | None, learnt: Scheme | None) -> None:
        self.labels, self.scheme, self.learnt = labels, scheme, learnt
        self.names = labels.names if learnt is None else tuple(_written(labels.names, learnt))
        self._ids = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    @property
    def vocabulary_size(self) -> int:
        return len(self.names)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a word, or a span of words, may be called."""
        return self.labels.names

    def encode(self, tags: Sequence[str], places: Sequence[str] = ()) -> list[int]:
        """The numbers of a sentence's tags, as they are learnt.

        DataError names the place of a tag that breaks the scheme; UnseenTag says which word has one that is not known.
        """
        if self.scheme is not None and self.learnt is not None:
            spans = spans_of(tags, self.scheme, places)
            for span in spans:
                if span.label not in self.labels:
                    raise UnseenTag(span.start, span.label, self.kinds)
            tags = tags_of(spans, len(tags), self.learnt)
        for word, tag in enumerate(tags):
            if tag not in self._ids:
                raise UnseenTag(word, tag, self.kinds)
        return [self._ids[tag] for tag in tags]

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each sentence, given as the field of a table."""
        return [self.encode(text.split(TAB)) for text in texts]

    def decode(self, ids: Sequence[int]) -> list[str]:
        """The tags as the user writes them."""
        tags = [self.names[number] for number in ids]
        if self.scheme is None or self.learnt is None:
            return tags
        return converted(tags, self.learnt, self.scheme)

    def spans(self, tags: Sequence[str], places: Sequence[str] = ()) -> list[Span]:
        """The spans of a sentence's tags as the user writes them."""
        if self.scheme is None:
            raise UsageError("these tags are each word's own: there are no spans of words.")
        return spans_of(tags, self.scheme, places)

    def learnt_spans(self, ids: Sequence[int]) -> list[Span]:
        """The spans of a sentence's tags by their numbers."""
        return spans_of([self.names[number] for number in ids], self.learnt or "iob2")

    def allowed(self, before: str, tag: str) -> bool:
        """Whether one of ``names`` may follow another; a sentence stands between two ``O``."""
        return self.learnt is None or allowed(before, tag, self.learnt)

    def about(self) -> str:
        count = f"{len(self.labels):,}"
        if self.scheme is None:
            return f"{count} tags"
        learnt = "" if self.learnt == self.scheme else f", learnt as {self.learnt}"
        return f"spans of {count} kind{'' if len(self.labels) == 1 else 's'} in {self.scheme}{learnt}"


class UnseenTag(UnseenLabel):
    """A tag that no training row has, and the number of its word."""

    def __init__(self, word: int, tag: str, names: Sequence[str]) -> None:
        super().__init__(tag, names)
        self.word = word


class Spelt(NamedTuple):
    """A sentence as a network reads it."""

    words: list[int]
    characters: list[list[int]]


class TaggedText(Text):
    """Words through a list, their characters through another, tags by number.

    ``rare`` is the first id of the words that training rows have once; those before it they have more often.
    """

    settings = TaggedSettings

    def __init__(self, tokenizer: Tokenizer, characters: Tokenizer, tags: Tags, rare: int) -> None:
        self.tokenizer, self.characters, self.tags, self.rare = tokenizer, characters, tags, rare

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> TaggedText:
        """``rows`` are words and tags, each a field. The scheme is the one that all tags follow; see `scheme_of`."""
        words, tags = Counter[str](), [row[1].split(TAB) for row in rows()]
        for row in rows():
            words.update(spelled(row[0]))
        scheme = scheme_of(tags)
        return cls.of(settings, words, tags, scheme)

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], words: Counter[str], tags: Iterable[Sequence[str]], scheme: Scheme | None
    ) -> TaggedText:
        """What is learnt from words and how often they come, and from tags whose scheme is known."""
        tokenizer = TOKENIZERS.build(settings["tokenizer"], where="text.tokenizer")
        characters = TOKENIZERS.build(settings["characters"], where="text.characters")
        tokenizer.train(_lines(words))
        characters.train(words)
        counts = Counter[str]()
        for sentence in tags:
            counts.update(sentence if scheme is None else [span.label for span in spans_of(sentence, scheme)])
        learnt = scheme if scheme is None or settings["learn_as"] == "same" else settings["learn_as"]
        text = TaggedText(tokenizer, characters, Tags(Labels(counts, counts.total()), scheme, learnt), 0)
        text.rare = text._first_rare(words)
        return text

    def _first_rare(self, words: Counter[str]) -> int:
        """Ids go from frequent to rare."""
        often = Counter[int]()
        for ids, count in zip(self.tokenizer.encode_ids(list(words)), words.values(), strict=True):
            often[ids[0]] += count
        once = [number for number, count in often.items() if count == 1 and number > END]
        return min(once, default=self.tokenizer.vocabulary_size)

    # --- sentences to ids -----------------------------------------------------------------------------------------

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.vocabulary_size

    def spell(self, words: Sequence[str]) -> Spelt:
        """The ids of a sentence's words, and of the characters of each."""
        field = TAB.join(words)
        return Spelt(WordIds(self.tokenizer).encode_ids([field])[0], letters(self.characters, [field])[0])

    # --- files ----------------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        tags = self.tags
        said = (tags.labels.names, tags.labels.counts, tags.scheme, tags.learnt, self.rare)
        return f"{self.tokenizer.fingerprint()} {self.characters.fingerprint()} {said!r}"

    def save(self, folder: str | Path) -> None:
        folder, labels = Path(folder), self.tags.labels
        tree: dict[str, Any] = {"labels": labels.names, "counts": labels.counts, "scheme": self.tags.scheme}
        tree |= {"learnt": self.tags.learnt, "rare": self.rare}
        write_tree(folder / "tags.json", tree)
        self.tokenizer.save(folder / "words.json")
        self.characters.save(folder / "characters.json")

    @classmethod
    def load(cls, folder: str | Path) -> TaggedText:
        with tree_of(Path(folder) / "tags.json", "tags") as tree:
            labels = Labels(dict(zip(tree["labels"], map(int, tree["counts"]), strict=True)), sum(tree["counts"]))
            tags, rare = Tags(labels, tree["scheme"], tree["learnt"]), int(tree["rare"])
        words, characters = (Tokenizer.load(Path(folder) / f"{name}.json") for name in ("words", "characters"))
        return TaggedText(words, characters, tags, rare)

    def about(self) -> dict[str, str]:
        return {"word": self.tokenizer.about(), "character": self.characters.about(), "tag": self.tags.about()}


class WordIds:
    """The ids of words, one each, from fields."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.vocabulary_size

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        rows = [spelled(text) for text in texts]
        found = iter(self.tokenizer.encode_ids([word for row in rows for word in row]))
        return [[one[0] if len(one := next(found)) == 1 else UNKNOWN for _ in row] for row in rows]


class LetterIds:
    """The ids of the characters of words, END behind each word, from fields."""

    def __init__(self, characters: Tokenizer) -> None:
        self.characters = characters

    @property
    def vocabulary_size(self) -> int:
        return self.characters.vocabulary_size

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[one for word in row for one in (*word, END)] for row in letters(self.characters, texts)]


def letters(characters: Tokenizer, fields: Sequence[str]) -> list[list[list[int]]]:
    """The characters of each word of each field; one at least, and of a long word its beginning and its end."""
    rows = [spelled(field) for field in fields]
    found = iter(characters.encode_ids([word for row in rows for word in row]))
    return [[_shortened(next(found)) or [UNKNOWN] for _ in row] for row in rows]


def spelled(field: str) -> list[str]:
    """The words of a sentence's field, each without white space."""
    return [_whole(word) for word in field.split(TAB)]


def scheme_of(sentences: Sequence[Sequence[str]]) -> Scheme | None:
    """The scheme that all tags follow, None where they write no spans. Where none is followed throughout, the one that
    most sentences follow: reading the tags then names the place."""
    tags = {tag for sentence in sentences for tag in sentence}
    if not tags or not all(map(writes_span, tags)) or tags == {OUTSIDE}:
        return None
    kinds = {tag[0] for tag in tags}
    if kinds & {"E", "S"}:
        return "bioes"
    broken = {scheme: sum(not _follows(sentence, scheme) for sentence in sentences) for scheme in ("iob2", "iob1")}
    return "iob2" if broken["iob2"] <= broken["iob1"] else "iob1"


def _follows(tags: Sequence[str], scheme: Scheme) -> bool:
    pairs = zip([OUTSIDE, *tags], [*tags, OUTSIDE], strict=True)
    return all(allowed(before, tag, scheme) for before, tag in pairs)


def _written(kinds: Sequence[str], scheme: Scheme) -> Iterator[str]:
    """Every tag that a scheme has for ``kinds``."""
    yield OUTSIDE
    for kind in kinds:
        for mark in "BIES" if scheme == "bioes" else "BI":
            yield f"{mark}-{kind}"


def _whole(word: str) -> str:
    return _WHITE.sub(INNER, word) or INNER


def _shortened(ids: list[int]) -> list[int]:
    return ids if len(ids) <= LONGEST else ids[: LONGEST // 2] + ids[-LONGEST // 2 :]


def _lines(words: Counter[str], most: int = 1000) -> Iterator[str]:
    for word, count in words.items():
        for start in range(0, count, most):
            yield " ".join([word] * min(most, count - start))
