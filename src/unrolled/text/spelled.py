"""Text by its words, each read by its characters and predicted by its number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge

from unrolled.base.protocol import BEGIN, END, SPECIALS, UNKNOWN
from unrolled.text.base import Rows, Text
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.trees import tree_of, write_tree

Words = Literal["read", "white_space"]
"""Where words begin and end: as a reader sees them, marks and clitics for themselves, or at white space alone."""


@dataclass(frozen=True, kw_only=True)
class SpelledSettings:
    """``words``: cut where a reader sees them (``do | n't | stop | .``) or at white space alone (``white_space``: for
    text whose words are set apart already). The ``size`` most frequent words that are seen ``min_count`` times can be
    predicted, the others are ``<unk>``; every word is read, by its first ``longest`` characters."""

    words: Words = "read"
    size: Annotated[int, Ge(len(SPECIALS) + 1)] = 30_000
    min_count: Annotated[int, Ge(1)] = 2
    longest: Annotated[int, Ge(1)] = 40


class SpelledText(Text):
    """Lines as words: spans in the line, spellings, numbers."""

    settings = SpelledSettings

    def __init__(self, vocabulary: Tokenizer, characters: Tokenizer, words: Words, longest: int) -> None:
        self.vocabulary, self.characters, self.words, self.longest = vocabulary, characters, words, longest

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> SpelledText:
        vocabulary = TOKENIZERS.build(
            {"kind": "whitespace", "size": settings["size"], "min_count": settings["min_count"]}
        )
        text = SpelledText(vocabulary, TOKENIZERS.build("character"), settings["words"], settings["longest"])

        def lines() -> Iterator[str]:
            return (" ".join(text.cut(row[0])) for row in rows())

        text.vocabulary.train(lines())
        text.characters.train(line.replace(" ", "") for line in lines())
        return text

    def fingerprint(self) -> str:
        return f"{self.vocabulary.fingerprint()} {self.characters.fingerprint()} {self.words} {self.longest}"

    def save(self, folder: str | Path) -> None:
        folder = Path(folder)
        write_tree(folder / "spelling.json", {"words": self.words, "longest": self.longest})
        self.vocabulary.save(folder / "words.json")
        self.characters.save(folder / "characters.json")

    @classmethod
    def load(cls, folder: str | Path) -> SpelledText:
        folder = Path(folder)
        with tree_of(folder / "spelling.json", "spelling") as tree:
            words, longest = tree["words"], int(tree["longest"])
        vocabulary, characters = (Tokenizer.load(folder / name) for name in ("words.json", "characters.json"))
        return SpelledText(vocabulary, characters, words, longest)

    def about(self) -> dict[str, str]:
        how = "as a reader sees them" if self.words == "read" else "set apart by white space"
        return {
            "text": f"words {how}, {self.characters.vocabulary_size:,} characters, "
            f"{self.vocabulary_size:,} words to predict"
        }

    @property
    def vocabulary_size(self) -> int:
        """Words that can be predicted, special ones too."""
        return self.vocabulary.vocabulary_size

    # --- text to numbers ------------------------------------------------------------------------------------------

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where each word of a line stands."""
        return spans_of_words(line, self.words)

    def cut(self, line: str) -> list[str]:
        """The words of a line."""
        return [line[start:stop] for start, stop in self.spans(line)]

    def numbers(self, words: Sequence[str]) -> list[int]:
        """The number of each word to predict; UNKNOWN for others."""
        return [row[0] if len(row) == 1 else UNKNOWN for row in self.vocabulary.encode_ids(words)]

    def spell(self, words: Sequence[str]) -> list[list[int]]:
        """The characters of each word, between BEGIN and END."""
        rows = self.characters.encode_ids([word[: 4 * self.longest] for word in words])
        return [[BEGIN, *row[: self.longest], END] for row in rows]

    def names(self, numbers: Iterable[int]) -> list[str]:
        """The words of numbers."""
        return self.vocabulary.tokens(numbers)


_READER = TOKENIZERS.build("word")


def spans_of_words(line: str, words: Words) -> list[tuple[int, int]]:
    """Where each word of a line stands."""
    if words == "white_space":
        return [found.span() for found in re.finditer(r"\S+", line)]
    return _READER.words(line)
