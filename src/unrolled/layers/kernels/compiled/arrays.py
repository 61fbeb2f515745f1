"""A kernel's tensors as compiled loops take them: NumPy arrays over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.layers.kernels.compiled import PAIR, blocks, laying_out_pays, pairs_used, tiles, vectors
from unrolled.layers.kernels.compiled.laying import Lying, lay_out
from unrolled.layers.kernels.compiled.products import Weight, as_it_lies, in_panels
from unrolled.layers.kernels.compiled.threads import portions, together, worthwhile
from unrolled.layers.kernels.compiled.tiles import Tiles
from unrolled.layers.kernels.compiled.vectors import Panels
from unrolled.layers.kernels.tiled import TiledWeight


def array(tensor: Tensor) -> Any:
    """The numbers of a contiguous tensor, not copied; bfloat16 as uint16."""
    if not tensor.is_contiguous():
        raise RuntimeError(f"a compiled loop was given a tensor of strides {tensor.stride()}; it wants it contiguous")
    if tensor.requires_grad:
        tensor = tensor.detach()
    return (tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor).numpy()


def some(tensor: Tensor | None) -> Any:
    """`array`, of what an option may lack."""
    return None if tensor is None else array(tensor)


def laid_out(weight: Tensor, *, in_tiles: bool) -> Tiles | Panels:
    """``weight`` [inner, width], or a turned view of one, float32 or bfloat16: in tiles, of bfloat16, or in panels."""
    if type(weight) is Tensor:
        shape, (at, apart, turned) = weight.shape, _lies(weight)
    else:
        with torch._C.DisableTorchFunctionSubclass():
            shape, (at, apart, turned) = weight.shape, _lies(weight)
    return (
        tiles.laid_out(at, apart, shape, turned)
        if in_tiles
        else vectors.laid_out(at, apart, shape, turned, weight.dtype)
    )


def multiply_at(x: Tensor, weight: Tiles | Panels, out: Tensor, first: int = 0, first_apart: int = 0) -> Tensor:
    """out = x · weight, plus what stands at the address ``first``, rows ``first_apart`` numbers apart; see tiles.py."""
    if (x.stride(1) != 1 and x.shape[1] > 1) or out.stride(1) != 1:
        raise RuntimeError("a product with a weight that was laid out wants the columns of its tensors side by side")
    made = torch.bfloat16 if isinstance(weight, Tiles) or weight.kind == blocks.PAIRS else torch.float32
    if x.dtype is not made or out.dtype is not torch.float32:
        raise RuntimeError(f"a product that makes float32 of {made} was given {x.dtype} for {out.dtype}")
    apart, below = x.stride(0) * x.element_size(), 4 * out.stride(0)
    if not isinstance(weight, Tiles):
        vectors.multiply_at(x.shape[0], x.data_ptr(), apart, weight, out.data_ptr(), below, first, 4 * first_apart)
        return out

    def multiply(some: slice) -> None:
        start, begin = some.start, first and first + 4 * some.start * first_apart
        at, into = x.data_ptr() + start * apart, out.data_ptr() + start * below
        tiles.multiply_at(some.stop - start, at, apart, weight, into, below, begin, 4 * first_apart)

    threads = worthwhile(x.shape[0] * weight.numbers.size // 2)  # which takes a quarter of the time of others
    together([partial(multiply, some) for some in portions(x.shape[0], threads, PAIR)])
    return out


def held(weight: Tensor | None, products: int = 1, threads: int = 1) -> Weight | Tiles | None:
    """``weight`` [inner, width] of so many products, or a turned view of one, or None; the caller keeps the tensor.

    A product with panels is shared by up to so many ``threads``.
    """
    if weight is None:
        return None
    if isinstance(weight, TiledWeight) and weight.in_loops:
        return _of_loops(weight.laid_out(), threads)
    if laying_out_pays(weight.shape, weight.dtype, products):
        return _of_loops(laid_out(weight, in_tiles=weight.dtype is torch.bfloat16), threads)
    return as_it_lies(*_lies(weight))


def _lies(weight: Tensor) -> tuple[int, int, bool]:
    """Where a weight [inner, width] begins, how far its rows are apart, or its columns, and whether it is turned."""
    (inner, width), (below, beside) = weight.shape, weight.stride()
    turned = beside != 1
    return weight.data_ptr(), max(beside, inner) if turned else max(below, width), turned  # one row alone may say less


def held_each(asked: Sequence[tuple[Tensor | None, int]], threads: int = 1) -> list[Weight | Tiles | None]:
    """`held` of each weight with its number of products; what goes into panels is laid out in one call."""
    found: list[Weight | Tiles | None] = []
    lying: list[Lying] = []
    places: list[int] = []
    for weight, products in asked:
        kind = None if weight is None else _panels(weight, products)
        if weight is None or kind is None:
            found.append(held(weight, products, threads))
            continue
        at, apart, turned = _lies(weight)
        lying.append(Lying(at, apart, weight.shape[0], weight.shape[1], turned, kind))
        places.append(len(found))
        found.append(None)
    for place, laid in zip(places, lay_out(lying, threads) if lying else (), strict=True):
        found[place] = laid
    return found


def _panels(weight: Tensor, products: int) -> int | None:
    """The kind of panels that a weight goes into, if any."""
    if type(weight) is TiledWeight or not laying_out_pays(weight.shape, weight.dtype, products):
        return None
    if weight.dtype is torch.bfloat16:
        return blocks.PAIRS if pairs_used() else None
    return blocks.SINGLE


def _of_loops(weight: Tiles | Panels, threads: int) -> Weight | Tiles:
    return weight if isinstance(weight, Tiles) else in_panels(weight, threads)
