"""The product of few rows with a weight: torch's beside weights that are laid out once, in float32 and in bfloat16.

    python -m benchmarks.products --json

x [rows, inner] · weightᵀ + bias [width], one thread, 10⁹ multiply-adds a second of the processor; all take turns and
the best of five counts. `float32` and `bfloat16` are panels, x is float32; `tiles`: x is bfloat16 too, in tile
registers or pairs, beside `torch bfloat16`, where the processor has either.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers.kernels.compiled import tiles_found
from unrolled.layers.kernels.compiled.arrays import laid_out, multiply_at

SHAPES = ((512, 2048), (512, 8000), (256, 1024))
ROWS = (1, 5, 16, 64, 320)
SECONDS = 0.02
"""Of a turn, about."""


def seconds(call: Callable[[], Any], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def best_of_five(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of the processor that each way takes, all in turn."""
    times = {name: max(1, int(SECONDS / max(seconds(call, 1), 1e-6))) for name, call in ways.items()}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(5):
        for name, call in ways.items():
            best[name] = min(best[name], seconds(call, times[name]))
    return best


def measure(rows: int, inner: int, width: int) -> dict[str, Any]:
    x, weight, bias = torch.randn(rows, inner), torch.randn(width, inner), torch.randn(width)
    single, half = (laid_out(one.t(), in_tiles=False) for one in (weight, weight.bfloat16()))
    out = torch.empty(rows, width)
    ways: dict[str, Callable[[], Tensor]] = {
        "torch": lambda: functional.linear(x, weight, bias),
        "float32": lambda: multiply_at(x, single, out, bias.data_ptr()),
        "bfloat16": lambda: multiply_at(x, half, out, bias.data_ptr()),
    }
    if tiles_found():
        rounded, weight_rounded, bias_rounded = x.bfloat16(), weight.bfloat16(), bias.bfloat16()
        tiles = laid_out(weight_rounded.t(), in_tiles=True)
        ways["torch bfloat16"] = lambda: functional.linear(rounded, weight_rounded, bias_rounded)
        ways["tiles"] = lambda: multiply_at(rounded, tiles, out, bias.data_ptr())
    rates = {name: rows * inner * width / taken / 1e9 for name, taken in best_of_five(ways).items()}
    found: dict[str, Any] = {"rows": rows, "inner": inner, "width": width}
    found |= {name: round(rate, 1) for name, rate in rates.items()}
    pairs = (("float32", "torch"), ("bfloat16", "torch"), ("tiles", "torch bfloat16"))
    return found | {f"ratio_{one}": round(rates[one] / rates[other], 2) for one, other in pairs if one in rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with torch.inference_mode():
        products = [measure(rows, *shape) for shape in SHAPES for rows in ROWS]
    if options.json:
        print(json.dumps({"benchmark": "products", "torch": torch.__version__, "products": products}))
        return
    for one in products:
        print("  ".join(f"{name} {value}" for name, value in one.items()))


if __name__ == "__main__":
    main()
