"""The one place that decides how a cell is run over time. All paths give the same result."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unrolled.layers.cells import GRU, LSTM, Cell, Elman, State
from unrolled.layers.kernels.base import Kernel, WholeSequence
from unrolled.layers.kernels.deferred import Deferred, step_cell
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
    if type(cell) is LSTM and x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        if dtype is torch.bfloat16 and order.fill >= PADDED_FROM_FILL:
            return "padded"
        if dtype is torch.float32 and order.even:
            return "padded"
    return "whole"


PADDED_FROM_FILL = 0.5
"""Share of real symbols from which a padded bfloat16 block is faster than our loop (benchmarks.recurrent)."""


def run(cell: Cell, x: Tensor, order: Order, state: State | None, path: Path | None = None) -> tuple[Tensor, State]:
    """Run ``cell`` over packed ``x`` [Σ counts, input]: packed outputs [Σ counts, hidden], the sorted rows' last state.

    ``state`` None is zeros. ``path`` forces one; None chooses. Under autocast products are in its type and the
    outputs too; states stay float32.
    """
    path = path or choose(cell, x, order)
    dtype = product_type(x)
    work = torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype
    if path == "whole":
        kernel = kernel_for(cell, order.counts)
        if kernel is not None:
            first = (None, None) if state is None else (*(tensor.to(work) for tensor in state), None)[:2]
            bias = cell.biases()[1].to(dtype) if _has_inner_bias(cell) else None
            output, *ends = WholeSequence.apply(kernel, cell.project(x), cell.hidden_weight.to(dtype), bias, *first)
            return output, tuple(end for end in ends if end is not None)
    if state is None:
        state = cell.initial(order.batch, x.new_empty(0, dtype=work))
    if path == "plain":
        return plain(cell, x, order, state)
    if path == "padded" and isinstance(cell, LSTM):
        output, ends = fused_padded(cell, x, order, state, dtype)
    else:
        output, ends = fused_packed(cell, x, order, state, dtype)
    return output, tuple(end.to(work) for end in ends)


class Held:
    """A cell's weights, held for the steps of one loop; ``above``: its inputs are known only step by step."""

    def __init__(self, cell: Cell, *, above: bool, deferred: bool) -> None:
        self.cell = cell
        self._above = above
        self._deferred = deferred
        self._ready = False
        self._input: Deferred | None = None
        self._hidden: Deferred | None = None
        self._bias: Tensor | None = None
        self._inner_bias: Tensor | None = None

    def project(self, x: Tensor) -> Tensor:
        """One step's input product, [batch, input] → [batch, gates * hidden]."""
        self._hold(x)
        return self.cell.project(x) if self._input is None else self._input.product(x) + self._bias

    def advance(self, projected: Tensor, state: State) -> State:
        """One step from a projected input; the new state."""
        self._hold(projected)
        kernel = kernel_for(self.cell, [len(projected)])
        if kernel is None or self._hidden is None:
            return self.cell.advance(projected, state)
        return step_cell(kernel, self._hidden, self._inner_bias, projected, state)

    def _hold(self, like: Tensor) -> None:
        if self._ready:
            return
        self._ready = True
        if not self._deferred or not torch.is_grad_enabled() or kernel_for(self.cell, [1]) is None:
            return
        dtype = product_type(like)
        bias, inner = self.cell.biases()
        self._bias = bias.to(dtype)
        self._inner_bias = inner.to(dtype) if _has_inner_bias(self.cell) else None
        self._hidden = Deferred(self.cell.hidden_weight, dtype)
        if self._above:
            self._input = Deferred(self.cell.input_weight, dtype)


def _has_inner_bias(cell: Cell) -> bool:
    return isinstance(cell, GRU) and cell.reset == "after"


def kernel_for(cell: Cell, counts: list[int]) -> Kernel | None:
    """A kernel for one call over steps of ``counts`` rows, or None where the cell has none."""
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
