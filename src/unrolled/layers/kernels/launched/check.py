"""A look, once a process, at what Triton makes on a device: each cell's loop beside the same by calls of torch."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells import GRU, LSTM, Cell
from unrolled.layers.kernels.order import Order

TOLERANCE = 1e-4
LENGTHS = [5, 3, 3, 1]


def fault(device: torch.device) -> str | None:
    """What is wrong with the kernels in Triton there, or None."""
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
            for name, cell in _cells().items():
                difference = _difference(cell.to(device), device)
                if not difference <= TOLERANCE:
                    return f"the results of {name} differ by {difference:.1g} from those of torch"
    except Exception as error:  # what a compiler or a driver may raise has no common class
        lines = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {lines[0][:200]}"
    return None


def _cells() -> dict[str, Cell]:
    size = 20  # no multiple of what a program works on at a time
    with torch.random.fork_rng(devices=[]):
        return {
            "the LSTM": LSTM(size, hidden_size=size, peephole="diagonal"),
            "the coupled LSTM": LSTM(size, hidden_size=size, coupled=True),
            "the GRU": GRU(size, hidden_size=size, reset="before"),
            "the GRU with reset 'after'": GRU(size, hidden_size=size, reset="after"),
        }


def _difference(cell: Cell, device: torch.device) -> float:
    """The largest of any output or gradient, from one number above all."""
    order = Order(len(LENGTHS), max(LENGTHS), LENGTHS, device)
    given = torch.linspace(-1, 1, order.size * cell.input_size, device=device).view(order.size, -1)
    ours, theirs = (_run(cell, given.clone().requires_grad_(), order, launched) for launched in (True, False))
    return max(float((one - other).abs().max()) for one, other in zip(ours, theirs, strict=True))


def _run(cell: Cell, x: Tensor, order: Order, launched: bool) -> list[Tensor]:
    from unrolled.layers.kernels.choose import run

    output, _ = run(cell, x, order, None, "launched" if launched else "whole")
    weights = (cell.input_weight, cell.hidden_weight, cell.bias)
    return [output.detach(), *torch.autograd.grad(output.square().sum(), (x, *weights))]
