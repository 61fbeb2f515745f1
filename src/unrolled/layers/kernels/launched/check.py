"""A look, once a process, at what Triton makes on a device: each cell's loop beside the same by calls of torch."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.cells import GRU, LSTM, Cell
from unrolled.layers.kernels.order import Order

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.03}
"""Of the largest number, or of one where all are smaller; by the type of products."""

LENGTHS = [5, 3, 3, 1]


def fault(device: torch.device) -> str | None:
    """What is wrong with the kernels in Triton there, or None."""
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")  # which the kernels' own products always have
        with torch.inference_mode(False), torch.enable_grad():
            for dtype, tolerance in TOLERANCE.items():
                for name, cell in _cells().items():
                    with torch.autocast(device.type, torch.bfloat16, enabled=dtype is torch.bfloat16):
                        difference = _difference(cell.to(device, torch.float32), device)
                    if not difference <= tolerance:
                        return f"the results of {name} in {dtype} differ by {difference:.1g} from those of torch"
    except torch.OutOfMemoryError:
        raise  # which says nothing of the kernels, and is the caller's affair
    except Exception as error:  # what a compiler or a driver may raise has no common class
        lines = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {lines[0][:200]}"
    finally:
        torch.set_float32_matmul_precision(precision)
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
    """The largest of any output or gradient, as a share of its largest number, or of one."""
    order = Order(len(LENGTHS), max(LENGTHS), LENGTHS, device)
    numbers = order.size * cell.input_size
    given = torch.linspace(-1, 1, numbers, device=device, dtype=torch.float32).view(order.size, -1)
    ours, theirs = (_run(cell, given.clone().requires_grad_(), order, launched) for launched in (True, False))
    return max(
        float((one - other).abs().max()) / max(float(other.abs().max()), 1.0)
        for one, other in zip(ours, theirs, strict=True)
    )


def _run(cell: Cell, x: Tensor, order: Order, launched: bool) -> list[Tensor]:
    from unrolled.layers.kernels.choose import run

    output, _ = run(cell, x, order, None, "launched" if launched else "whole")
    weights = (cell.input_weight, cell.hidden_weight, cell.bias)
    return [output.detach().float(), *torch.autograd.grad(output.float().square().sum(), (x, *weights))]
