"""What a search does in a step beside its products: torch's calls beside compiled code, in microseconds.

    python -m benchmarks.steps --json

512 units, 17 source positions, 8,004 symbols, float32, one thread, seconds of the processor; both take turns and the
best of five counts. `compiled` is what cells, attention and search call in inference mode, `torch` the same by torch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.products import best_of_five
from unrolled.layers.kernels import steps
from unrolled.layers.likeliest import likeliest

UNITS, PLACES, SYMBOLS = 512, 17, 8004
ROWS = (1, 5, 64, 320)


def lstm(total: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    write, keep, candidate, show = total.chunk(4, 1)
    new = keep.sigmoid() * memory + write.sigmoid() * candidate.tanh()
    return show.sigmoid() * new.tanh(), new


def look(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(query.unsqueeze(1), keys.transpose(1, 2)).masked_fill(~mask.unsqueeze(1), float("-inf"))
    return torch.bmm(scores.softmax(-1), values)


def look_by_a_layer(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, vector: torch.Tensor
) -> torch.Tensor:
    scores = (query.unsqueeze(1) + keys).tanh() @ vector
    return torch.bmm(scores.masked_fill(~mask, float("-inf")).softmax(-1).unsqueeze(1), values)


def pick(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    best = logits.log_softmax(1).topk(k, 1)
    return best.values, best.indices


def ways(rows: int) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """By name: compiled, and torch's."""
    total, memory = torch.randn(rows, 4 * UNITS), torch.randn(rows, UNITS)
    query, vector = 0.1 * torch.randn(rows, UNITS), torch.randn(UNITS)
    keys, values = torch.randn(rows, PLACES, UNITS), torch.randn(rows, PLACES, UNITS)
    mask, logits = torch.ones(rows, PLACES, dtype=torch.bool), torch.randn(rows, SYMBOLS)
    return {
        "lstm": (lambda: steps.lstm(total, memory), lambda: lstm(total, memory)),
        "tanh": (lambda: steps.tanh(query), lambda: torch.tanh(query)),
        "dot": (
            lambda: steps.look(query, keys, values, mask, None),
            lambda: look(query, keys, values, mask),
        ),
        "additive": (
            lambda: steps.look(query, keys, values, mask, vector),
            lambda: look_by_a_layer(query, keys, values, mask, vector),
        ),
        "likeliest 1": (lambda: likeliest(logits, 1), lambda: pick(logits, 1)),
        "likeliest 6": (lambda: likeliest(logits, 6), lambda: pick(logits, 6)),
    }


def measure(rows: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, (ours, theirs) in ways(rows).items():
        best = best_of_five({"compiled": ours, "torch": theirs})
        taken = {who: round(1e6 * spent, 1) for who, spent in best.items()}
        found.append({"step": name, "rows": rows, **taken, "ratio": round(best["torch"] / best["compiled"], 2)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with torch.inference_mode():
        table = [line for rows in ROWS for line in measure(rows)]
    if options.json:
        print(json.dumps({"benchmark": "steps", "torch": torch.__version__, "unit": "microseconds", "steps": table}))
        return
    for line in table:
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
