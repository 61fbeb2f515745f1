"""A folder that an earlier version saved, as it was: it opens, and says what it said."""

from pathlib import Path

import pytest

import unrolled

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_translator_of_format_1_saved_before_there_were_other_tasks():
    model = unrolled.load(str(GOLDEN / "format-1-translate"))
    assert type(model) is unrolled.Translator
    assert model.predict(["a b", "b a", "", "a", "b"]) == ["x y", "y x", "", "x", "y"]
    scored = model.score(["a b"], ["x y"])[0]
    assert scored.log_probs.sum() == pytest.approx(-0.418615, abs=1e-4)
    assert {score.name: score.value for score in model.scores}["exact_match"] == 1.0
