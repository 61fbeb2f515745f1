"""A forecast drawn: with and without attention, numbers that are missing, and how far attention can be trusted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unrolled.base.errors import UsageError
from unrolled.explain.outlook import Outlook, trust


def outlook(attention=True, **changes):
    draw = np.random.default_rng(0)
    past = np.array([1.0, np.nan, 3.0, 2.0, 5.0])
    point = np.array([4.0, 6.0, 5.0])
    values = {
        "name": "a y",
        "past": past,
        "times": [f"2024-0{month}" for month in range(1, 9)],
        "point": point,
        "quantiles": point[:, None] + np.array([-1.0, 0.0, 1.0]),
        "levels": (0.1, 0.5, 0.9),
        "naive": np.full(3, 5.0),
        "attention": draw.dirichlet(np.ones(5), size=3).astype(np.float32) if attention else None,
        "moves": draw.random((3, 5)),
        "faithfulness": None,
    }
    return Outlook(**(values | changes))


@pytest.mark.parametrize("attention", [True, False])
def test_it_is_drawn_and_written_as_numbers(attention, tmp_path):
    one = outlook(attention)
    assert one.target_text == "a y: 4 at 2024-06 to 5 at 2024-08, 80% interval 4 to 6"
    picture = one.svg()
    assert picture.startswith("<svg") and ("read by" in picture) == attention and "80% interval" in picture
    assert picture == outlook(attention).svg()
    tree = json.loads(one.to(tmp_path / "one.json").read_text())
    assert tree["past"] == [1.0, None, 3.0, 2.0, 5.0] and tree["quantiles"][0] == [3.0, 4.0, 5.0]
    assert (tree["attention"] is None) != attention
    assert one.to(tmp_path / "one.html").read_text().count("<svg") == 1
    assert one.to(tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(UsageError, match=r"one.txt"):
        one.to(tmp_path / "one.txt")


def test_on_a_terminal_the_past_ends_at_a_bar():
    first, *others = outlook().text(60).split("\n")
    assert first == "a y         ▁▁▃▂▆|▅█▆"
    assert [line.split(" ")[0] for line in others] == ["attention", "moves"]
    assert len(outlook(attention=False).text(60).split("\n")) == 2


def test_attention_that_orders_the_past_as_erasing_does_is_trusted():
    moves = np.array([[1.0, 3.0, 2.0, 0.5], [4.0, 1.0, 2.0, 3.0]])
    found = trust([moves / moves.sum(axis=1, keepdims=True)], [moves])
    assert found["rank_correlation"].value == pytest.approx(1) and found["top_agreement"].value == 1
    assert found["top_agreement"].chance == 0.25
    turned = trust([-moves], [moves])
    assert turned["rank_correlation"].value == pytest.approx(-1) and turned["top_agreement"].value == 0
    assert trust([np.ones((2, 1))], [np.ones((2, 1))])["rank_correlation"].value is None
    assert outlook(faithfulness=found).text().endswith("(picking at random: 25%).")
