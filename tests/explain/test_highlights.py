"""A document shaded by what was read: sums by sentence, every word once, the numbers of the picture."""

import json
import re
from html import unescape

import numpy as np
import pytest

from unrolled.base.errors import UsageError
from unrolled.explain.explanation import Measure
from unrolled.explain.highlights import WIDTH, Highlights, Sentence, layout
from unrolled.explain.picture import MARGIN, Box, Label

SENTENCES = [
    Sentence(("Ada", "<left>", "."), np.array([0.05, 0.1, 0.05])),
    Sentence(("Bob", "stayed", "."), np.array([0.0, 0.2, 0.5]), True),
]


def made(**given):
    return Highlights(
        **{"sentences": SENTENCES, "question": "Who\nstayed?", "answer": "Bob", "probability": 0.75, **given}
    )


def test_a_sentence_has_the_sum_of_its_words_and_the_rest_is_said():
    shown = made()
    assert shown.shares == pytest.approx([0.2, 0.7]) and shown.rest == pytest.approx(0.1)
    assert shown.target_text == "Who stayed? Bob (0.750)"
    erased = made(summed=False, method="erasure", scale="probability lost without it")
    assert erased.shares == pytest.approx([0.1, 0.5]) and erased.rest == 0


def test_the_terminal_has_a_line_a_sentence():
    lines = made().text().splitlines()
    assert re.fullmatch(r"  20 % ██ +Ada <left> \.", lines[0])
    assert re.fullmatch(r"  70 % ███████ +\* Bob stayed \[\.\]", lines[1])
    assert lines[2:] == [
        "* supports the answer, as the data have it",
        "share of attention, in all of a sentence; 10 % on the end of the document",
    ]
    assert "\x1b[1m.\x1b[0m" in made().text(color="256")


def test_the_picture_shows_every_word_inside_it_and_the_strongest_darkest():
    picture = layout(made(sentences=[*SENTENCES, Sentence(("word",) * 60, np.full(60, 0.001))]))
    labels = [one for one in picture.shapes if isinstance(one, Label)]
    boxes = [one for one in picture.shapes if isinstance(one, Box)]
    assert [one.text for one in labels].count("word") == 60
    assert all(one.x >= MARGIN - 3 and one.x + one.width <= WIDTH - MARGIN for one in boxes)
    assert max(one.y for one in (*labels, *boxes)) < picture.height
    darkest = [one for one in boxes if one.ink == "heat" and one.title.startswith(".") and one.opacity == 1]
    assert len(darkest) == 1 and [one.outline for one in boxes].count(True) == 1


@pytest.mark.parametrize("ending", ["svg", "html", "json", "png"])
def test_it_is_written_whole(tmp_path, ending):
    measure = Measure(0.5, 0.25, 4, "Half of them & more.", "%")
    path = made(faithfulness={"sentence_agreement": measure}).to(tmp_path / f"picture.{ending}")
    if ending == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
        return
    text = path.read_text(encoding="utf-8")
    if ending == "json":
        tree = json.loads(text)
        assert tree["sentences"][1] == {
            "words": ["Bob", "stayed", "."], "weights": [0.0, 0.2, 0.5], "weight": 0.7, "supports": True,
        }  # fmt: skip
        assert tree["faithfulness"]["sentence_agreement"]["chance"] == 0.25
        return
    assert "<left>" not in text and "<left>" in unescape(text)
    assert "Half of them &amp; more." in text and "the rest, 10 %, lies on the end" in text


@pytest.mark.parametrize("weights", [[0.1], [0.1, 0.2, 1.2], [0.1, 0.2, float("nan")]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(UsageError, match="each word has one weight, from 0 to 1"):
        made(sentences=[Sentence(("a", "b", "c"), np.array(weights))])
