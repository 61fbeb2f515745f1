"""Settings that follow from the data: the default preset sizes itself to how much there is to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unrolled.base.settings import Tree
from unrolled.workshop.sources import Part

UNSIZED: Tree = {"text": {"source": {"kind": "bpe"}, "target": {"kind": "bpe"}}}
"""What stands in the place of a Sized tree while the data are not opened yet, so that a size alone can be set."""


class Sized(NamedTuple):
    """A layer of settings below all others, and what it rests on."""

    origin: str
    tree: Tree
    rows: int

    def sentences(self, origins: Mapping[str, str]) -> list[str]:
        """What to say: how many rows there are, and of each side that nothing else decides how it is read."""
        said = [f"{self.rows:,} rows to train on."]
        for side, kind in self.tree["text"].items():
            if origins.get(f"text.{side}.kind") == self.origin:
                said.append(f"The {side} side is {_say(kind)}.")
        return said


def size_to(part: Part) -> Sized:
    """Tokenizers and vocabulary sizes for these rows: what a user would otherwise have to look up.

    Sides of single words are read letter by letter; sides whose items are one letter or a few symbols set apart by
    spaces (phonemes, commands, letters) item by item; running text in subwords, the more rows the more of them.
    """
    rows, text = 0, {0: Side(), 1: Side()}
    for row in part.rows():
        rows += 1
        if rows <= 20_000:
            for index, side in text.items():
                side.see(row.fields[index])
    kinds = [side.kind(rows) for side in text.values()]
    tree: Tree = {"text": {"source": kinds[0], "target": kinds[1]}}
    return Sized(f"sized to {rows} rows", tree, rows)


class Side:
    """What one column looks like."""

    def __init__(self) -> None:
        self.rows = self.words = self.letters = self.spaced = 0
        self.different: set[str] = set()

    def see(self, text: str) -> None:
        words = text.split()
        self.rows += 1
        self.words += len(words)
        self.letters += len(text)
        if len(self.different) < 5000:
            self.different.update(words)

    def kind(self, rows: int) -> dict[str, Any]:
        """The tokenizer for this column."""
        words_a_row = self.words / max(self.rows, 1)
        if words_a_row < 1.5:
            return {"kind": "character"}
        if len(self.different) <= 200 and words_a_row >= 2:
            return {"kind": "whitespace"}
        return {"kind": "bpe", "size": 4000 if rows < 20_000 else 8000 if rows < 200_000 else 16_000}


def _say(kind: dict[str, Any]) -> str:
    if kind["kind"] == "bpe":
        return f"running text, read in up to {kind['size']:,} subwords"
    if kind["kind"] == "character":
        return "single words, read letter by letter"
    return "few symbols set apart by spaces, read one by one"
