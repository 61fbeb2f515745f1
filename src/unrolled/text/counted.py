"""Text as single words: one tokenizer, and how often each word stands in the training text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from unrolled.base.protocol import SPECIALS
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.trees import tree_of, write_tree

CHUNK = 4096
"""Rows that are counted together."""


@dataclass(frozen=True, kw_only=True)
class CountedSettings:
    """Which tokenizer cuts the text into words."""

    tokenizer: Annotated[Part, TOKENIZERS] = "plain_word"


class CountedText(Text):
    """Lines through a tokenizer, and ``counts``, of each symbol in the training text."""

    settings = CountedSettings

    def __init__(self, tokenizer: Tokenizer, counts: Sequence[int]) -> None:
        self.tokenizer, self.counts = tokenizer, tuple(counts)

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> CountedText:
        tokenizer = TOKENIZERS.build(settings["tokenizer"], where="text.tokenizer")
        tokenizer.train(row[0] for row in rows())
        counts = np.zeros(tokenizer.vocabulary_size, np.int64)
        lines = (row[0] for row in rows())
        while block := list(islice(lines, CHUNK)):
            ids = [one for row in tokenizer.encode_ids(block) for one in row]
            counts += np.bincount(ids, minlength=len(counts)) if ids else 0
        return CountedText(tokenizer, counts.tolist())

    def fingerprint(self) -> str:
        return f"{self.tokenizer.fingerprint()} {sum(self.counts)}"

    def save(self, folder: str | Path) -> None:
        path = Path(folder) / "counts.json"
        write_tree(path, {"counts": self.counts})
        self.tokenizer.save(path.with_name("text.json"))

    @classmethod
    def load(cls, folder: str | Path) -> CountedText:
        tokenizer = Tokenizer.load(Path(folder) / "text.json")
        with tree_of(Path(folder) / "counts.json", "counts") as tree:
            counts = [int(count) for count in tree["counts"]]
            if len(counts) != tokenizer.vocabulary_size:
                raise ValueError
        return CountedText(tokenizer, counts)

    def about(self) -> dict[str, str]:
        return {"text": f"{self.tokenizer.about()}, {sum(self.counts[len(SPECIALS) :]):,} words in all"}

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.vocabulary_size

    @property
    def words(self) -> tuple[str, ...]:
        """The words, by id less that of the first: special symbols are none."""
        return tuple(self.tokenizer.surface(name) for name in self.tokenizer.vocabulary[len(SPECIALS) :])

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The symbols of each text, unknown words among them."""
        return self.tokenizer.encode_ids(texts)
