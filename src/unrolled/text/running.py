"""Running text: one tokenizer, and a symbol of its own for the end of a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from unrolled.base.errors import UnrolledError
from unrolled.base.protocol import SPECIALS
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer

LINE = len(SPECIALS)
"""The id of the end of a line; the tokenizer's own symbols stand one higher than it counts them."""

NAME = "\n"


@dataclass(frozen=True, kw_only=True)
class RunningSettings:
    """Which tokenizer reads the text: ``character``, ``word``, ``bpe``, …"""

    tokenizer: Annotated[Part, TOKENIZERS] = "bpe"


class RunningText(Text):
    """Lines through a tokenizer, each end of a line a symbol, whatever the tokenizer makes of white space."""

    settings = RunningSettings

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> RunningText:
        tokenizer = TOKENIZERS.build(settings["tokenizer"], where="text.tokenizer")
        tokenizer.train(line for row in rows() for line in row[0].split(NAME) if line)
        return RunningText(tokenizer)

    def fingerprint(self) -> str:
        return self.tokenizer.fingerprint()

    def save(self, folder: str | Path) -> None:
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnrolledError(f"{folder}: the folder cannot be made ({error.strerror}).") from None
        self.tokenizer.save(folder / "text.json")

    @classmethod
    def load(cls, folder: str | Path) -> RunningText:
        return RunningText(Tokenizer.load(Path(folder) / "text.json"))

    def about(self) -> dict[str, str]:
        return {"text": self.tokenizer.about(others=1)}

    # --- text to ids ----------------------------------------------------------------------------------------------

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.vocabulary_size + 1

    def network_ids(self, symbols: Sequence[int]) -> list[int]:
        return [symbol + (symbol >= LINE) for symbol in symbols]

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The symbols of each text, which may hold ends of lines; without special ones."""
        lines = [text.split(NAME) for text in texts]
        found = iter(self.tokenizer.encode_ids([line for each in lines for line in each]))
        rows = []
        for each in lines:
            row: list[int] = []
            for place in range(len(each)):
                if place:
                    row.append(LINE)
                row += self.network_ids(next(found))
            rows.append(row)
        return rows

    # --- ids to text ----------------------------------------------------------------------------------------------

    def decode(self, ids: Iterable[int]) -> str:
        """Text again; padding, begin and end are skipped, an unknown symbol is written ``<unk>``."""
        lines: list[list[int]] = [[]]
        for symbol in ids:
            if symbol == LINE:
                lines.append([])
            else:
                lines[-1].append(symbol - (symbol > LINE))
        return NAME.join(self.tokenizer.decode(line) for line in lines)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The name of each id, special ones too; an end of a line is a line feed."""
        return [NAME if symbol == LINE else self.tokenizer.tokens([symbol - (symbol > LINE)])[0] for symbol in ids]

    def normalize(self, text: str) -> str:
        """``text`` as the symbols spell it: what its characters are counted in."""
        return NAME.join(self.tokenizer.normalize(line) for line in text.split(NAME))
