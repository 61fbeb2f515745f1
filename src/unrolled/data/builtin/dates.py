"""Dates as they are written in many countries (Babel's CLDR patterns) → ISO 8601; no text can mean two dates."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from unrolled.data.builtin.example import BUILTIN, PATIENCE, Built, Example, Maker, Span, split

LOCALES = (
    *("bg", "ca", "cs", "da", "de", "el", "en_GB", "en_US", "es", "et", "fi", "fr", "he", "hr", "hu", "id", "it"),
    *("ja", "ko", "lt", "lv", "nb", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sv", "tr", "uk", "vi", "zh"),
)
"""All write the Gregorian calendar in digits of ours, so that the year and the day can be read off."""

CUSTOM = {
    "en_US": ["EEE, MMM d, y", "MMMM d y", "EEEE, MMM d, y"],
    "en_GB": ["d-MMM-y", "EEE d MMMM y", "'the' d 'of' MMMM y"],
    "fr": ["'le' d MMMM y", "'le' EEEE d MMMM y"],
    "de": ["EEEE, 'den' d. MMMM y", "d. MMM. y"],
    "es": ["EEEE d 'de' MMMM 'del' y"],
    "it": ["'il' d MMMM y"],
}
"""Patterns in use that CLDR does not list."""

SKELETONS = ("yMMMd", "yMMMEd", "yMd", "yMEd", "yMMMMd", "yMMMMEEEEd")
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
_FIELDS = {"y": "year", "M": "month", "L": "month", "d": "day", "E": "weekday", "c": "weekday"}


class Style(NamedTuple):
    """One way of writing: (text, "") for what stands there, (pattern, field) for what the date fills in."""

    locale: str
    pieces: tuple[tuple[str, str], ...]


@BUILTIN.register("dates")
class Dates(Maker):
    """Dates of 1900–2099 in 34 locales, long, short and in between → ``yyyy-MM-dd``; links join day, month and year.

    The words of an example are its fields: day, month, year and, unlinked, the weekday.
    """

    default_size = 20_000

    def make(self, seed: int, size: int) -> Built:
        return split(distinct(seed), seed, size)


def distinct(seed: int) -> Iterator[Example]:
    """Dates: no text twice, no date twice in one locale, until drawing finds nothing new."""
    draw = random.Random(seed)
    by_locale: dict[str, list[Style]] = {}
    for style in styles():
        by_locale.setdefault(style.locale, []).append(style)
    texts: set[str] = set()
    used: set[tuple[datetime.date, str]] = set()
    days = (LAST - FIRST).days
    misses = 0
    while misses < PATIENCE:
        misses += 1
        date = FIRST + datetime.timedelta(draw.randrange(days + 1))
        style = draw.choice(by_locale[draw.choice(LOCALES)])
        written = write(date, style)
        if written.source not in texts and (date, style.locale) not in used and not is_ambiguous(date, style):
            texts.add(written.source)
            misses = 0
            used.add((date, style.locale))
            yield written


def write(date: datetime.date, style: Style) -> Example:
    """The example that writes ``date`` in this style."""
    text, spans, names = "", [], []
    for piece, field in style.pieces:
        shown = _fill(piece, style.locale, date) if field else piece
        if field:
            spans.append((len(text), len(text) + len(shown)))
            names.append(field)
        text += shown
    places: tuple[Span, ...] = ((0, 4), (5, 7), (8, 10))
    links = tuple((names.index(field), place) for place, field in enumerate(("year", "month", "day")))
    return Example(text, date.isoformat(), tuple(sorted(links)), tuple(spans), places)


def is_ambiguous(date: datetime.date, style: Style) -> bool:
    """Whether some style of some locale writes another date in the same way.

    Two traps: day and month both in digits, 5/6/2024; and a month's name that is another month elsewhere (listopad is
    November in Polish, October in Croatian), where nothing else in the text tells the two apart.
    """
    readings = _readings()[_outline(style, date.month)]
    orders = {order for _, order in readings}
    if len(orders) > 1:
        return date.day <= 12 and date.day != date.month
    return len(readings) > 1


@lru_cache(maxsize=1)
def styles() -> list[Style]:
    """Every way of writing that shows day, month and all four digits of the year."""
    from babel import Locale

    found: dict[Style, None] = {}
    for name in LOCALES:
        locale = Locale.parse(name)
        skeletons = [locale.datetime_skeletons[key] for key in SKELETONS if key in locale.datetime_skeletons]
        named = [locale.date_formats[key] for key in ("full", "long", "medium", "short")]
        for pattern in [*(str(p.pattern) for p in [*named, *skeletons]), *CUSTOM.get(name, [])]:
            style = _style(name, pattern)
            if style is not None:
                found[style] = None
    return list(found)


def _style(locale: str, pattern: str) -> Style | None:
    from babel.dates import tokenize_pattern

    pieces = []
    for kind, value in tokenize_pattern(pattern):
        if kind == "chars":
            pieces.append((str(value), ""))
            continue
        letter, count = str(value[0]), int(value[1])
        if letter not in _FIELDS or (letter == "y" and count == 2):
            return None
        pieces.append((letter * count, _FIELDS[letter]))
    shown = [field for _, field in pieces if field and field != "weekday"]
    return Style(locale, tuple(pieces)) if sorted(shown) == ["day", "month", "year"] else None


def _fill(piece: str, locale: str, date: datetime.date) -> str:
    if piece == "d":
        return str(date.day)
    if piece == "dd":
        return f"{date.day:02}"
    if piece == "y":
        return str(date.year)
    if piece[0] in "Ec":
        return _shown(piece, locale, 1, date.weekday())
    return _shown(piece, locale, date.month, 0)


@cache
def _shown(piece: str, locale: str, month: int, weekday: int) -> str:
    """A month or a weekday as Babel writes it."""
    from babel.dates import format_date

    first = datetime.date(2024, month, 1)
    return format_date(first + datetime.timedelta((weekday - first.weekday()) % 7), piece, locale=locale)


def _numeric(piece: str) -> bool:
    return piece in ("M", "MM", "L", "LL")


def _outline(style: Style, month: int) -> str:
    """What the eye sees before it reads the digits and the weekday."""
    marks = {"day": "#", "year": "####", "weekday": "day of the week"}
    return "".join(
        piece if not field else "#" if _numeric(piece) else marks.get(field) or _shown(piece, style.locale, month, 0)
        for piece, field in style.pieces
    )


@lru_cache(maxsize=1)
def _readings() -> Mapping[str, set[tuple[int, tuple[str, ...]]]]:
    """Outline → what it can mean: the month (0 where it stands in digits) and the order of the digits."""
    readings: dict[str, set[tuple[int, tuple[str, ...]]]] = {}
    for style in styles():
        digits = tuple(field for piece, field in style.pieces if _numeric(piece) or field in ("day", "year"))
        numeric = "month" in digits
        for month in range(1, 13):
            readings.setdefault(_outline(style, month), set()).add((0 if numeric else month, digits))
    return readings
