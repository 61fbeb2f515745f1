import datetime
import random

import pytest
from babel import Locale
from babel.dates import format_date

from unrolled.data.builtin import dates, make
from unrolled.data.builtin.dates import LOCALES, distinct, is_ambiguous, styles, write


def test_written_as_babel_writes():
    draw = random.Random(5)
    for name in LOCALES:
        known = {style for style in styles() if style.locale == name}
        shown = 0
        for length in ("full", "long", "medium", "short"):
            date = dates.FIRST + datetime.timedelta(draw.randrange(73_000))
            expected = format_date(date, length, locale=name)
            shown += expected in {write(date, style).source for style in known}
        assert shown >= 2  # those with two digits for the year are left out
    assert len(LOCALES) >= 20


def test_written_like_this_and_linked():
    written = {}
    for style in styles():
        written.setdefault(style.locale, set()).add(write(datetime.date(2024, 2, 5), style))
    assert {"5 February 2024", "05/02/2024", "the 5 of February 2024"} <= {one.source for one in written["en_GB"]}
    (full,) = [one for one in written["es"] if one.source == "lunes, 5 de febrero de 2024"]
    assert full.source_words == ("lunes", "5", "febrero", "2024")
    assert full.target_words == ("2024", "02", "05")
    assert full.links == ((1, 2), (2, 1), (3, 0))


def test_one_text_never_means_two_dates():
    """Every date of a year in every style: whatever two dates share must have been refused."""
    meanings: dict[str, set[str]] = {}
    kept: dict[str, set[str]] = {}
    first = datetime.date(2024, 1, 1)
    for style in styles():
        for day in range(0, 366, 2):
            date = first + datetime.timedelta(day)
            source, target = write(date, style)[:2]
            meanings.setdefault(source, set()).add(target)
            if not is_ambiguous(date, style):
                kept.setdefault(source, set()).add(target)
    assert sum(len(targets) > 1 for targets in meanings.values()) > 20  # 5/6/2024
    assert all(len(meanings[source]) == 1 for source in kept)
    assert {"13/1/2024", "3/3/2024"} <= set(kept)
    assert "1/3/2024" in meanings
    assert "1/3/2024" not in kept


def test_splits():
    built = make("dates", seed=2, size=1000)
    assert (len(built.train), len(built.valid), len(built.test)) == (1000, 100, 100)
    every = [example for split in built for example in split]
    assert len({example.source for example in every}) == 1200
    assert make("dates", seed=2, size=1000) == built
    years = {int(example.target[:4]) for example in every}
    assert min(years) >= 1900
    assert max(years) <= 2099
    for example in every:
        found = {example.target_words[j]: example.source_words[i] for i, j in example.links}
        year, _, day = example.target.split("-")
        assert found[year] == year
        assert datetime.date.fromisoformat(example.target).day == int(found[day] if day != example.target[5:7] else day)


def test_a_date_comes_once_in_a_locale(monkeypatch):
    monkeypatch.setattr(dates, "LOCALES", ("fr",))
    monkeypatch.setattr(dates, "LAST", datetime.date(1900, 2, 9))
    found = list(distinct(1))
    assert len(found) == len({example.target for example in found}) == 40  # forty days in many styles


@pytest.mark.parametrize("name", LOCALES)
def test_locales_are_gregorian_and_written_in_ascii_digits(name):
    assert Locale.parse(name).territory is None or name.startswith("en")
    digits = {
        char for style in styles() if style.locale == name for char in write(dates.LAST, style).source if char.isdigit()
    }
    assert digits <= set("0123456789")
