"""The one place that decides how a cell is run over time. All paths give the same result."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unrolled.base.errors import UsageError
from unrolled.layers.cells import GRU, LSTM, Cell, Elman, State
from unrolled.layers.cells.checks import product_type
from unrolled.layers.kernels import compiled, launched
from unrolled.layers.kernels.base import NO_EXTRAS, Extras, Kernel, WholeSequence
from unrolled.layers.kernels.elman import ElmanKernel
from unrolled.layers.kernels.fused import fusable, fused_packed, fused_padded
from unrolled.layers.kernels.gru import GRUAfter, GRUBefore
from unrolled.layers.kernels.lstm import LSTMKernel
from unrolled.layers.kernels.order import Order
from unrolled.layers.kernels.plain import plain
from unrolled.layers.kernels.tiled import TiledWeight
from unrolled.layers.surroundings import followed

Path = Literal["plain", "whole", "compiled", "launched", "padded", "packed"]


def choose(cell: Cell, x: Tensor, order: Order) -> Path:
    """The fastest path for this cell, input and device.

    ``packed``: cuDNN. ``padded``: oneDNN's LSTM, where there is no padding and our loop has no tiles. ``compiled``: our
    own loop with a hand-written backward, for every cell and option, as machine code. ``launched``: the same in Triton,
    for most of the cells that cuDNN lacks. ``whole``: the same loop as calls of torch, on other devices and where torch
    brings no product that compiled code could call. ``plain``: the loop as written, for a cell of someone's own and
    where torch has to see each operation (`followed`). No choice hangs on a number of the input but its lengths.
    """
    if type(cell) not in WITH_KERNEL or followed(x):
        return "plain"
    dtype = product_type(x)
    if x.is_cuda and fusable(cell) and dtype is not torch.float64 and torch.backends.cudnn.is_available():
        return "packed"
    if x.is_cuda and launched.worthwhile(cell, dtype) and launched.trusted(x.device):
        return "launched"
    weight = cell.hidden_weight
    in_loops = compiled.possible(weight) and compiled.product_found(dtype)
    if type(cell) is LSTM and cell.bare and order.even and order.batch >= PADDED_FROM_ROWS:
        on_processor = x.device.type == "cpu" and torch.backends.mkldnn.is_available() and dtype is not torch.float64
        in_tiles = in_loops and compiled.tiles_worthwhile(weight.shape, dtype, len(order.counts))
        if on_processor and not in_tiles:
            return "padded"
    return "compiled" if in_loops else "whole"


WITH_KERNEL = (LSTM, GRU, Elman)
"""The cells that have a `Kernel`: see `whole_kernel`."""

BY_KERNEL = ("whole", "compiled", "launched")
"""The paths that run a `Kernel`."""

PADDED_FROM_ROWS = 16
"""Rows from which oneDNN's LSTM is faster than a compiled loop where all are equally long (benchmarks.recurrent)."""


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
    like = x.new_empty(0, dtype=work)
    noise = cell.draw(order.batch, like, symbols=order.size)
    if state is None and (path not in BY_KERNEL or noise.kept):
        state = cell.initial(order.batch, like)
    kernel = whole_kernel(cell, order.counts)
    if path in BY_KERNEL and kernel is not None:
        kernel.noise, kernel.compiled, kernel.launched = noise, path == "compiled", path == "launched"
        first = (None, None) if state is None else (*(tensor.to(work) for tensor in state), None)[:2]
        inner = step_type(cell, x, order, path)
        bias = cell.biases()[1].to(inner) if has_inner_bias(cell) else None
        output, *ends = WholeSequence.apply(
            kernel, cell.project(x), cell.hidden_weight.to(inner), bias, *first, *extras_of(cell, inner)
        )
        return output.to(dtype), tuple(end for end in ends if end is not None)
    if state is None:
        state = cell.initial(order.batch, like)
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
    if whole_kernel(cell, [1]) is not None:
        paths.append("whole")
        if compiled.possible(cell.hidden_weight):
            paths.append("compiled")
        if launched.possible(cell):
            paths.append("launched")
    if type(cell) is LSTM and cell.bare:
        paths.append("padded")
    if fusable(cell):
        paths.append("packed")
    return paths


def has_inner_bias(cell: Cell) -> bool:
    """Whether a part of the bias is added to the hidden product."""
    return isinstance(cell, GRU) and cell.reset == "after"


def extras_of(cell: Cell, dtype: torch.dtype) -> Extras:
    """The weights that the cell's options add to its steps; those of products in ``dtype``, others float32 or wider."""
    if isinstance(cell, Elman):
        return NO_EXTRAS
    work = torch.promote_types(dtype, torch.float32)

    def cast(weight: Tensor | None, to: torch.dtype) -> Tensor | None:
        return None if weight is None else weight.to(to)

    gain = cast(cell.hidden_gain, work)
    if not isinstance(cell, LSTM):
        return Extras(gain)
    full = cell.peephole == "full" and cell.hidden_size > 1  # a matrix of one number is a diagonal
    return Extras(
        gain,
        cast(cell.peephole_weight, dtype if full else work),
        cast(cell.memory_gain, work),
        cast(cell.memory_shift, work),
        cast(cell.projection_weight, dtype),
    )


def kernel_for(cell: Cell, counts: list[int]) -> Kernel | None:
    """`whole_kernel` where hidden weight and bias are all the weights of a step, and nothing is left to chance."""
    simple = not cell.layer_norm and not cell.zoneout and not cell.noisy
    if isinstance(cell, LSTM) and (cell.peephole_weight is not None or cell.projection_weight is not None):
        simple = False
    return whole_kernel(cell, counts) if simple else None


def whole_kernel(cell: Cell, counts: list[int]) -> Kernel | None:
    """A kernel for one call over steps of ``counts`` rows, or None where the cell has none.

    It wants the cell's `extras_of` and its noise.
    """
    if type(cell) is LSTM:
        return LSTMKernel(counts, coupled=cell.coupled)
    if type(cell) is GRU:
        return GRUBefore(counts) if cell.reset == "before" else GRUAfter(counts)
    if type(cell) is Elman:
        return ElmanKernel(counts, cell.activation)
    return None


def step_type(cell: Cell, x: Tensor, order: Order, path: Path) -> torch.dtype:
    """The type of a step's products: `product_type`, but float32 where a processor is faster in it.

    A float32 product takes as long as its operations; a bfloat16 one, however small, as long as laying out its weight
    takes, and from Python a call. So few rows, or there a small weight, go in float32
    (decisions/0010-what-a-step-costs.md). A compiled loop that multiplies in pairs (decisions/0036) is faster in
    bfloat16 from one row on.
    """
    dtype = product_type(x)
    weight, steps = cell.hidden_weight, len(order.counts)
    in_pairs = path == "compiled" and compiled.pairs_used() and compiled.tiles_worthwhile(weight.shape, dtype, steps)
    if isinstance(weight, TiledWeight) or in_pairs:
        return dtype
    rows = order.size / steps
    few = 9 if path == "compiled" else 9 + 1.3e6 / weight.numel()
    return torch.float32 if x.device.type == "cpu" and dtype is torch.bfloat16 and rows < few else dtype
