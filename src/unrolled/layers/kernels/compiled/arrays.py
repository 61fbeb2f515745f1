"""A kernel's tensors as compiled loops take them: NumPy arrays over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unrolled.layers.kernels.compiled import tiles_worthwhile
from unrolled.layers.kernels.compiled.products import Matrix
from unrolled.layers.kernels.compiled.rows import Normed, Outside, Steps
from unrolled.layers.kernels.compiled.tiles import Tiles, laid_out
from unrolled.layers.kernels.tiled import TiledWeight

if TYPE_CHECKING:
    from unrolled.layers.kernels.base import Kernel
    from unrolled.layers.kernels.parts import Norm


def array(tensor: Tensor) -> Any:
    """The numbers of a contiguous tensor, not copied; bfloat16 as uint16."""
    if not tensor.is_contiguous():
        raise RuntimeError(f"a compiled loop was given a tensor of strides {tensor.stride()}; it wants it contiguous")
    tensor = tensor.detach()
    return (tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor).numpy()


def some(tensor: Tensor | None) -> Any:
    """`array`, of what an option may lack."""
    return None if tensor is None else array(tensor)


def held(weight: Tensor | None, products: int = 1) -> Matrix | Tiles | None:
    """``weight`` [inner, width] of so many products, or a turned view of one, or None; the caller keeps the tensor."""
    if weight is None:
        return None
    if isinstance(weight, TiledWeight) and weight.in_loops:
        return weight.laid_out()
    turned = weight.stride(1) != 1
    if tiles_worthwhile(weight.shape, weight.dtype, products):
        return laid_out((weight.t() if turned else weight).detach().view(torch.uint16).numpy(), turned)
    return Matrix(weight.data_ptr(), weight.stride(int(turned)), turned)


def each_held(weights: Sequence[Tensor | None], products: int) -> list[Matrix | Tiles | None]:
    """`held`, of several."""
    return [held(weight, products) for weight in weights]


def steps(counts: Sequence[int], fresh: bool) -> Steps:
    rows = np.array(counts, np.int64)
    return Steps(rows, np.cumsum(rows) - rows, fresh)


def normed(norm: Norm, grad: Tensor, at: int = 0) -> Normed:
    """A normalisation's weights and buffers; ``grad`` takes, from column ``at``, the gradient of what it normalises."""
    sums = norm.sums or (norm.gain.clone(), norm.gain.clone())
    for total in sums:
        total.zero_()
    given, mean, spread, own, gain, shift = map(array, (norm.given, norm.mean, norm.spread, grad, *sums))
    return Normed(array(norm.gain), some(norm.shift), given, mean, spread, own, at, gain, shift)


def outside(kernel: Kernel) -> Outside | None:
    """Where others have the loop's outputs and their gradient."""
    if kernel.outside is None:
        return None
    output, places, at = kernel.outside
    return Outside(array(places), at, array(output))
