"""Whether a space stands before a word that is put in where a symbol was unknown, which says nothing of it."""

from __future__ import annotations

import unicodedata

from unrolled.text.offsets import SPACE


def spaced(word: str, before: str, behind: str = "") -> bool:
    """Whether ``word`` stands apart from the symbol that is named ``before``, "" for none.

    It does, but after what opens (a bracket, a quotation mark that itself follows a space), and where it stood in its
    own text right ``behind`` a character ("" where it stood apart there): behind the same one, as in ``l'eau``, and if
    it is no word but a mark, behind any.
    """
    last = before[-1:]
    opens = bool(last) and (unicodedata.category(last) == "Ps" or last in "¿¡")
    quotes = len(before) == 2 and before[0] == SPACE and (last in "'\"" or unicodedata.category(last) == "Pi")
    held = bool(behind) and (behind == last or not any(map(str.isalnum, word)))
    return not (opens or quotes or held)


def behind(text: str, start: int) -> str:
    """The character right before the place ``start`` of a text; "" where there is none, or white space."""
    return text[start - 1 : start].strip() if start else ""
