import io
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from unrolled.explain.explanation import Explanation
from unrolled.explain.lettering import cells
from unrolled.explain.terminal import draw

WORDS = st.lists(st.text(st.characters(codec=None), min_size=1, max_size=12), min_size=1, max_size=25)


def test_a_small_picture_word_for_word(small: Explanation) -> None:
    assert small.text(60).splitlines() == [
        "      black cat ‹end›",
        "  le  ░░░░░ ███ ░░░░░  80%",
        "chat    ·   ███   ·    97%",
        "noir  ▓▓▓▓▓ ▒▒▒ ░░░░░  60%",
        "",
        "share of attention   · below 5 %   ░ to 20 %   ▒ to 40 %   ▓",
        "to 70 %   █ above",
        "In 67% of cases.",
    ]


def test_a_narrow_terminal_gets_stairs(small: Explanation) -> None:
    lines = small.text(24).splitlines()
    assert lines[:6] == [
        "     ╭ black",
        "     │ ╭ cat",
        "     │ │ ╭ ‹end›",
        "  le ░░██░░  80%",
        "chat · ██·   97%",
        "noir ▓▓▒▒░░  60%",
    ]


def test_too_many_words_come_in_panels(make: Callable[..., Explanation]) -> None:
    names = [f"w{number}" for number in range(50)]
    text = make(names, ["x"]).text(40)
    assert all(f"╭ {name}" in text for name in names)
    assert len(re.findall(r"^x", text, re.M)) == 4


@given(WORDS, WORDS, st.integers(20, 130))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_is_wider_than_the_terminal(
    make: Callable[..., Explanation], source: list[str], target: list[str], width: int
) -> None:
    text = make(source, target).text(width)
    text.encode("utf-8")
    assert max(cells(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text and "\t" not in text


@given(
    st.lists(st.sampled_from(["東京", "שלום", "cat", "e\u0301te\u0301", "한국어"]), min_size=2, max_size=6),
    st.integers(50, 90),
)
@settings(max_examples=30, deadline=None)
def test_cells_stand_under_their_words(words: list[str], width: int) -> None:
    lines = list(draw(Explanation(source=words, target=words, weights=np.eye(len(words))), width))
    heads = [cells("".join(run.text for run in lines[0][: column + 1])) for column in range(len(words) + 1)]
    for row in range(len(words)):
        before = 0
        for run in lines[1 + row]:
            if run.ink == "heat":
                assert (before, before + cells(run.text)) == (heads[row] + 1, heads[row + 1])
            before += cells(run.text)


def test_colour_adds_nothing_but_colour(small: Explanation) -> None:
    plain = small.text(60)
    for color, blue in (("256", "38;5;33"), ("24bit", "38;2;43;140;255")):
        painted = small.text(60, color)
        assert f"\x1b[{blue}m███" in painted
        stripped = re.sub(r"\x1b\[[0-9;]*m", "", painted)
        assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("system", [None, "truecolor"])
def test_rich_prints_the_same(small: Explanation, system: str | None) -> None:
    file = io.StringIO()
    Console(file=file, width=60, color_system=system, force_terminal=system is not None).print(small)
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
    assert [line.rstrip() for line in stripped.splitlines()] == small.text(60).splitlines()
    assert ("\x1b[" in file.getvalue()) == (system is not None)


def test_a_terminal_cannot_be_driven_by_a_word(hostile: Explanation) -> None:
    assert "\x1b" not in hostile.text(100) and "␛[31mred" in hostile.text(120)
