"""English: regular forms, the few words that inflect in rules, and the choice between a and an."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.data.builtin.words import AGREEING, PEOPLE, Word, plain


def plural(noun: str) -> str:
    """The regular plural: ``box`` → ``boxes``, ``story`` → ``stories``."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def third(verb: str) -> str:
    """The third person singular: ``watch`` → ``watches``, ``cry`` → ``cries``."""
    return verb + "es" if verb.endswith("o") else plural(verb)


def noun(singular: str, many: str = "") -> Word:
    return Word("noun", {"singular": singular, "plural": many or plural(singular)})


def verb(base: str, participle: str = "") -> Word:
    forms = dict.fromkeys(PEOPLE, base) | {"third singular": third(base), "base": base}
    return Word("verb", forms | {f"participle {place}": participle for place in AGREEING})


def _table(forms: Sequence[str], past: Sequence[str] = ()) -> Word:
    table = dict(zip(PEOPLE, forms, strict=True)) | {"base": forms[0]}
    return Word("verb", table | {f"past {place}": form for place, form in zip(PEOPLE, past, strict=False)})


INFLECTED = {
    "be": _table(["am", "are", "is", "are", "are", "are"], ["was", "were", "was", "were", "were", "were"]),
    "do": _table(["do", "do", "does", "do", "do", "do"]),
    "this": Word("noun", {"singular": "this", "plural": "these"}),
}
"""Words that inflect when a rule names them."""

_SOUNDS_LIKE_A_CONSONANT = ("European", "union", "unit", "uni", "one")


def join(words: Sequence[str]) -> list[str]:
    """The words with ``a`` turned to ``an`` where the next one begins with a vowel sound."""
    return [
        "an"
        if word == "a" and after[:1].lower() in "aeiou" and not after.startswith(_SOUNDS_LIKE_A_CONSONANT)
        else word
        for word, after in zip(words, [*words[1:], "."], strict=True)
    ]


def literal(text: str) -> Word:
    """The word that a rule names."""
    return INFLECTED.get(text) or plain(text)


_UNITS = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def number(value: int) -> Word:
    """A whole number from 0 to 99 in words: ``eighty-one``."""
    if value < len(_UNITS):
        return plain(_UNITS[value])
    tens, unit = divmod(value, 10)
    return plain(_TENS[tens] + (f"-{_UNITS[unit]}" if unit else ""))
