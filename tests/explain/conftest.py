"""Explanations that the tests of this room draw: a small one, and one whose words mean harm."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unrolled.explain.explanation import Explanation, Measure

HOSTILE = [
    "<script>alert(1)</script>",
    "]]>",
    "\x1b[31mred",
    "a\tb\n",
    "\ud800",
    "&amp;\"'",
    "\u202eevil",
    "\ufffe",
    "-->",
]


@pytest.fixture
def make() -> Callable[..., Explanation]:
    def build(source: list[str], target: list[str], **more: Any) -> Explanation:
        weights = np.random.default_rng(7).dirichlet(np.full(len(source) + 1, 0.3), len(target))
        given = {"weights": weights[:, :-1], "end_column": weights[:, -1], **more}
        return Explanation(source=source, target=target, **given)

    return build


@pytest.fixture
def small() -> Explanation:
    """Three words from two: the first two look at one word each, the third at both and the end."""
    return Explanation(
        source=["black", "cat"],
        target=["le", "chat", "noir"],
        weights=[[0.1, 0.8], [0.03, 0.97], [0.6, 0.3]],
        end_column=[0.1, 0.0, 0.1],
        log_probs=[-0.1, -0.5, -2.0],
        gold=[(1, 1), (0, 2)],
        faithfulness={"top_agreement": Measure(2 / 3, 0.5, 3, "In 67% of cases.", "%")},
    )


@pytest.fixture
def hostile(make: Callable[..., Explanation]) -> Explanation:
    return make(HOSTILE, HOSTILE[::-1], faithfulness={"x": Measure(1.0, 0.0, 1, "<b>]]></b>")})
