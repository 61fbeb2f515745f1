import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from unrolled.explain.lettering import cells, ems, fill, printable, reads_right_to_left, shorten, wrap

REAL = st.text(alphabet=st.sampled_from("abzÉ ñ東京はでカ한국שלוםعربЖλ…—!"), max_size=12)


@given(REAL)
def test_columns_agree_with_those_of_rich(text: str) -> None:
    assert cells(unicodedata.normalize("NFC", text)) == cell_len(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    "text, columns", [("e\u0301", 1), ("\u200f", 0), ("한", 2), ("ᄒ\u1161\u11ab", 2), ("😀", 2), ("", 0)]
)
def test_columns_of_single_characters(text: str, columns: int) -> None:
    assert cells(text) == columns


@given(st.text(max_size=20), st.integers(1, 30), st.sampled_from(["left", "right", "center"]))
def test_a_filled_word_has_exactly_its_width(text: str, width: int, side: str) -> None:
    assert cells(fill(printable(text), width, side)) == width


@given(st.text(max_size=20))
def test_printable_text_is_harmless_and_stays_so(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert printable(shown) == shown


def test_ordinary_text_is_left_alone() -> None:
    for text in ("naïve 東京", "שלום", "क्‍ष", "می‌خواهم", "👍🏽"):
        assert printable(text) == text
    assert printable("a\nb\x1b") == "a␊b␛" and printable("\ud800") == "\ufffd"


def test_shortening_ends_in_an_ellipsis() -> None:
    assert shorten("European", 8) == "European"
    assert shorten("European", 5) == "Euro…"
    assert shorten("東京都", 5) == "東京…" and shorten("東京都", 4) == "東…"


def test_a_right_to_left_word_is_fenced_and_others_are_not() -> None:
    assert fill("שלום", 6) == "\u200eשלום\u200e  "
    assert fill("cat", 5, "center") == " cat "
    assert reads_right_to_left("عربي") and not reads_right_to_left("a1.")


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=9), max_size=12), st.floats(6, 40))
def test_wrapping_keeps_every_word_and_the_width(words: list[str], width: float) -> None:
    lines = wrap(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(ems(line) <= width or " " not in line for line in lines)
