"""The presets have the papers' sizes."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
import torch

from unrolled.base.settings import read_yaml
from unrolled.models import MODELS, parts

NAMES = ["seq2seq", "cho", "bahdanau", "luong", "luong-local", "gnmt", "transformer", "feedforward"]
EVERY = ["default", "letters", *NAMES, *(f"{name}-small" for name in NAMES)]


def model(name: str) -> dict[str, Any]:
    with resources.as_file(resources.files("unrolled") / "presets" / f"{name}.yaml") as path:
        return MODELS.complete(read_yaml(path)["model"], "model")


@pytest.mark.parametrize("name", EVERY)
def test_a_preset_builds_and_says_something(name: str, pairs: Any) -> None:
    with torch.device("meta"):
        built = MODELS.build(model(name), 13, 13)
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
        return {key: shape(value) for key, value in tree.items() if "dropout" not in key and key != "tie"}

    full, small = shape(model(name)), shape(model(f"{name}-small"))
    assert full == small


def test_sizes_of_the_papers() -> None:
    sutskever, cho, bahdanau, luong, local, gnmt, transformer, window = map(model, NAMES)
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
    assert {"kind": "additive", "hidden_size": 1000, "normalised": False}.items() <= bahdanau["decoder"][
        "attention"
    ].items()
    assert (bahdanau["decoder"]["readout"], bahdanau["decoder"]["readout_size"]) == ("maxout", 500)
    assert (luong["encoder"]["layers"], luong["decoder"]["layers"], luong["decoder"]["input_feeding"]) == (2, 2, True)
    assert luong["decoder"]["attention"]["kind"] == "bilinear"
    assert local["decoder"]["attention"]["reach"] == {"kind": "local_p", "window": 10}
    assert {**local["decoder"], "attention": luong["decoder"]["attention"]} == luong["decoder"]
    assert (gnmt["encoder"]["layers"], gnmt["decoder"]["layers"]) == (8, 8)
    assert (gnmt["encoder"]["bidirectional"], gnmt["encoder"]["residual"], gnmt["decoder"]["residual"]) == (
        "first",
        3,
        3,
    )
    assert gnmt["decoder"]["attention"]["kind"] == "additive" and gnmt["decoder"]["attention"]["normalised"]
    for side in ("encoder", "decoder"):
        wanted = {"layers": 6, "heads": 8, "feedforward_size": 2048, "norm": "post", "dropout": 0.1}
        assert wanted.items() <= transformer[side].items()
    assert (transformer["embedding_size"], transformer["tie"], transformer["embedding_scale"]) == (512, "all", "root")
    assert (window["encoder"]["reach"], window["decoder"]["window"], window["embedding_size"]) == (2, 5, 200)


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


def test_the_transformers_parameters_counted_by_hand() -> None:
    """The base model of Vaswani et al. 2017, table 3: 65 million with 37,000 joint subwords."""
    with torch.device("meta"):
        built = MODELS.build(model("transformer"), 37_000, 37_000)
    d, wide, words = 512, 2048, 37_000
    attention, network, norm = 4 * (d * d + d), 2 * d * wide + wide + d, 2 * d
    encoder = 6 * (attention + network + 2 * norm)
    decoder = 6 * (2 * attention + network + 3 * norm)
    assert parts(built).total == words * d + words + encoder + decoder
    assert round(parts(built).total / 1e6) in range(62, 66)


def test_gnmts_layers_counted_by_hand() -> None:
    """Wu et al. 2016: 1024 units, one layer of the encoder in two directions, the context (1024) to every layer."""
    with torch.device("meta"):
        built = MODELS.build(model("gnmt"), 32_000, 32_000)
    n = 1024

    def layer(size: int) -> int:
        return 4 * (size * n + n * n + n)

    encoder = 2 * layer(n) + layer(2 * n) + 6 * layer(n)
    attention = n * (n + n + 1) + n + 1
    decoder = 8 * layer(2 * n) + attention
    assert parts(built).total == 2 * 32_000 * n + encoder + decoder + 32_000 * (n + 1)
