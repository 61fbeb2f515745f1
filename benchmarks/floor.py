"""How near to the processor's own rate of products a model trains: its multiply-adds a second, as a share of the rate.

    python -m benchmarks.floor --json

What is counted are the multiply-adds of the products that the equations ask for, on real symbols only (padding is not
useful work), forward once and backward twice. The rate is that of bfloat16 products as large as the model's largest,
forward and backward; `of a step` that of the product of one step of a loop, which waits for the step before. Batches
and models are those of `benchmarks.training`: 64 sentences, embedding 256, 512 units, 8,000 symbols; one thread, in
seconds of the processor, all in turn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from benchmarks.training import BATCH, EMBEDDING, HIDDEN, LSTM, MODELS, VOCABULARY, batches, ours
from unrolled.data.batching import Pairs

DEMANDED = {"luong": 0.6}
GATES = {"lstm": 4, "gru": 3, "elman": 1}
FED = {**MODELS["luong"], "decoder": {"kind": "query_after", "cell": LSTM, "input_feeding": True}}
COUNTED: dict[str, dict[str, Any]] = {**MODELS, "luong with feeding": FED}


class Cost(NamedTuple):
    """Multiply-adds of a forward pass."""

    source: int  # for each source symbol
    target: int  # for each target symbol that is fed
    pair: int  # for each source symbol of each target symbol: attention
    sentence: int  # for each sentence: the bridge

    def of(self, sources: list[int], targets: list[int]) -> int:
        """Multiply-adds for sentences of so many symbols."""
        pairs = sum(one * other for one, other in zip(sources, targets, strict=True))
        return (
            self.source * sum(sources) + self.target * sum(targets) + self.pair * pairs + self.sentence * len(sources)
        )


def cost(model: dict[str, Any], embedding: int, vocabulary: int) -> Cost:
    """That of a model of one layer a side, by its settings: `query_before` with the additive score, or `query_after`
    with the bilinear one; the bridge is `copy` or, where none is named, a projection.
    """
    encoder, decoder = model["encoder"], model["decoder"]
    inner, width = encoder["cell"]["hidden_size"], decoder["cell"]["hidden_size"]
    directions = 2 if encoder.get("bidirectional", True) else 1
    memory = directions * inner
    before = decoder["kind"] == "query_before"
    keys = decoder["attention"]["hidden_size"] if before else width
    fed = memory if before else width if decoder["input_feeding"] else 0
    read = width + memory + (embedding if before else 0)
    states = {"lstm": 2, "gru": 1, "elman": 1}
    bridged = states[encoder["cell"]["kind"]] * memory * states[decoder["cell"]["kind"]] * width
    return Cost(
        source=directions * GATES[encoder["cell"]["kind"]] * inner * (embedding + inner) + memory * keys,
        target=GATES[decoder["cell"]["kind"]] * width * (embedding + fed + width)
        + (width * keys if before else 0)
        + read * width
        + width * vocabulary,
        pair=keys + memory,
        sentence=0 if model.get("bridge") == "copy" else bridged,
    )


def counted(name: str, made: list[Pairs]) -> int:
    """Multiply-adds of training on batches: forward, and twice that backward (to the input and to the weight)."""
    one = cost(COUNTED[name], EMBEDDING, VOCABULARY)
    total = 0
    for batch in made:
        sources = batch.source.mask.sum(dim=1).tolist()
        targets = (batch.target.mask.sum(dim=1) - 1).tolist()
        total += 3 * one.of(sources, targets)
    return total


def product(rows: int, inner: int, outer: int) -> tuple[Callable[[], None], int]:
    """A bfloat16 product forward and backward, and its multiply-adds."""
    x, weight, gradient = (torch.randn(size).bfloat16() for size in ((rows, inner), (outer, inner), (rows, outer)))

    def run() -> None:
        functional.linear(x, weight)
        gradient.mm(weight)
        gradient.t().mm(x)

    return run, 3 * rows * inner * outer


def measure(rounds: int, count: int) -> dict[str, Any]:
    """Best rates over ``rounds``, in turns; billions of multiply-adds a second."""
    made = batches(count, seed=2)
    rows = sum(int(batch.target.mask[:, 1:].sum()) for batch in made) // count
    jobs: dict[str, tuple[Callable[[], None], int]] = {
        "rate": product(rows // 64 * 64, HIDDEN, VOCABULARY),
        "rate of a step": product(BATCH, HIDDEN, 4 * HIDDEN),
    }
    for name, settings in COUNTED.items():
        update = ours(name, "bfloat16", settings)
        jobs[name] = (lambda update=update: [update(batch) for batch in made] and None, counted(name, made))
    best = dict.fromkeys(jobs, 0.0)
    for turn in range(rounds + 1):
        for name, (run, amount) in jobs.items():
            start = time.process_time()
            run()
            if turn:
                best[name] = max(best[name], amount / (time.process_time() - start) / 1e9)
    return {
        "benchmark": "floor",
        "torch": torch.__version__,
        "unit": "10⁹ multiply-adds a second",
        **{name: round(best[name], 1) for name in ("rate", "rate of a step")},
        "models": [
            {
                "model": name,
                "reached": round(best[name], 1),
                "share": round(best[name] / best["rate"], 2),
                "demanded": DEMANDED.get(name, "–"),
            }
            for name in COUNTED
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=3, help="a round")
    options = parser.parse_args()
    torch.set_num_threads(1)
    result = measure(options.rounds, options.batches)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:20}{value}")


if __name__ == "__main__":
    main()
