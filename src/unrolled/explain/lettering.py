"""How a word is shown: harmless characters only, and as wide as a terminal or a page will draw it."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # would turn the rest of a line round
_THIN, _BROAD = frozenset("iljtfrI.,;:!'|()[]{}`´‘’-·"), frozenset("mwMWQO@%—…")
LEFT_TO_RIGHT = "\u200e"


def printable(text: str) -> str:
    """``text`` with line ends, tabs and controls as their pictures, lone surrogates as U+FFFD, overrides dropped.

    >>> printable("a\\tb")
    'a␉b'
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF or (code & 0xFFFE) == 0xFFFE or character in "\u2028\u2029":
        return "\ufffd"
    return "" if character in _HIDDEN else character


def cells(text: str) -> int:
    """Columns that ``text`` takes in a terminal (Unicode Annex 11): 2 for wide, 0 for combining characters."""
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    code = ord(character)
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or 0x1160 <= code <= 0x11FF:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, width: int) -> str:
    """``text`` cut with an ellipsis to at most ``width`` (≥ 1) terminal columns."""
    if cells(text) <= width:
        return text
    taken, kept = 0, []
    for character in text:
        taken += _cells(character)
        if taken > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def fill(text: str, width: int, side: str = "left") -> str:
    """``text`` shortened and padded to exactly ``width`` columns; ``side`` (left, right, center) is where it stands.

    Right-to-left words are fenced with invisible marks, so that a terminal which reorders keeps its columns.
    """
    text = shorten(text, width)
    room = width - cells(text)
    if reads_right_to_left(text):
        text = f"{LEFT_TO_RIGHT}{text}{LEFT_TO_RIGHT}"
    before = {"left": 0, "right": room, "center": room // 2}[side]
    return " " * before + text + " " * (room - before)


def reads_right_to_left(text: str) -> bool:
    """Whether any letter of ``text`` is Hebrew, Arabic or of another script written leftwards."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def ems(text: str) -> float:
    """About how wide ``text`` is in a sans-serif font, in units of the font size; errs to the wide side."""
    return sum(_ems(character) for character in text)


def _ems(character: str) -> float:
    columns = _cells(character)
    if columns != 1:
        return columns * 0.52
    if character in _THIN or character == " ":
        return 0.36
    if character in _BROAD:
        return 0.95
    return 0.7 if character.isupper() else 0.6


def wrap(text: str, width: float) -> list[str]:
    """``text`` in lines of at most ``width`` ems, broken at spaces; a longer word stands alone."""
    lines: list[str] = []
    for word in text.split():
        if lines and ems(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
