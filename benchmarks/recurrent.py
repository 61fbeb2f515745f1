"""Recurrent layers of two directions over mixed lengths, beside torch.nn and beside a loop over time.

    python -m benchmarks.recurrent --json [--threads 2] [--only lstm] [--rounds 5]

Forward and backward, in milliseconds of the processor, so that others at work on the machine count little, or with
several threads of the clock; the contenders take turns, and the best of each counts. A turn is as many runs in a row as
take 20 ms, and their mean: what takes 2 ms takes half as long again right after others, which have driven it out of the
caches. Lengths are drawn evenly from 1 to the longest; `fill` is the share that is real.

`packed` is torch.nn with `pack_padded_sequence` in float32, as the documentation writes it, and `ratio` how often ours
fits into it, in float32 and under bfloat16 autocast; `difference` the largest of any output or gradient between the two
in float32, as a share of its largest number. For cells and options that torch.nn does not have, `share` is the rate of
operations of ours in bfloat16 as a share of the rate of nn.LSTM in bfloat16 on the same batch padded (all symbols of
which count as work), and `loop` how often ours in bfloat16 fits into a loop over time in float32 as one writes it: the
cell called on every step of the padded batch, in each direction. `plain` is our own reference loop, in float32, which
projects all inputs at once and leaves out the padding.

Where there is a GPU the same tables are taken on it (`--device`), theirs by cuDNN, in milliseconds of the clock.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.layers import Recurrent

DEMANDED = {"ratio": 2.0, "ratio_bfloat16": 3.5, "share": 0.6, "loop": 3.0}
TURN = 0.02
"""Seconds that a contender runs in its turn, at least."""

SIZES = ((20, 64, 256, 256), (20, 64, 256, 512), (50, 32, 128, 128), (100, 16, 64, 64))
KINDS: dict[str, tuple[dict[str, Any], type[nn.RNNBase]]] = {
    "lstm": ({"kind": "lstm"}, nn.LSTM),
    "gru": ({"kind": "gru", "reset": "after"}, nn.GRU),
    "elman": ({"kind": "elman"}, nn.RNN),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "elman": {"kind": "elman"},
    "gru before": {"kind": "gru"},
    "gru after": {"kind": "gru", "reset": "after"},
    "gru layer norm": {"kind": "gru", "layer_norm": True},
    "gru zoneout": {"kind": "gru", "zoneout": 0.1},
    "lstm peephole": {"kind": "lstm", "peephole": "diagonal"},
    "lstm full peephole": {"kind": "lstm", "peephole": "full"},
    "lstm coupled": {"kind": "lstm", "coupled": True},
    "lstm layer norm": {"kind": "lstm", "layer_norm": True},
    "lstm zoneout": {"kind": "lstm", "zoneout": 0.1},
    "lstm recurrent dropout": {"kind": "lstm", "recurrent_dropout": 0.2},
    "lstm projection": {"kind": "lstm", "projection_size": 128},
}


class Case(NamedTuple):
    """One batch, ours and torch's, and a gradient to send back."""

    x: Tensor
    lengths: Tensor
    mask: Tensor
    gradient: Tensor
    ours: Recurrent
    theirs: nn.RNNBase


def make(cell: dict[str, Any], oracle: type[nn.RNNBase], sizes: tuple[int, int, int, int], device: str) -> Case:
    """``sizes``: steps, rows, input and hidden size."""
    torch.manual_seed(1)
    time_steps, batch, input_size, hidden_size = sizes
    ours = Recurrent(input_size, cell={**cell, "hidden_size": hidden_size}, bidirectional=True)
    theirs = oracle(input_size, hidden_size, bidirectional=True, batch_first=True)
    x = torch.randn(batch, time_steps, input_size).to(device).requires_grad_()
    lengths = torch.randint(1, time_steps + 1, (batch,))
    lengths[0] = time_steps
    mask = torch.arange(time_steps) < lengths.unsqueeze(1)
    gradient = torch.randn(batch, time_steps, ours.output_size).to(device)
    return Case(x, lengths, mask.to(device), gradient, ours.to(device), theirs.to(device))


def share_weights(kind: str, case: Case) -> None:
    """The same numbers in both networks, gate by gate."""
    for built, end in zip(case.ours.cells, ("", "_reverse"), strict=True):
        weights = (built.input_weight, built.hidden_weight, *built.biases())
        for name, weight in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), weights, strict=True):
            getattr(case.theirs, f"{name}_l0{end}").data.copy_(in_their_order(kind, weight))


def in_their_order(kind: str, weight: Tensor) -> Tensor:
    """PyTorch's GRU has (reset, update, candidate), and its update gate is 1 - ours."""
    if kind != "gru":
        return weight
    update, reset, candidate = weight.chunk(3)
    return torch.cat((reset, -update, candidate))


def run_ours(case: Case, bfloat16: bool = False, plain: bool = False) -> Tensor:
    case.ours.path = "plain" if plain else None
    with torch.autocast(case.x.device.type, torch.bfloat16, enabled=bfloat16):
        output = case.ours(case.x, case.mask).output
    output.backward(case.gradient.to(output.dtype))
    return output


def run_packed(case: Case) -> Tensor:
    packed = pack_padded_sequence(case.x, case.lengths, batch_first=True, enforce_sorted=False)
    output, _ = pad_packed_sequence(case.theirs(packed)[0], batch_first=True, total_length=case.x.shape[1])
    output.backward(case.gradient)
    return output


def run_padded(case: Case) -> Tensor:
    with torch.autocast(case.x.device.type, torch.bfloat16):
        output, _ = case.theirs(case.x)
    output.backward(torch.ones_like(output))
    return output


def run_loop(case: Case) -> Tensor:
    directions = []
    for cell, steps in zip(case.ours.cells, (case.x.unbind(1), case.x.unbind(1)[::-1]), strict=True):
        state = cell.initial(len(case.x), case.x)
        noise = cell.draw(len(case.x), case.x)
        outputs = []
        for step in steps:
            state = cell(step, state, noise)
            outputs.append(state[0])
        directions.append(torch.stack(outputs, 1))
    output = torch.cat(directions, 2)
    output.backward(case.gradient)
    return output


def forget(case: Case) -> None:
    case.x.grad = None
    case.ours.zero_grad()
    case.theirs.zero_grad()


def difference(kind: str, case: Case) -> float:
    """The largest between ours and theirs in float32, over output and gradients, as a share of the largest number."""
    forget(case)
    mine = [run_ours(case).detach(), grad(case.x)]
    for cell in case.ours.cells:
        mine += [in_their_order(kind, grad(weight)) for weight in (cell.input_weight, cell.hidden_weight)]
    forget(case)
    yours = [run_packed(case).detach(), grad(case.x)]
    for end in ("", "_reverse"):
        yours += [grad(getattr(case.theirs, f"{name}_l0{end}")) for name in ("weight_ih", "weight_hh")]
    return max(float((one - other).abs().max() / other.abs().max()) for one, other in zip(mine, yours, strict=True))


def grad(tensor: Tensor) -> Tensor:
    if tensor.grad is None:
        raise RuntimeError("nothing was sent back to a tensor that should have a gradient")
    return tensor.grad


def measure(case: Case, runs: dict[str, Callable[[], Tensor]], rounds: int) -> dict[str, float]:
    """Best milliseconds of each over ``rounds``, taken in turns so that a busy machine hits all alike."""
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(rounds + 1):
        for who, run in runs.items():
            spent, count = 0.0, 0
            while spent < TURN:
                forget(case)
                start = now(case.x.device)
                run()
                spent, count = spent + now(case.x.device) - start, count + 1
            if turn:  # the first turn warms up
                best[who] = min(best[who], 1000 * spent / count)
    return best


def now(device: torch.device) -> float:
    """Seconds of the processor, or of the clock where several threads work or a GPU does what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()


def products(network: nn.Module, symbols: int) -> float:
    """Operations of all matrix products over ``symbols``, forward and backward: three a weight, each two operations."""
    return 6.0 * symbols * sum(weight.numel() for weight in network.parameters() if weight.dim() == 2)


def beside_torch(kind: str, sizes: tuple[int, int, int, int], rounds: int, device: str) -> dict[str, float]:
    cell, oracle = KINDS[kind]
    case = make(cell, oracle, sizes, device)
    share_weights(kind, case)
    best = measure(
        case,
        {
            "packed": lambda: run_packed(case),
            "float32": lambda: run_ours(case),
            "bfloat16": lambda: run_ours(case, bfloat16=True),
        },
        rounds,
    )
    return {
        **{who: round(spent, 1) for who, spent in best.items()},
        "fill": round(float(case.mask.float().mean()), 2),
        "difference": float(f"{difference(kind, case):.1e}"),
        "ratio": round(best["packed"] / best["float32"], 2),
        "ratio_bfloat16": round(best["packed"] / best["bfloat16"], 2),
    }


def beside_loop(name: str, sizes: tuple[int, int, int, int], rounds: int, device: str) -> dict[str, float]:
    case = make(OPTIONS[name], nn.LSTM, sizes, device)
    best = measure(
        case,
        {
            "nn.LSTM": lambda: run_padded(case),
            "bfloat16": lambda: run_ours(case, bfloat16=True),
            "float32": lambda: run_ours(case),
            "plain": lambda: run_ours(case, plain=True),
            "loop": lambda: run_loop(case),
        },
        rounds,
    )
    rate = products(case.ours, int(case.lengths.sum())) / best["bfloat16"]
    best_rate = products(case.theirs, case.mask.numel()) / best["nn.LSTM"]
    return {
        **{f"{who} ms": round(spent, 1) for who, spent in best.items()},
        "share": round(rate / best_rate, 2),
        "loop": round(best["loop"] / best["bfloat16"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of several the clock is read")
    parser.add_argument("--only", choices=sorted({*KINDS, *OPTIONS}))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--first-size", action="store_true", help=f"only {'x'.join(map(str, SIZES[0]))}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    result: dict[str, Any] = {"benchmark": "recurrent", "unit": "milliseconds", "torch": torch.__version__}
    result["device"] = torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu"
    result |= {"threads": options.threads, "demanded": ", ".join(f"{k} {v}" for k, v in DEMANDED.items())}
    for measured, names in ((beside_torch, KINDS), (beside_loop, OPTIONS)):
        for name in names:
            if options.only not in (None, name):
                continue
            for sizes in SIZES[:1] if options.first_size else SIZES:
                key = f"{name} {'x'.join(map(str, sizes))}"
                while key in result:
                    key += " (loop)"
                result[key] = measured(name, sizes, options.rounds, options.device)
                if not options.json:
                    print(key, *(f"{what} {value}" for what, value in result[key].items()), sep="  ", flush=True)
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
