"""Copy, reverse, sort and remember: what every architecture must learn in seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from unrolled.base.protocol import BEGIN, END, PAD, SPECIALS
from unrolled.layers import cross_entropy
from unrolled.models import DECODERS, ENCODERS, Seq2Seq, TorchStepper

TASKS: dict[str, Callable[[list[int]], list[int]]] = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}
FIRST = len(SPECIALS) + len(TASKS)
"""The first symbol that is no special one and names no task."""

SYMBOLS, LONGEST, BATCH, UPDATES = 5, 4, 128, 400
ELMAN, GRU, LSTM = ({"kind": kind, "hidden_size": 64} for kind in ("elman", "gru", "lstm"))
STACK = {"layers": 2, "heads": 4, "hidden_size": 48, "feedforward_size": 96, "dropout": 0.0}
READER = {"kind": "rnn", "cell": GRU}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "transformer": {
        "rate": 0.004,
        "encoder": {"kind": "transformer", **STACK},
        "decoder": {"kind": "transformer", **STACK},
    },
    "windows": {
        "encoder": {"kind": "feedforward", "reach": 4, "hidden_size": 96},
        "decoder": {"kind": "feedforward", "window": 5, "hidden_size": 96},
    },
    "gnmt on convolutions": {
        "encoder": {"kind": "cnn", "layers": 3, "hidden_size": 48, "dropout": 0.0},
        "decoder": {"kind": "gnmt", "cell": LSTM, "layers": 2},
    },
    "bahdanau on a pyramid": {
        "encoder": {"kind": "pyramidal", "cell": GRU},
        "decoder": {"kind": "query_before", "cell": GRU},
    },
    "luong on n-grams": {
        "encoder": {"kind": "ngram", "widest": 5, "hidden_size": 32},
        "decoder": {"kind": "query_after", "cell": LSTM},
    },
    "bahdanau with elman cells": {
        "rate": 0.004,
        "encoder": {"kind": "rnn", "cell": ELMAN},
        "decoder": {"kind": "query_before", "cell": ELMAN},
    },
    "luong without feeding": {
        "encoder": {"kind": "rnn", "cell": LSTM},
        "decoder": {"kind": "query_after", "cell": LSTM, "input_feeding": False},
    },
    "cho": {
        "rate": 0.01,
        "encoder": {"kind": "rnn", "cell": GRU, "bidirectional": False},
        "decoder": {"kind": "fixed", "cell": GRU, "context": "every_step", "readout": "maxout"},
    },
    "sutskever": {
        "rate": 0.01,
        "encoder": {"kind": "rnn", "cell": LSTM, "bidirectional": False, "reverse": True},
        "bridge": "copy",
        "decoder": {"kind": "fixed", "cell": LSTM, "context": "once"},
    },
}
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
    gold = target[:, 1:][target_mask[:, 1:]]
    return cross_entropy(model.train()(source, source_mask, target, target_mask).logits, gold) / len(gold)


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


def learn(model: Seq2Seq, rate: float, batches: Callable[[int], tuple[Rows, Rows]], done: Callable[[], bool]) -> int:
    """Adam with a short rise and a straight fall of the rate; how many updates it took until ``done``."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    for step in range(UPDATES):
        optimizer.param_groups[0]["lr"] = rate * min((step + 1) / 20, max(0.02, 1 - step / UPDATES))
        optimizer.zero_grad()
        loss_of(model, *batches(step)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 49 and done():
            break
    return step + 1


def test_every_encoder_and_decoder_is_among_them() -> None:
    for side, registry in (("encoder", ENCODERS), ("decoder", DECODERS)):
        assert {settings[side]["kind"] for settings in ARCHITECTURES.values()} == set(registry)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_copying_reversing_and_sorting_are_learnt_by_one_model_in_seconds(name: str) -> None:
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    settings = dict(ARCHITECTURES[name])
    rate = settings.pop("rate", 0.006)
    model = Seq2Seq(FIRST + SYMBOLS, FIRST + SYMBOLS, embedding_size=48, dropout=0.0, **settings)
    sources, targets = draw(random, 300)
    shares = np.zeros(len(TASKS))

    def done() -> bool:
        shares[:] = right(model, sources, targets).reshape(-1, len(TASKS)).mean(axis=0)
        return bool(shares.min() >= 0.97)

    updates = learn(model, rate, lambda _: draw(random, BATCH), done)
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
