import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unrolled.explain.explanation import Explanation
from unrolled.explain.picture import DARK, LIGHT, Box, picture

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "text")}


def parse(explanation: Explanation) -> ElementTree.Element:
    return ElementTree.fromstring(explanation.svg().encode("utf-8"))


def test_every_weight_is_a_cell_of_its_opacity_with_its_number(small: Explanation) -> None:
    found = {}
    for box in parse(small).iter(f"{SVG}rect"):
        title = box.find(f"{SVG}title")
        if title is not None:
            found[title.text] = float(box.get("fill-opacity", "1"))
    assert found == {
        "le ← black: 10.0 %": 0.1,
        "le ← cat: 80.0 %": 0.8,
        "le ← (end of the sentence): 10.0 %": 0.1,
        "chat ← black: 3.0 %": 0.03,
        "chat ← cat: 97.0 %": 0.97,
        "noir ← black: 60.0 %": 0.6,
        "noir ← cat: 30.0 %": 0.3,
        "noir ← (end of the sentence): 10.0 %": 0.1,
    }


def test_words_numbers_probabilities_and_trust_are_written(small: Explanation) -> None:
    texts = ["".join(text.itertext()) for text in parse(small).iter(f"{SVG}text")]
    whole = "\n".join(texts)
    for expected in ("noir", "97", "0.90", "0.61", "0.14", "known link", "67 %", "chance 50 %", "In 67% of cases."):
        assert expected in whole
    assert "3" not in texts  # below five per cent only the hover text has the number


def test_it_says_in_words_what_it_shows(small: Explanation) -> None:
    root = parse(small)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == "attention: black cat → le chat noir"
    assert description is not None and "le: cat 80 %; chat: cat 97 %; noir: black 60 %" in (description.text or "")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}" and root.get("role") == "img"


@given(st.lists(st.text(st.characters(codec=None), max_size=8), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_words_give_sound_xml_of_harmless_elements(make: Callable[..., Explanation], words: list[str]) -> None:
    root = parse(make(words, words[::-1]))
    assert {element.tag for element in root.iter()} <= ALLOWED
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)


def test_hostile_words_are_shown_as_they_are(hostile: Explanation) -> None:
    whole = "\n".join("".join(text.itertext()) for text in parse(hostile).iter(f"{SVG}text"))
    for expected in ("<script>alert(1)</script>", "]]>", "␛[31mred", "&amp;\"'", "evil", "-->", "<b>]]></b>"):
        assert expected in whole


def test_it_stands_alone_and_knows_the_dark(small: Explanation, tmp_path: Path) -> None:
    text = small.to(tmp_path / "a.svg").read_text()
    assert "url(" not in text and "<script" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme:dark" in text
    assert small.svg() == small._repr_html_()


def luminance(color: str) -> float:
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def blend(top: str, bottom: str, opacity: float) -> str:
    pairs = [(int(top[place : place + 2], 16), int(bottom[place : place + 2], 16)) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * one + (1 - opacity) * other):02x}" for one, other in pairs)


@pytest.mark.parametrize("colors", [LIGHT, DARK])
def test_text_can_be_read_on_its_ground(colors: dict[str, str]) -> None:
    """WCAG 2.1: 4.5 for text; the numbers in cells at every weight, by the ink that the picture chooses."""
    assert contrast(colors["ink"], colors["paper"]) >= 7
    assert contrast(colors["muted"], colors["paper"]) >= 4.5
    assert contrast(colors["heat"], colors["paper"]) >= 4.5
    for weight in np.linspace(0.05, 1, 20):
        one = Explanation(source=["a"], target=["b"], weights=[[weight]])
        inks = [shape.ink for shape in picture(one).shapes if not isinstance(shape, Box) and shape.size == 11.5]
        assert contrast(colors[inks[0]], blend(colors["heat"], colors["tile"], float(weight))) >= 4.5, weight


def test_everything_lies_inside_the_picture(make: Callable[..., Explanation]) -> None:
    long = "incomprehensibilities-and-more-than-that"
    for source, target in ((["a"], ["b"]), ([long] * 3, [long] * 2), (["w"] * 40, ["v"] * 3)):
        layout = picture(make(source, target, log_probs=[-1.0] * len(target), gold=[(0, 0)]))
        for shape in layout.shapes:
            assert 0 <= shape.x <= layout.width and 0 <= shape.y <= layout.height
            if isinstance(shape, Box):
                assert shape.x + shape.width <= layout.width and shape.y + shape.height <= layout.height
    shown = ["".join(text.itertext()).removeprefix(long) for text in parse(make([long], ["b"])).iter(f"{SVG}text")]
    assert "incomprehensibilities-and…" in shown
