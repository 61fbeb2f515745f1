"""The presets have the papers' sizes."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
import torch

from unrolled.base.settings import read_yaml
from unrolled.models import MODELS, parts

NAMES = ["seq2seq", "cho", "bahdanau", "luong"]
EVERY = ["default", *NAMES, *(f"{name}-small" for name in NAMES)]


def model(name: str) -> dict[str, Any]:
    with resources.as_file(resources.files("unrolled") / "presets" / f"{name}.yaml") as path:
        return MODELS.complete(read_yaml(path)["model"], "model")


@pytest.mark.parametrize("name", EVERY)
def test_a_preset_builds_and_says_something(name: str, pairs: Any) -> None:
    with torch.device("meta"):
        built = MODELS.build(model(name), 11, 13)
    assert parts(built).total > 100_000
    if name == "default" or name.endswith("-small"):
        torch.manual_seed(0)
        network = MODELS.build(model(name), 11, 13).eval()
        batch = pairs([3, 1], [2, 4])
        assert network(*batch).logits.shape == (8, 13)


@pytest.mark.parametrize("name", NAMES)
def test_small_is_the_same_architecture(name: str) -> None:
    def shape(tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree if isinstance(tree, str | bool) else None
        return {key: shape(value) for key, value in tree.items() if "dropout" not in key}

    full, small = shape(model(name)), shape(model(f"{name}-small"))
    assert full == small


def test_sizes_of_the_papers() -> None:
    sutskever, cho, bahdanau, luong = map(model, NAMES)
    assert (sutskever["encoder"]["layers"], sutskever["decoder"]["layers"]) == (4, 4)
    assert sutskever["encoder"]["cell"]["hidden_size"] == sutskever["embedding_size"] == 1000
    assert sutskever["encoder"]["reverse"] and sutskever["decoder"]["context"] == "once"
    assert (cho["embedding_size"], cho["encoder"]["cell"]["hidden_size"], cho["decoder"]["readout_size"]) == (
        100,
        1000,
        500,
    )
    assert (cho["encoder"]["cell"]["kind"], cho["decoder"]["context"]) == ("gru", "every_step")
    assert bahdanau["encoder"]["bidirectional"] and bahdanau["embedding_size"] == 620
    assert bahdanau["decoder"]["attention"] == {"kind": "additive", "hidden_size": 1000, "normalised": False}
    assert (bahdanau["decoder"]["readout"], bahdanau["decoder"]["readout_size"]) == ("maxout", 500)
    assert (luong["encoder"]["layers"], luong["decoder"]["layers"], luong["decoder"]["input_feeding"]) == (2, 2, True)
    assert luong["decoder"]["attention"]["kind"] == "bilinear"


def test_the_papers_parameters_counted_by_hand() -> None:
    """RNNsearch: m = 620, n = n' = 1000, l = 500, 30,000 words (Bahdanau et al. 2015, A.2), with one bias a gate."""
    with torch.device("meta"):
        built = MODELS.build(model("bahdanau"), 30_000, 30_000)
    m, n, a, half, words = 620, 1000, 1000, 500, 30_000
    embeddings = 2 * words * m
    encoder = 2 * 3 * (m * n + n * n + n)
    bridge = 2 * n * n + n
    attention = a * (n + 2 * n + 1)
    cell = 3 * ((m + 2 * n) * n + n * n + n)
    readout = (n + 2 * n + m + 1) * 2 * half
    output = words * (half + 1)
    assert parts(built).total == embeddings + encoder + bridge + attention + cell + readout + output
