"""Copy, reverse, sort and remember: what every architecture must learn in seconds."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

from unrolled.base.protocol import BEGIN, END, PAD, SPECIALS
from unrolled.layers.attention import coverage_loss
from unrolled.models import DECODERS, ENCODERS, MODELS, Seq2Seq, TorchStepper

TASKS: dict[str, Callable[[list[int]], list[int]]] = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}
FIRST = len(SPECIALS) + len(TASKS)
"""The first symbol that is no special one and names no task."""

SYMBOLS, LONGEST, BATCH, UPDATES = 5, 4, 64, 400
RATES = dict.fromkeys(("cho", "gnmt", "luong", "luong-local", "seq2seq"), 0.01) | {"bahdanau with elman cells": 0.004}
ELMAN, GRU, LSTM = ({"kind": kind, "hidden_size": 64} for kind in ("elman", "gru", "lstm"))
READER = {"kind": "rnn", "cell": GRU}
MORE: dict[str, dict[str, Any]] = {
    "gnmt on convolutions": {
        "encoder": {"kind": "cnn", "layers": 3, "hidden_size": 48, "dropout": 0.0},
        "decoder": {"kind": "gnmt", "cell": LSTM, "layers": 2},
    },
    "bahdanau on a pyramid": {
        "encoder": {"kind": "pyramidal", "cell": GRU},
        "decoder": {"kind": "query_before", "cell": GRU},
    },
    "luong without feeding on n-grams": {
        "encoder": {"kind": "ngram", "widest": 5, "hidden_size": 32},
        "decoder": {"kind": "query_after", "cell": LSTM, "input_feeding": False},
    },
    "bahdanau with elman cells": {
        "encoder": {"kind": "rnn", "cell": ELMAN},
        "decoder": {"kind": "query_before", "cell": ELMAN},
    },
}


def small(tree: Any) -> Any:
    """A preset's model of the same parts, with few units, few layers and no dropout."""
    if not isinstance(tree, dict):
        return tree
    window = {"window": 3} if tree["kind"] == "local_p" else {}
    reach = {"reach": 4} if tree["kind"] == "feedforward" and "reach" in tree else {}
    most = {"heads": 4, "layers": 3 if tree.get("residual") else 2, "feedforward_size": 96, **window}
    fixed = {"dropout": 0.0, "attention_dropout": 0.0, "word_dropout": 0.0, **reach}
    found = {}
    for name, value in tree.items():
        most_here = most.get(name, 64 if name.endswith("size") else None)
        found[name] = min(value, most_here) if type(value) is int and most_here else fixed.get(name, small(value))
    return found


def presets() -> dict[str, dict[str, Any]]:
    """The model of each preset that translates."""
    found = {}
    for path in (resources.files("unrolled") / "presets").iterdir():
        name = path.name.removesuffix(".yaml")
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) if name != path.name else {}
        if tree.get("model", {}).get("kind") == "seq2seq" and not name.endswith("-small"):
            model = MODELS.complete(tree["model"], "model")
            stacked = {"hidden_size": 48} if model["encoder"]["kind"] == "transformer" else {}
            sides = {side: {**small(model[side]), **stacked} for side in ("encoder", "decoder")}
            found[name] = {**small(model), **sides, "embedding_size": 48}
    return dict(sorted(found.items()))


ARCHITECTURES: dict[str, dict[str, Any]] = {**presets(), **MORE}
Rows = list[list[int]]


def padded(rows: Rows) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return ids, ids != PAD


def draw(random: np.random.Generator, count: int) -> tuple[Rows, Rows]:
    """Sources that begin with the name of a task, each task as often, and what it makes of the rest."""
    sources, targets = [], []
    for place in range(count):
        number = place % len(TASKS)
        row = random.integers(FIRST, FIRST + SYMBOLS, random.integers(1, LONGEST + 1)).tolist()
        sources.append([len(SPECIALS) + number, *row])
        targets.append(list(TASKS.values())[number](row))
    return sources, targets


def remember(random: np.random.Generator, count: int, lag: int) -> tuple[Rows, Rows]:
    """One of two symbols, then ``lag`` others to forget; the first is asked for."""
    firsts = random.integers(len(SPECIALS), len(SPECIALS) + 2, (count, 1))
    noise = random.integers(len(SPECIALS) + 2, len(SPECIALS) + 4, (count, lag))
    return np.concatenate([firsts, noise], axis=1).tolist(), firsts.tolist()


def loss_of(model: Seq2Seq, sources: Rows, targets: Rows) -> Tensor:
    source, source_mask = padded([[*row, END] for row in sources])
    target, target_mask = padded([[BEGIN, *row, END] for row in targets])
    return model.train().loss(source, source_mask, target, target_mask) / target_mask[:, 1:].sum()


def right(model: Seq2Seq, sources: Rows, targets: Rows) -> np.ndarray:
    """Whether the best symbols, step after step, are the target; one bool a row."""
    stepper = TorchStepper(model)
    ids, mask = padded([[*row, END] for row in sources])
    state, last, said = stepper.start(ids.numpy(), mask.numpy()), np.full(len(sources), BEGIN), []
    for _ in range(LONGEST + 1):
        _, best, _, state = stepper.step(last, state, 1)
        last = best[:, 0]
        said.append(last)
    written = [row[: row.index(END)] if END in row else row for row in np.stack(said, axis=1).tolist()]
    return np.array([one == other for one, other in zip(written, targets, strict=True)])


def learn(
    model: Seq2Seq,
    rate: float,
    batches: Callable[[int], tuple[Rows, Rows]],
    done: Callable[[], bool],
    most: int = UPDATES,
) -> int:
    """Adam with a short rise and a straight fall of the rate; how many updates it took until ``done``."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    for step in range(most):
        optimizer.param_groups[0]["lr"] = rate * min((step + 1) / 20, max(0.02, 1 - step / most))
        optimizer.zero_grad()
        loss_of(model, *batches(step)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 49 and done():
            break
    return step + 1


def test_every_preset_encoder_and_decoder_is_among_them() -> None:
    wanted = {
        "bahdanau",
        "cho",
        "default",
        "feedforward",
        "gnmt",
        "letters",
        "luong",
        "luong-local",
        "seq2seq",
        "transformer",
    }
    assert wanted <= set(ARCHITECTURES)
    unordered = {"plain"}  # says nothing of the order of what it reads: it is for images
    for side, kinds in (("encoder", set(ENCODERS) - unordered), ("decoder", set(DECODERS))):
        assert {settings[side]["kind"] for settings in ARCHITECTURES.values()} == kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_copying_reversing_and_sorting_are_learnt_by_one_model_in_seconds(name: str) -> None:
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    settings = {"kind": "seq2seq", "embedding_size": 48, "dropout": 0.0, **ARCHITECTURES[name]}
    model = MODELS.build(settings, FIRST + SYMBOLS, FIRST + SYMBOLS)
    assert isinstance(model, Seq2Seq)
    sources, targets = draw(random, 300)
    shares = np.zeros(len(TASKS))

    def done() -> bool:
        shares[:] = right(model, sources, targets).reshape(-1, len(TASKS)).mean(axis=0)
        return bool(shares.min() >= 0.97)

    updates = learn(model, RATES.get(name, 0.006), lambda _: draw(random, BATCH), done)
    assert shares.min() >= 0.97, f"{dict(zip(TASKS, shares.round(2), strict=True))} after {updates} updates"


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell, lag",
    [
        ({"kind": "elman"}, 5),
        ({"kind": "gru"}, 100),
        ({"kind": "gru", "reset": "after"}, 100),
        ({"kind": "lstm"}, 100),
        ({"kind": "lstm", "coupled": True, "peephole": "diagonal"}, 100),
    ],
    ids=str,
)
def test_the_first_symbol_is_remembered(cell: dict[str, Any], lag: int) -> None:
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    size = len(SPECIALS) + 4
    encoder = {"kind": "rnn", "cell": {**cell, "hidden_size": 24}, "bidirectional": False}
    decoder = {"kind": "fixed", "cell": {"kind": "gru", "hidden_size": 16}, "context": "once"}
    model = Seq2Seq(size, size, embedding_size=8, dropout=0.0, encoder=encoder, decoder=decoder)
    sources, targets = remember(random, 200, lag)

    def batches(step: int) -> tuple[Rows, Rows]:
        return remember(random, 32, random.integers(1, max(2, min(lag, step // 2)) + 1))

    updates = learn(model, 0.01, batches, lambda: bool(right(model, sources, targets).mean() >= 0.97))
    share = right(model, sources, targets).mean()
    assert share >= 0.97, f"{share:.0%} right at a lag of {lag} after {updates} updates"


KNOWN, NEW = 200, 50


def with_new_words(random: np.random.Generator, count: int) -> tuple[Rows, Rows]:
    """Rows to copy, in each one word that training never showed."""
    rows, _ = of_known_words(random, count)
    for row in rows:
        row[random.integers(len(row))] = int(random.integers(len(SPECIALS) + KNOWN, len(SPECIALS) + KNOWN + NEW))
    return rows, rows


def of_known_words(random: np.random.Generator, count: int) -> tuple[Rows, Rows]:
    first = len(SPECIALS)
    rows = [random.integers(first, first + KNOWN, random.integers(1, LONGEST + 1)).tolist() for _ in range(count)]
    return rows, rows


@pytest.mark.slow
@pytest.mark.parametrize("copy", [True, False], ids=["with copying", "without"])
def test_words_that_training_never_showed_are_copied_where_the_model_copies_and_only_there(copy: bool) -> None:
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    size, cell = len(SPECIALS) + KNOWN + NEW, {"kind": "gru", "hidden_size": 48}
    decoder = {"kind": "query_before", "cell": cell, "attention": {"kind": "additive", "hidden_size": 32}}
    encoder = {"kind": "rnn", "cell": cell}
    model = Seq2Seq(size, size, embedding_size=32, dropout=0.0, copy=copy, encoder=encoder, decoder=decoder)
    known, new = of_known_words(random, 200), with_new_words(random, 200)
    learn(model, 0.01, lambda _: of_known_words(random, 128), lambda: right(model, *known).mean() >= 0.97)
    assert right(model, *known).mean() >= 0.97
    assert right(model, *new).mean() >= 0.85 if copy else right(model, *new).mean() == 0


@pytest.mark.slow
def test_the_coverage_loss_keeps_a_model_from_looking_twice() -> None:
    twice = {}
    for price in (0.0, 1.0):
        torch.manual_seed(1)
        random = np.random.default_rng(1)
        size, cell = FIRST + SYMBOLS, {"kind": "gru", "hidden_size": 48}
        attention = {"kind": "additive", "hidden_size": 32, "coverage": "sum"}
        decoder = {"kind": "query_before", "cell": cell, "attention": attention}
        encoder = {"kind": "rnn", "cell": cell}
        model = Seq2Seq(
            size, size, embedding_size=32, dropout=0.0, coverage_loss=price, encoder=encoder, decoder=decoder
        )
        sources, targets = draw(random, 300)
        learn(model, 0.01, lambda _: draw(random, BATCH), lambda: False, 200)  # noqa: B023
        assert right(model, sources, targets).mean() >= 0.95
        source, source_mask = padded([[*row, END] for row in sources])
        target, target_mask = padded([[BEGIN, *row, END] for row in targets])
        weights = model(source, source_mask, target, target_mask).weights
        twice[price] = coverage_loss(weights)[target_mask[:, 1:]].mean().item()
    assert twice[1.0] < 0.05 < 0.2 < twice[0.0]
