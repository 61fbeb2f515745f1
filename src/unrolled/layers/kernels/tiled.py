"""Weights that multiply through tiles laid out once, for a model that steps: a search multiplies few rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.layers.kernels import compiled

MOST_ROWS = 1024
"""Up to how many rows a product goes through the tiles; of more, torch's is as fast."""

NOTHING = torch._C.DisableTorchFunctionSubclass


def lay_out(module: nn.Module) -> None:
    """Put a `TiledWeight` in the place of every matrix of ``module`` that can be one; nothing can be trained any more.

    A weight that stands in two places stays one. Its numbers are not copied.
    """
    made: dict[int, TiledWeight] = {}
    for part in module.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None and possible(parameter):
                if id(parameter) not in made:
                    made[id(parameter)] = TiledWeight.of(parameter)
                part._parameters[name] = cast(nn.Parameter, made[id(parameter)])


def possible(weight: Tensor) -> bool:
    """Whether a weight [width, inner] can be laid out: a float32 matrix of whole tiles in depth, on a processor."""
    fits = weight.dim() == 2 and weight.shape[1] % compiled.PAIR == 0 and weight.numel() > 0
    return fits and weight.device.type == "cpu" and weight.dtype is torch.float32 and compiled.tiles_found()


class TiledWeight(Tensor):
    """A float32 weight [width, inner] whose products with few rows, x · weightᵀ, are made of bfloat16 numbers in tiles.

    That is, what `linear`, `mm` and `addmm` make of it: x is rounded, the result is float32. Tiles are made when first
    used, of all rows or of those that were taken. Whatever else is done to the weight is done to a plain tensor.
    """

    start: int  # the first of the weight's rows
    width: int  # of a product
    turned: bool  # whether this is weightᵀ
    kind: torch.dtype  # its own; asking torch takes as long as a sum
    views: dict[tuple[int, int, bool, torch.dtype], TiledWeight]  # of some rows, turned or rounded, once taken
    tiles: Any = None
    filled_bias: tuple[Tensor, Tensor] | None = None

    @staticmethod
    def of(weight: Tensor) -> TiledWeight:
        return _view(weight.detach(), 0, {}, turned=False)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not kwargs:
            if func is functional.linear and _ours(args[1], args[0], turned=False):
                return args[1].product(args[0], args[2] if len(args) > 2 else None)
            if func in (torch.mm, torch.addmm) and _ours(args[-1], args[-2], turned=True):
                product = args[-1].view_of(turned=False).product(args[-2], None)
                return product if func is torch.mm else product.add_(args[0])
            if func in SEEN:
                found = SEEN[func](*args)
                if found is not None:
                    return found
        with NOTHING():
            return func(*args, **(kwargs or {}))

    def view_of(
        self, start: int = 0, stop: int | None = None, *, turned: bool, dtype: torch.dtype | None = None
    ) -> TiledWeight:
        """Rows of the weight, or all that this has, perhaps as weightᵀ or rounded; what was taken before is kept."""
        key = (self.start + start, self.start + (self.width if stop is None else stop), turned, dtype or self.kind)
        if key not in self.views:
            with NOTHING():
                plain = self.as_subclass(Tensor).to(key[-1])
                plain = (plain.t() if self.turned else plain)[start:stop]
                self.views[key] = _view(plain.t() if turned else plain, key[0], self.views, turned=turned)
        return self.views[key]

    def product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """x [..., inner] · weightᵀ + bias → [..., width], float32."""
        from unrolled.layers.kernels.compiled.tiles import multiply_at

        tiles = self.tiles or self.laid_out()
        *outer, size = x.shape
        rows, width, filled = x.numel() // size, self.width, tiles.width
        given = x.to(torch.bfloat16).contiguous()
        out = given.new_empty(rows, filled, dtype=torch.float32)
        first = 0 if bias is None else self._whole(bias, filled).data_ptr()
        multiply_at(rows, given.data_ptr(), 2 * size, tiles, out.data_ptr(), 4 * filled, first, 0)
        if filled > width:
            out = out[:, :width]
        return out if len(outer) == 1 else out.reshape(*outer, width)

    def laid_out(self) -> Any:
        """The weight's tiles, or those of weightᵀ's weight, of a width that is filled up with zeros."""
        if self.tiles is None and (self.turned or self.kind is not torch.float32):
            self.tiles = self.view_of(turned=False, dtype=torch.float32).laid_out()
        elif self.tiles is None:
            from unrolled.layers.kernels.compiled.arrays import array
            from unrolled.layers.kernels.compiled.tiles import laid_out

            with NOTHING():
                plain = self.as_subclass(Tensor).to(torch.bfloat16)
                filled = functional.pad(plain, (0, 0, 0, -len(plain) % compiled.PAIR))
                self.tiles = laid_out(array(filled.contiguous()), True)
        return self.tiles

    def _whole(self, bias: Tensor, width: int) -> Tensor:
        """The bias in float32, filled up with zeros."""
        if self.filled_bias is None or self.filled_bias[0] is not bias:
            filled = functional.pad(bias.detach().float(), (0, width - len(bias))).contiguous()
            self.filled_bias = bias, filled
        return self.filled_bias[1]


def _ours(weight: Any, x: Any, *, turned: bool) -> bool:
    """Whether weight and x are of a product that goes through tiles."""
    few = type(x) is Tensor and not x.requires_grad and x.numel() <= MOST_ROWS * x.shape[-1]
    return few and isinstance(weight, TiledWeight) and weight.turned is turned


def _view(
    weight: Tensor, start: int, views: dict[tuple[int, int, bool, torch.dtype], TiledWeight], *, turned: bool
) -> TiledWeight:
    view = Tensor._make_subclass(TiledWeight, weight, False)
    view.start, view.views, view.turned = start, views, turned
    view.width, view.kind = weight.shape[1 if turned else 0], weight.dtype
    return view


def _rows(weight: TiledWeight, place: Any) -> TiledWeight | None:
    if not isinstance(place, slice) or weight.turned:
        return None
    start, stop, step = place.indices(weight.width)
    return weight.view_of(start, stop, turned=False) if step == 1 else None


def _to(weight: TiledWeight, dtype: Any) -> TiledWeight | None:
    known = dtype in (torch.bfloat16, torch.float32)
    return weight.view_of(turned=weight.turned, dtype=dtype) if known else None


SEEN: dict[Any, Callable[..., Any]] = {
    Tensor.t: lambda weight: weight.view_of(turned=not weight.turned),
    Tensor.chunk: lambda weight, count, *_: (weight,) if count == 1 else None,
    Tensor.__getitem__: _rows,
    Tensor.to: _to,
}
"""What is done to a weight and leaves it one, or None where it does not; what is done in every step."""

compiled.KINDS.add(TiledWeight)
