"""Target tokens a second in training, beside the plain student script: forward, backward, clipping, Adam.

    python -m benchmarks.training --json

One thread; batch 64, embedding 256, hidden 512, 8,000 symbols, source and target 11 to 17 long.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from benchmarks import student
from torch import Tensor, nn

from unrolled.layers import cross_entropy
from unrolled.models import Seq2Seq

BATCH, EMBEDDING, HIDDEN, VOCABULARY, LENGTHS = 64, 256, 512, 8000, (11, 17)
DEMANDED = {"bahdanau": 4.0, "luong": 7.0}

LSTM = {"kind": "lstm", "hidden_size": HIDDEN}
GRU = {"kind": "gru", "hidden_size": HIDDEN}
MODELS: dict[str, dict[str, Any]] = {
    "bahdanau": {
        "encoder": {"kind": "rnn", "cell": GRU},
        "decoder": {
            "kind": "query_before",
            "cell": GRU,
            "attention": {"kind": "additive", "hidden_size": HIDDEN},
        },
    },
    "luong": {
        "encoder": {"kind": "rnn", "cell": LSTM, "layers": 2, "bidirectional": False},
        "bridge": "copy",
        "decoder": {"kind": "query_after", "cell": LSTM, "layers": 2, "input_feeding": False},
    },
}
STUDENTS: dict[str, Callable[[], nn.Module]] = {
    "bahdanau": lambda: student.Bahdanau(VOCABULARY, EMBEDDING, HIDDEN),
    "luong": lambda: student.Luong(VOCABULARY, EMBEDDING, HIDDEN, layers=2),
}


def batches(count: int, seed: int) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Random sentences [BEGIN …] padded with 0, and their masks."""
    draw = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(count):
        sides = []
        for _ in ("source", "target"):
            lengths = torch.randint(LENGTHS[0], LENGTHS[1] + 1, (BATCH, 1), generator=draw)
            mask = torch.arange(int(lengths.max())) < lengths
            ids = torch.randint(4, VOCABULARY, mask.shape, generator=draw)
            sides += [ids.masked_fill(~mask, 0), mask]
        made.append(tuple(sides))
    return made  # type: ignore[return-value]


def ours(name: str, precision: torch.dtype) -> Callable[[tuple[Tensor, ...]], None]:
    torch.manual_seed(1)
    model = Seq2Seq(VOCABULARY, VOCABULARY, embedding_size=EMBEDDING, dropout=0.0, **MODELS[name])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def update(batch: tuple[Tensor, ...]) -> None:
        source, source_mask, target, target_mask = batch
        with torch.autocast("cpu", precision, enabled=precision is not torch.float32):
            logits = model(source, source_mask, target, target_mask).logits
            gold = target[:, 1:][target_mask[:, 1:]]
            loss = cross_entropy(logits, gold) / len(gold)
        _finish(model, optimizer, loss)

    return update


def theirs(name: str) -> Callable[[tuple[Tensor, ...]], None]:
    torch.manual_seed(1)
    model = STUDENTS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def update(batch: tuple[Tensor, ...]) -> None:
        source, source_mask, target, _ = batch
        _finish(model, optimizer, student.loss(model, source, source_mask, target))

    return update


def _finish(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def measure(name: str, rounds: int, steps: int) -> dict[str, float]:
    """Best rate of each over ``rounds``, taken in turns so that a busy machine hits all alike."""
    made = batches(steps, seed=2)
    tokens = sum(int(batch[3][:, 1:].sum()) for batch in made)
    updates = {
        "student": theirs(name),
        "float32": ours(name, torch.float32),
        "bfloat16": ours(name, torch.bfloat16),
    }
    best = dict.fromkeys(updates, 0.0)
    for turn in range(rounds + 1):
        for who, update in updates.items():
            start = time.perf_counter()
            for batch in made:
                update(batch)
            if turn:  # the first turn warms up
                best[who] = max(best[who], tokens / (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="batches a round")
    parser.add_argument("--only", choices=sorted(MODELS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {"benchmark": "training", "unit": "target tokens a second", "torch": torch.__version__}
    for name in [options.only] if options.only else MODELS:
        rates = measure(name, options.rounds, options.steps)
        result[name] = {
            **{who: round(rate) for who, rate in rates.items()},
            "ratio_float32": round(rates["float32"] / rates["student"], 2),
            "ratio": round(rates["bfloat16"] / rates["student"], 2),
            "demanded": DEMANDED[name],
        }
    if options.json:
        print(json.dumps(result))
        return
    for name in MODELS:
        for who, value in result.get(name, {}).items():
            print(f"{name:10}{who:16}{value}")


if __name__ == "__main__":
    main()
