"""When symbols were heard: the centre of their weights, in seconds; drawn as a picture that holds every symbol."""

import json
from dataclasses import replace

import numpy as np
import pytest

from unrolled.base.errors import UsageError
from unrolled.explain.explanation import Measure
from unrolled.explain.listening import Listening, levels


@pytest.fixture
def one():
    weights = np.zeros((3, 10), np.float32)
    weights[0, 1] = 1
    weights[1, 4:6] = 0.5
    weights[2, [2, 8]] = [0.25, 0.75]
    return Listening(
        bands=np.random.default_rng(1).normal(size=(10, 7)).astype(np.float32),
        pitches=np.linspace(50, 3500, 7),
        step=0.02,
        symbols=("o", " ", "<k>"),
        weights=weights,
        log_probs=(-0.1, -0.2, -0.3),
        said="o <k>",
        faithfulness={"top_agreement": Measure(0.75, 0.05, 3, "For 75% of the symbols.", "%")},
    )


def test_a_symbol_was_heard_at_the_mean_of_its_weights(one):
    assert np.allclose(one.centres(), [0.03, 0.1, 0.02 * (0.25 * 2.5 + 0.75 * 8.5)])


def test_pictures_hold_the_symbols_and_the_honest_number(one, tmp_path):
    svg = one.svg()
    assert svg.startswith("<svg") and svg == one.svg()
    for text in ("o", "␣", "&lt;k&gt;", "75 %", "5 %", "seconds", "hertz"):
        assert text in svg
    one.to(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    one.to(tmp_path / "a.html")
    assert "For 75% of the symbols." in (tmp_path / "a.html").read_text()
    one.to(tmp_path / "a.json")
    tree = json.loads((tmp_path / "a.json").read_text())
    assert tree["heard_at"] == [0.03, 0.1, 0.14] and tree["target"]["symbols"] == ["o", " ", "<k>"]
    assert len(tree["bands"]) == 10 and tree["faithfulness"]["top_agreement"]["chance"] == 0.05
    with pytest.raises(UsageError, match=r"a\.gif: ends in '\.gif', which is no kind of picture"):
        one.to(tmp_path / "a.gif")


def test_a_terminal_shows_times_and_places(one):
    lines = one.text(40).splitlines()
    assert (
        lines[0].startswith("o     0.03 s  █")
        and lines[1].startswith("␣     0.10 s")
        and lines[3].startswith("For 75%")
    )
    assert max(map(len, lines[:3])) <= 40


def test_symbols_heard_together_stand_on_lines_of_their_own(one):
    assert levels(one, 0.2) == [0, 0, 0]
    same = replace(one, weights=np.eye(3, 10, dtype=np.float32)[[1, 1, 1]])
    assert sorted(levels(same, 0.2)) == [0, 1, 2]


def test_what_rests_on_nothing_has_no_moment(one):
    nothing = replace(one, weights=one.weights * np.array([[1], [0], [1]], np.float32))
    assert nothing.text(40).splitlines()[1] == "␣   no moment"
    assert nothing.to_dict()["heard_at"] == [0.03, None, 0.14]
    assert "␣" in nothing.svg()  # beside its row, not over the spectrogram
