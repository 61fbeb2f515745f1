"""Target tokens a second in training, beside the plain student script: forward, backward, clipping, Adam.

    python -m benchmarks.training --json

One thread, in seconds of the processor, so that others at work on the machine count little. Batch 64, embedding 256,
hidden 512, 8,000 symbols, source and target 11 to 17 long. `bahdanau`: GRU, an encoder of two directions;
`luong`: LSTM, no input feeding. One layer on each side. `ratio` is to the plain script (the student's `bahdanau`),
`ratio_same_network` to a student who wrote the same network.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from benchmarks import student
from unrolled.data.batching import Pairs, Tokens
from unrolled.models import Seq2Seq
from unrolled.tasks import TASKS
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

BATCH, EMBEDDING, HIDDEN, VOCABULARY, LENGTHS = 64, 256, 512, 8000, (11, 17)
PRECISIONS: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
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
        "encoder": {"kind": "rnn", "cell": LSTM, "bidirectional": False},
        "bridge": "copy",
        "decoder": {"kind": "query_after", "cell": LSTM, "input_feeding": False},
    },
}
STUDENTS: dict[str, Callable[[], nn.Module]] = {
    "bahdanau": lambda: student.Bahdanau(VOCABULARY, EMBEDDING, HIDDEN),
    "luong": lambda: student.Luong(VOCABULARY, EMBEDDING, HIDDEN, layers=1),
}


def batches(count: int, seed: int) -> list[Pairs]:
    """Random sentences, padded with 0."""
    draw = torch.Generator().manual_seed(seed)

    def side() -> Tokens:
        lengths = torch.randint(LENGTHS[0], LENGTHS[1] + 1, (BATCH, 1), generator=draw)
        mask = torch.arange(int(lengths.max())) < lengths
        return Tokens(torch.randint(4, VOCABULARY, mask.shape, generator=draw).masked_fill(~mask, 0), mask)

    return [Pairs(side(), side(), torch.arange(BATCH)) for _ in range(count)]


def ours(
    name: str, precision: Literal["float32", "bfloat16"], settings: dict[str, Any] | None = None
) -> Callable[[Pairs], None]:
    """The toolkit's own training step, of the model of that name or of ``settings``."""
    torch.manual_seed(1)
    model = Seq2Seq(VOCABULARY, VOCABULARY, embedding_size=EMBEDDING, dropout=0.0, **(settings or MODELS[name]))
    task = TASKS.build("translate")
    chosen = TrainSettings(learning_rate=1e-4, schedule="constant", steps=1_000_000, precision=precision, device="cpu")
    trainer = Trainer(model, task.loss, chosen)

    def update(batch: Pairs) -> None:
        trainer.update(batch)

    return update


def theirs(name: str) -> Callable[[Pairs], None]:
    """The plain script's training step."""
    torch.manual_seed(1)
    model = STUDENTS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def update(batch: Pairs) -> None:
        loss = student.loss(model, batch.source.ids, batch.source.mask, batch.target.ids)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return update


def measure(rounds: int, steps: int) -> dict[str, float]:
    """The best rate of each over ``rounds``, taken in turns so that a busy machine hits all alike."""
    made = batches(steps, seed=2)
    tokens = sum(int(batch.target.mask[:, 1:].sum()) for batch in made)
    updates = {
        **{f"student {name}": theirs(name) for name in STUDENTS},
        **{f"{name} {precision}": ours(name, precision) for name in MODELS for precision in PRECISIONS},
    }
    best = dict.fromkeys(updates, 0.0)
    for turn in range(rounds + 1):
        for who, update in updates.items():
            start = time.process_time()
            for batch in made:
                update(batch)
            if turn:  # the first turn warms up
                best[who] = max(best[who], tokens / (time.process_time() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=3, help="a round")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rates = measure(options.rounds, options.batches)
    plain = rates["student bahdanau"]
    ratios = {
        name: {
            "ratio": round(rates[f"{name} bfloat16"] / plain, 2),
            "demanded": DEMANDED[name],
            "ratio_same_network": round(rates[f"{name} bfloat16"] / rates[f"student {name}"], 2),
            "ratio_same_network_float32": round(rates[f"{name} float32"] / rates[f"student {name}"], 2),
        }
        for name in MODELS
    }
    if options.json:
        whole = {who: round(rate) for who, rate in rates.items()}
        print(json.dumps({"benchmark": "training", "torch": torch.__version__, "tokens_per_second": whole, **ratios}))
        return
    for who, rate in rates.items():
        print(f"{who:24}{rate:8.0f} target tokens/s")
    for name, found in ratios.items():
        print(f"{name:24}" + ", ".join(f"{what} {value}" for what, value in found.items()))


if __name__ == "__main__":
    main()
