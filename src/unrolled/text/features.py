"""Features of a text (``V;IMP;NOM(2,SG)``, a language, a style): a closed list of values, cut where they are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge
from tokenizers import Tokenizer as Library
from tokenizers import models, normalizers

from unrolled.base.protocol import SPECIALS
from unrolled.text.offsets import valid
from unrolled.text.tokenizer import TOKENIZERS, Encoded, Tokenizer

BETWEEN = frozenset(";|,")
"""What separates values, beside white space."""


class Value(NamedTuple):
    """One value of a cell, ``text[start:end]``; ``within`` is the value whose brackets it stands in, or empty."""

    within: str
    name: str
    start: int
    end: int

    @property
    def symbol(self) -> str:
        return f"{self.within}({self.name}" if self.within else self.name


def values_of(text: str) -> list[Value]:
    """The values of a cell in order; what stands in brackets belongs to the value before them.

    A bracket that nothing closes ends with the cell; one that closes nothing separates.

    >>> [one.symbol for one in values_of("V;IMP;NOM(2,SG)")]
    ['V', 'IMP', 'NOM', 'NOM(2', 'NOM(SG']
    """
    found: list[Value] = []
    owners, begin, last = [""], 0, ""
    for place, character in enumerate(f"{text} "):
        if character in "()" or character in BETWEEN or character.isspace():
            if begin < place:
                last = text[begin:place]
                found.append(Value(owners[-1], last, begin, place))
            if character == "(":
                owners.append(last)
            elif character == ")" and len(owners) > 1:
                owners.pop()
            last, begin = "", place + 1
    return found


@TOKENIZERS.register("features")
class Features(Tokenizer):
    """Values between semicolons, bars, commas or white space: ``V;PST`` is ``V`` ``PST``.

    A value in brackets is another symbol than the same outside, and within another value: ``NOM(2,SG)`` is ``NOM``
    ``NOM(2`` ``NOM(SG``, ``ABL(PL;PSS(2,PL))`` is ``ABL`` ``ABL(PL`` ``ABL(PSS`` ``PSS(2`` ``PSS(PL``. Values seen
    fewer than ``min_count`` times are ``<unk>``.
    """

    kind = "features"

    def __init__(self, *, min_count: Annotated[int, Ge(1)] = 1) -> None:
        super().__init__({"min_count": min_count})

    def _outline(self) -> Library:
        outline = Library(models.WordLevel({}, unk_token=SPECIALS[1]))
        outline.normalizer = normalizers.NFC()
        return outline

    def _units(self, line: str) -> list[str]:
        return [one.symbol for one in values_of(self.normalize(line))]

    def _cut(self, unit: str) -> list[str]:
        return [unit]

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        known = [name for name, count in counts if count >= self.settings["min_count"] and name not in SPECIALS]
        return models.WordLevel({name: i for i, name in enumerate([*SPECIALS, *known])}, unk_token=SPECIALS[1])

    def encode_batch(self, texts: Sequence[str]) -> list[Encoded]:
        return [self._encoded(valid(text)) for text in texts]

    def _encoded(self, text: str) -> Encoded:
        values = values_of(text)
        ids = [self.id_of(self.normalize(one.symbol)) for one in values]
        return Encoded(ids, self.tokens(ids), [(one.start, one.end) for one in values])

    def words(self, text: str) -> list[tuple[int, int]]:
        return [(one.start, one.end) for one in values_of(text)]

    def _join(self, tokens: Sequence[str]) -> str:
        """The cell with its brackets, which reads as the same symbols again where each owner stands before its own."""
        written, owners, last = "", [""], ""
        for token in tokens:
            within, _, name = token.rpartition("(")
            if within and within == last:
                written += "("
                owners.append(within)
            else:
                while len(owners) > 1 and owners[-1] != within:
                    written += ")"
                    owners.pop()
                written += ";" if written else ""
            written += name if owners[-1] == within else f"{token})"
            last = name
        return written + ")" * (len(owners) - 1)
