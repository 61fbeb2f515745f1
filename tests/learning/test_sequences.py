"""Copy, reverse and sort: what every architecture must learn in seconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from unrolled.base.protocol import BEGIN, END, PAD
from unrolled.layers import cross_entropy
from unrolled.models import Seq2Seq, TorchStepper

SYMBOLS, LONGEST, BATCH, UPDATES, RATE = 6, 4, 64, 400, 0.01
TASKS: dict[str, Callable[[list[int]], list[int]]] = {"copy": list, "reverse": lambda row: row[::-1], "sort": sorted}
GRU, LSTM = {"kind": "gru", "hidden_size": 48}, {"kind": "lstm", "hidden_size": 48}
ARCHITECTURES = {
    "bahdanau": {
        "encoder": {"kind": "rnn", "cell": GRU},
        "decoder": {"kind": "query_before", "cell": GRU, "attention": {"kind": "additive", "hidden_size": 32}},
    },
    "luong": {
        "encoder": {"kind": "rnn", "cell": LSTM, "bidirectional": False},
        "bridge": "copy",
        "decoder": {"kind": "query_after", "cell": LSTM},
    },
    "luong-without-feeding": {
        "encoder": {"kind": "rnn", "cell": LSTM},
        "decoder": {"kind": "query_after", "cell": LSTM, "input_feeding": False},
    },
    "cho": {
        "encoder": {"kind": "rnn", "cell": GRU, "bidirectional": False},
        "decoder": {"kind": "fixed", "cell": GRU, "context": "every_step", "readout": "maxout"},
    },
    "sutskever": {
        "encoder": {"kind": "rnn", "cell": LSTM, "bidirectional": False, "reverse": True},
        "bridge": "copy",
        "decoder": {"kind": "fixed", "cell": LSTM, "context": "once"},
    },
}


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return ids, ids != PAD


def draw(random: np.random.Generator, count: int, task: str) -> tuple[list[list[int]], list[list[int]]]:
    sources = [random.integers(4, 4 + SYMBOLS, random.integers(1, LONGEST + 1)).tolist() for _ in range(count)]
    return sources, [TASKS[task](row) for row in sources]


def greedy(model: Seq2Seq, sources: list[list[int]]) -> list[list[int]]:
    stepper = TorchStepper(model)
    ids, mask = padded([[*row, END] for row in sources])
    state, last, said = stepper.start(ids.numpy(), mask.numpy()), np.full(len(sources), BEGIN), []
    for _ in range(LONGEST + 1):
        _, best, _, state = stepper.step(last, state, 1)
        last = best[:, 0]
        said.append(last)
    return [row[: row.index(END)] if END in row else row for row in np.stack(said, axis=1).tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_learnt_in_seconds(name: str, task: str) -> None:
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    model = Seq2Seq(4 + SYMBOLS, 4 + SYMBOLS, embedding_size=24, dropout=0.0, **ARCHITECTURES[name])
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=UPDATES)
    sources, targets = draw(random, 200, task)
    share = 0.0
    for step in range(UPDATES):
        given, wanted = draw(random, BATCH, task)
        source, source_mask = padded([[*row, END] for row in given])
        target, target_mask = padded([[BEGIN, *row, END] for row in wanted])
        gold = target[:, 1:][target_mask[:, 1:]]
        loss = cross_entropy(model.train()(source, source_mask, target, target_mask).logits, gold) / len(gold)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            share = float(np.mean([one == other for one, other in zip(greedy(model, sources), targets, strict=True)]))
            if share >= 0.97:
                break
    assert share >= 0.97, f"{share:.0%} right after {step + 1} updates"
