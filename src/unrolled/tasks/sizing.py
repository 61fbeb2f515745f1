"""Settings that follow from the data: presets size themselves to how much there is to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrolled.data.parts import Part
from unrolled.tasks.base import Sized

LOOKED_AT = 20_000
"""Rows by which a column is judged."""


def size_columns(part: Part, settings: Mapping[str, int]) -> Sized:
    """Tokenizers and vocabulary sizes for these rows: what a user would otherwise have to look up.

    ``settings`` maps the setting of a tokenizer (``text.source``) to the column (its place in a row) that it reads.
    Columns of single words are read letter by letter; columns whose items are one letter or a few symbols set apart by
    spaces (phonemes, commands, letters) item by item; running text in subwords, the more rows the more of them.
    """
    rows, sides = 0, {path: Side() for path in settings}
    for row in part.rows():
        rows += 1
        if rows <= LOOKED_AT:
            for path, index in settings.items():
                sides[path].see(row.fields[index])
    kinds = {path: side.kind(rows) for path, side in sides.items()}
    origin = f"sized to {rows} rows"

    def said(origins: Mapping[str, str]) -> list[str]:
        found = [f"{rows:,} rows to train on."]
        for path, kind in kinds.items():
            if origins.get(f"{path}.kind") == origin:
                name = path.rsplit(".", 1)[-1]
                found.append(f"The {'text' if name == 'tokenizer' else f'{name} side'} is {_say(kind)}.")
        return found

    tree: dict[str, Any] = {}
    for path, kind in kinds.items():
        section, _, name = path.partition(".")
        tree.setdefault(section, {})[name] = kind
    return Sized(origin, tree, said)


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
