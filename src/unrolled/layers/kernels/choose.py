"""The one place that decides how a cell is run over time. All paths give the same result."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unrolled.base.errors import UsageError
from unrolled.layers.cells import GRU, LSTM, Cell, Elman, State
from unrolled.layers.cells.base import SILENCE
from unrolled.layers.kernels.base import Kernel, WholeSequence
from unrolled.layers.kernels.elman import ElmanKernel
from unrolled.layers.kernels.fused import fusable, fused_packed, fused_padded
from unrolled.layers.kernels.gru import GRUAfter, GRUBefore
from unrolled.layers.kernels.lstm import LSTMKernel
from unrolled.layers.kernels.order import Order
from unrolled.layers.kernels.plain import plain

Path = Literal["plain", "whole", "padded", "packed"]


def choose(cell: Cell, x: Tensor, order: Order) -> Path:
    """The fastest path for this cell, input and device.

    ``packed``: cuDNN. ``padded``: oneDNN's LSTM, where the block holds little padding. ``whole``: our own loop with a
    hand-written backward, for the rest that has a kernel. ``plain``: the loop as written, for cells without one.
    """
    if kernel_for(cell, order.counts) is None:
        return "plain"
    dtype = product_type(x)
    if x.is_cuda and fusable(cell) and dtype is not torch.float64 and torch.backends.cudnn.is_available():
        return "packed"
    if type(cell) is LSTM and cell.bare and x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        if dtype is torch.bfloat16 and order.fill >= PADDED_FROM_FILL:
            return "padded"
        if dtype is torch.float32 and order.even:
            return "padded"
    return "whole"


PADDED_FROM_FILL = 0.5
"""Share of real symbols from which a padded bfloat16 block is faster than our loop (benchmarks.recurrent)."""


def run(cell: Cell, x: Tensor, order: Order, state: State | None, path: Path | None = None) -> tuple[Tensor, State]:
    """Run ``cell`` over packed ``x`` [Σ counts, input]: packed outputs [Σ counts, output], the sorted rows' last state.

    ``state`` None is zeros. ``path`` forces one; None chooses. Under autocast products are in its type and the
    outputs too; states stay float32.
    """
    if path is not None and path not in possible(cell):
        raise UsageError(
            f"the cell {type(cell).__name__} cannot run by the path '{path}'. Possible: {', '.join(possible(cell))}."
        )
    path = path or choose(cell, x, order)
    dtype = product_type(x)
    work = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    noise = cell.draw(order.batch, x.new_empty(0, dtype=work), symbols=order.size) if cell.noisy else SILENCE
    kernel = kernel_for(cell, order.counts)
    if path == "whole" and kernel is not None:
        first = (None, None) if state is None else (*(tensor.to(work) for tensor in state), None)[:2]
        bias = cell.biases()[1].to(dtype) if has_inner_bias(cell) else None
        output, *ends = WholeSequence.apply(kernel, cell.project(x), cell.hidden_weight.to(dtype), bias, *first)
        return output, tuple(end for end in ends if end is not None)
    if state is None:
        state = cell.initial(order.batch, x.new_empty(0, dtype=work))
    if path == "plain":
        return plain(cell, x, order, state, noise)
    if path == "padded" and isinstance(cell, LSTM):
        output, last = fused_padded(cell, x, order, state, dtype)
    else:
        output, last = fused_packed(cell, x, order, state, dtype)
    return output, tuple(end.to(work) for end in last)


def possible(cell: Cell) -> list[Path]:
    """The paths that can run ``cell``."""
    paths: list[Path] = ["plain"]
    if kernel_for(cell, [1]) is not None:
        paths.append("whole")
    if type(cell) is LSTM and cell.bare:
        paths.append("padded")
    if fusable(cell):
        paths.append("packed")
    return paths


def has_inner_bias(cell: Cell) -> bool:
    """Whether a part of the bias is added to the hidden product."""
    return isinstance(cell, GRU) and cell.reset == "after"


def kernel_for(cell: Cell, counts: list[int]) -> Kernel | None:
    """A kernel for one call over steps of ``counts`` rows, or None where the cell has none."""
    if not cell.bare:
        return None
    if type(cell) is LSTM:
        return LSTMKernel(counts)
    if type(cell) is GRU:
        return GRUBefore(counts) if cell.reset == "before" else GRUAfter(counts)
    if type(cell) is Elman:
        return ElmanKernel(counts, cell.activation)
    return None


def product_type(x: Tensor) -> torch.dtype:
    """The type of matrix products with ``x``: autocast's where it is on (float64 is left alone), else x's own."""
    device = x.device.type
    if x.dtype is not torch.float64 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return x.dtype
