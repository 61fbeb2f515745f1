"""A recurrent layer of two directions over mixed lengths, beside torch.nn with `pack_padded_sequence`.

    python -m benchmarks.recurrent --json

Forward and backward, one thread, in seconds of the processor, so that others at work on the machine count little; the
contenders take turns, and the best of each counts. Lengths are drawn evenly from 1 to the longest. Theirs is float32,
the way the documentation writes it; ours is in float32 and under bfloat16 autocast. `fill` is the share that is real;
`difference` the largest of any output or gradient between ours and theirs in float32, as a share of its largest number.
Where there is a GPU the same table is taken on it (`--device`), theirs by cuDNN, in seconds of the clock.
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

DEMANDED = {"lstm 20x64x256x256": 2.0}
SIZES = ((20, 64, 256, 256), (40, 16, 256, 256), (20, 64, 512, 512))
KINDS: dict[str, tuple[dict[str, Any], type[nn.RNNBase]]] = {
    "lstm": ({"kind": "lstm"}, nn.LSTM),
    "gru": ({"kind": "gru", "reset": "after"}, nn.GRU),
    "elman": ({"kind": "elman"}, nn.RNN),
}


class Case(NamedTuple):
    """One batch, both networks with the same weights, and a gradient to send back."""

    x: Tensor
    lengths: Tensor
    mask: Tensor
    gradient: Tensor
    ours: Recurrent
    theirs: nn.RNNBase


def make(kind: str, time_steps: int, batch: int, input_size: int, hidden_size: int, device: str = "cpu") -> Case:
    """The same numbers in both networks, gate by gate."""
    torch.manual_seed(1)
    cell, oracle = KINDS[kind]
    ours = Recurrent(input_size, cell={**cell, "hidden_size": hidden_size}, bidirectional=True)
    theirs = oracle(input_size, hidden_size, bidirectional=True, batch_first=True)
    for built, end in zip(ours.cells, ("", "_reverse"), strict=True):
        weights = (built.input_weight, built.hidden_weight, *built.biases())
        for name, weight in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), weights, strict=True):
            getattr(theirs, f"{name}_l0{end}").data.copy_(in_their_order(kind, weight))
    x = torch.randn(batch, time_steps, input_size).to(device).requires_grad_()
    lengths = torch.randint(1, time_steps + 1, (batch,))
    lengths[0] = time_steps
    mask = torch.arange(time_steps) < lengths.unsqueeze(1)
    gradient = torch.randn(batch, time_steps, 2 * hidden_size).to(device)
    return Case(x, lengths, mask.to(device), gradient, ours.to(device), theirs.to(device))


def in_their_order(kind: str, weight: Tensor) -> Tensor:
    """PyTorch's GRU has (reset, update, candidate), and its update gate is 1 - ours."""
    if kind != "gru":
        return weight
    update, reset, candidate = weight.chunk(3)
    return torch.cat((reset, -update, candidate))


def run_ours(case: Case, bfloat16: bool = False) -> Tensor:
    with torch.autocast(case.x.device.type, torch.bfloat16, enabled=bfloat16):
        output = case.ours(case.x, case.mask).output
    output.backward(case.gradient.to(output.dtype))
    return output


def run_theirs(case: Case) -> Tensor:
    packed = pack_padded_sequence(case.x, case.lengths, batch_first=True, enforce_sorted=False)
    output, _ = pad_packed_sequence(case.theirs(packed)[0], batch_first=True, total_length=case.x.shape[1])
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
    yours = [run_theirs(case).detach(), grad(case.x)]
    for end in ("", "_reverse"):
        yours += [grad(getattr(case.theirs, f"{name}_l0{end}")) for name in ("weight_ih", "weight_hh")]
    return max(float((one - other).abs().max() / other.abs().max()) for one, other in zip(mine, yours, strict=True))


def grad(tensor: Tensor) -> Tensor:
    if tensor.grad is None:
        raise RuntimeError("nothing was sent back to a tensor that should have a gradient")
    return tensor.grad


def measure(case: Case, rounds: int) -> dict[str, float]:
    """Best milliseconds of each over ``rounds``, taken in turns so that a busy machine hits all alike."""
    runs: dict[str, Callable[[], Tensor]] = {
        "packed": lambda: run_theirs(case),
        "float32": lambda: run_ours(case),
        "bfloat16": lambda: run_ours(case, bfloat16=True),
    }
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(rounds + 2):
        for who, run in runs.items():
            forget(case)
            start = now(case.x.device)
            run()
            if turn > 1:  # the first turns warm up
                best[who] = min(best[who], 1000 * (now(case.x.device) - start))
    return best


def now(device: torch.device) -> float:
    """Seconds of the processor, or of the clock once a GPU has done what it was given."""
    if device.type != "cuda":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", choices=sorted(KINDS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu"
    result: dict[str, Any] = {"benchmark": "recurrent", "unit": "milliseconds", "torch": torch.__version__}
    result["device"] = device
    for kind in [options.only] if options.only else KINDS:
        for sizes in SIZES if kind == "lstm" else SIZES[:1]:
            name = f"{kind} {'x'.join(map(str, sizes))}"
            case = make(kind, *sizes, device=options.device)
            best = measure(case, options.rounds)
            result[name] = {
                **{who: round(spent, 1) for who, spent in best.items()},
                "fill": round(float(case.mask.float().mean()), 2),
                "difference": difference(kind, case),
                "ratio": round(best["packed"] / best["float32"], 2),
                "ratio_bfloat16": round(best["packed"] / best["bfloat16"], 2),
                **({"demanded": DEMANDED[name]} if name in DEMANDED else {}),
            }
            if not options.json:
                print(name, *(f"{key} {value}" for key, value in result[name].items()), sep="  ")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
