"""Words on a plane: where they stand in pictures and in a terminal."""

import json
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import UsageError
from unrolled.explain.picture import Box, Label
from unrolled.explain.places import HEIGHT, WIDTH, WordMap, layout


def some(count=12, seed=0, **chosen):
    draw = np.random.default_rng(seed)
    words = [f"word{number}" for number in range(count)]
    chosen = {"method": "principal components", "kept": 0.5} | chosen
    return WordMap(words=words, places=draw.normal(size=(count, 2)), **chosen)


def test_a_map_is_written_as_every_kind_of_picture(tmp_path):
    found = some(marked=["word3"], likeness=np.linspace(1, 0, 12))
    for ending in ("svg", "png", "html", "json"):
        assert found.to(tmp_path / f"map.{ending}").stat().st_size > 500
    tree = json.loads((tmp_path / "map.json").read_text())
    assert tree["words"][0]["cosine"] == 1.0 and tree["variance_kept"] == 0.5 and len(tree["words"]) == 12
    root = xml.fromstring((tmp_path / "map.svg").read_text())
    assert sum(element.tag.endswith("text") for element in root.iter()) == 13
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG" and "<svg" in (tmp_path / "map.html").read_text()
    with pytest.raises(UsageError, match="no kind of picture"):
        found.to(tmp_path / "map.gif")


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.integers(0, 99))
def test_dots_lie_as_the_places_do_and_words_beside_them(count, seed):
    found = some(count, seed)
    drawn = layout(found)
    dots = np.array([(box.x, box.y) for box in drawn.shapes if isinstance(box, Box)])
    for side, sign in ((0, 1), (1, -1)):
        assert (
            np.argsort(dots[:, side] * sign, kind="stable") == np.argsort(found.places[:, side], kind="stable")
        ).all()
    labels = [label for label in drawn.shapes if isinstance(label, Label)][:-1]
    for label, dot in zip(labels, dots, strict=True):
        assert abs(label.x - dot[0]) < 80 and abs(label.y - dot[1]) < 40
        assert 0 <= label.x <= WIDTH and 0 <= label.y <= HEIGHT


def test_a_terminal_shows_the_words_where_they_stand():
    corners = WordMap(words=["a", "b", "c", "d"], places=[[0, 0], [1, 0], [0, 1], [1, 1]], method="m", marked=["d"])
    lines = corners.text(40).split("\n")
    assert (
        lines[0][0] == "c" and lines[0][-1] == "d" and lines[9][0] == "a" and lines[9][-1] == "b" and len(lines) == 11
    )
    assert "\x1b[1md\x1b[0m" in corners.text(40, "256") and "\x1b" not in str(corners)
    assert all(len(line) <= 40 for line in lines[:-1]) and lines[-1].startswith("m; the nearer")
    assert corners.target_text == "4 words: a, b, c, d"


def test_markup_in_words_is_only_shown():
    found = WordMap(words=["<b>", "&amp;"], places=[[0, 0], [0, 0]], method="m")
    assert "<b>" not in found.svg() and "&lt;b&gt;" in found.svg()
    with pytest.raises(UsageError, match=r"2 words and places of shape \[1, 2\]"):
        WordMap(words=["a", "b"], places=[[0, 1]], method="m")
