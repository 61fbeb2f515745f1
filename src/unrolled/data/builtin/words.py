"""A word is a table of forms; where it stands (gender, number, person, the form asked for) chooses one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["plain", "noun", "adjective", "verb"]


@dataclass(slots=True)
class Agreement:
    """What the words of one domain share. None: not decided yet, or the default (masculine, singular, third)."""

    gender: str | None = None
    number: str | None = None
    person: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """Forms by key: plain ``""``, noun ``singular``, adjective ``feminine plural``, verb ``third singular`` or a name.

    ``vowel`` holds the forms used before a vowel (bel, cet, mon amie); ``gender`` is what a noun gives its domain;
    ``aspirated`` says that nothing is elided before it (le hibou, le onze); ``article`` that it contracts (de le → du).
    """

    kind: Kind
    forms: Mapping[str, str]
    gender: str | None = None
    vowel: Mapping[str, str] = field(default_factory=dict)
    aspirated: bool = False
    article: bool = False

    def key(self, agreement: Agreement, form: str | None) -> str:
        if self.kind == "plain":
            return ""
        number = agreement.number or "singular"
        if self.kind == "noun":
            return number
        if self.kind == "verb" and form not in (None, "past", "participle"):
            return str(form)
        if self.kind == "adjective" or form == "participle":
            agreeing = f"{agreement.gender or 'masculine'} {number}"
            return f"participle {agreeing}" if form == "participle" else agreeing
        key = f"{agreement.person or 'third'} {number}"
        return f"past {key}" if form == "past" else key

    def spell(self, agreement: Agreement, form: str | None) -> str:
        return self.forms[self.key(agreement, form)]


def plain(text: str, *, aspirated: bool = False) -> Word:
    """A word of one form."""
    return Word("plain", {"": text}, aspirated=aspirated)


PEOPLE = [f"{person} {number}" for number in ("singular", "plural") for person in ("first", "second", "third")]
"""The six places of a verb's table: je, tu, il, nous, vous, ils."""

AGREEING = ["masculine singular", "feminine singular", "masculine plural", "feminine plural"]
"""The four places of an adjective's table."""
