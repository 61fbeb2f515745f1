"""The loss over a vocabulary: memory and time of the one that never holds all logits, beside those that do.

    python -m benchmarks.loss --json

Forward and backward of the output layer and its loss for 64 sentences (896 symbols of 512 units), one thread.
`plain` is F.cross_entropy of F.linear; `blocks` our linear layer and our loss on its logits; `fused` our
`linear_cross_entropy`; `torch` is torch's chunked F.linear_cross_entropy where it has one (float32; it cannot smooth).
Milliseconds of the processor, the best of several rounds, all in turn. Megabytes: the most that the process held beyond
what it held before, weights' gradients included, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers.loss import cross_entropy
from unrolled.models.output import Output

ROWS, SIZE, VOCABULARIES = 896, 512, (8000, 32000)
DEMANDED = {"memory": 0.5, "time": 1.0}

Loss = Callable[[Tensor, Output, Tensor], Tensor]


def plain(hidden: Tensor, output: Output, targets: Tensor) -> Tensor:
    return functional.cross_entropy(functional.linear(hidden, output.weight, output.bias), targets, reduction="sum")


def blocks(hidden: Tensor, output: Output, targets: Tensor) -> Tensor:
    return cross_entropy(output(hidden), targets)


def fused(hidden: Tensor, output: Output, targets: Tensor) -> Tensor:
    return output.loss(hidden, targets)


def theirs(hidden: Tensor, output: Output, targets: Tensor) -> Tensor:
    return functional.linear_cross_entropy(
        hidden,
        output.weight,
        targets,
        linear_bias=output.bias,
        reduction="sum",
        options=torch.nn.LinearCrossEntropyOptions(),
    )


LOSSES: dict[str, Loss] = {"plain": plain, "blocks": blocks, "fused": fused, "torch": theirs}


def contenders(precision: str) -> list[str]:
    able = precision == "float32" and hasattr(functional, "linear_cross_entropy")
    return ["plain", "blocks", "fused", *(["torch"] if able else [])]


def make(vocabulary: int, precision: str) -> Callable[[str], None]:
    """Runs the loss of that name once, forward and backward."""
    torch.manual_seed(1)
    output = Output(SIZE, vocabulary)
    hidden = torch.randn(ROWS, SIZE, requires_grad=True)
    targets = torch.randint(0, vocabulary, (ROWS,))

    def run(name: str) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            total = LOSSES[name](hidden, output, targets)
        torch.autograd.grad(total, [hidden, *output.parameters()])

    return run


def times(vocabulary: int, precision: str, rounds: int) -> dict[str, float]:
    """Milliseconds of each."""
    run, names = make(vocabulary, precision), contenders(precision)
    spent = dict.fromkeys(names, float("inf"))
    for turn in range(rounds + 1):
        for name in names:
            start = time.process_time()
            run(name)
            if turn:
                spent[name] = min(spent[name], 1000 * (time.process_time() - start))
    return spent


def peak(name: str, vocabulary: int, precision: str) -> float:
    """Megabytes that one run takes, in this process; Linux."""
    run = make(vocabulary, precision)
    make(8, precision)(name)  # what a first call loads once is not the loss's
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    before = _status("VmRSS")
    run(name)
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def peaks(vocabulary: int, precision: str) -> dict[str, float]:
    """Megabytes of each, each in a process of its own."""
    found = {}
    for name in contenders(precision):
        words = [sys.executable, "-m", "benchmarks.loss", "--one", name, str(vocabulary), precision]
        ran = subprocess.run(words, capture_output=True, text=True, check=True)
        found[name] = float(ran.stdout.strip().splitlines()[-1])
    return found


def measure(rounds: int) -> dict[str, Any]:
    result: dict[str, Any] = {"benchmark": "loss", "torch": torch.__version__, "demanded": f"{DEMANDED}"}
    for vocabulary in VOCABULARIES:
        for precision in ("float32", "bfloat16"):
            held, spent = peaks(vocabulary, precision), times(vocabulary, precision, rounds)
            result[f"{vocabulary} {precision}"] = {
                **{f"{name} MB": round(size) for name, size in held.items()},
                **{f"{name} ms": round(milliseconds, 1) for name, milliseconds in spent.items()},
                "memory to plain": round(held["fused"] / held["plain"], 2),
                "time to blocks": round(spent["fused"] / spent["blocks"], 2),
            }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--one", nargs=3, metavar=("LOSS", "VOCABULARY", "PRECISION"), help="megabytes of one alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.one:
        print(peak(options.one[0], int(options.one[1]), options.one[2]))
        return
    result = measure(options.rounds)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:20}{value}")


if __name__ == "__main__":
    main()
