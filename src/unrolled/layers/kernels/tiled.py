"""Weights that are laid out once, for a model that steps: a search multiplies few rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.layers.kernels import compiled

Precision = Literal["float32", "bfloat16"]

MOST_ROWS = 1024
"""Up to how many rows a product goes through the tiles; of more, torch's is as fast."""

ANY = 1 << 40
"""As many rows as there may be."""

NOTHING = torch._C.DisableTorchFunctionSubclass


def lay_out(module: nn.Module, precision: Precision = "bfloat16") -> None:
    """Put a `TiledWeight` in the place of every matrix of ``module`` that can be one; nothing can be trained any more.

    A weight that stands in two places stays one. Its numbers are not copied.
    """
    made: dict[int, TiledWeight] = {}
    for part in module.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None and possible(parameter, precision):
                if id(parameter) not in made:
                    made[id(parameter)] = TiledWeight.of(parameter, precision)
                part._parameters[name] = cast(nn.Parameter, made[id(parameter)])


def possible(weight: Tensor, precision: Precision = "bfloat16") -> bool:
    """Whether a weight [width, inner] can be laid out: a float32 matrix on a processor; in tiles, of whole ones."""
    plain = weight.dim() == 2 and weight.numel() > 0 and weight.device.type == "cpu" and weight.dtype is torch.float32
    if precision == "bfloat16" and compiled.tiles_found():
        return plain and weight.shape[1] % compiled.PAIR == 0
    return plain and compiled.panels_found()


class Way(NamedTuple):
    """How a weight is laid out and multiplied with."""

    given: torch.dtype  # of x
    kept: torch.dtype  # of the weight, laid out
    columns: int  # of which its width is a multiple, filled up
    most_rows: int  # of more, torch's product is faster

    @staticmethod
    def of(precision: Precision) -> Way:
        """In tiles of bfloat16 where there are such registers, else in panels."""
        from unrolled.layers.kernels.compiled import vectors

        kept = torch.bfloat16 if precision == "bfloat16" else torch.float32
        if precision == "bfloat16" and compiled.tiles_found():
            most = ANY if compiled.library_lags(torch.bfloat16) else MOST_ROWS
            return Way(torch.bfloat16, kept, compiled.PAIR, most)
        most = ANY if compiled.library_lags(torch.float32) else vectors.MOST_ROWS
        return Way(torch.float32, kept, compiled.SIDE, most)


class TiledWeight(Tensor):
    """A float32 weight [width, inner] whose products with few rows, x · weightᵀ, are made as it was laid out for them.

    That is, what `linear`, `mm` and `addmm` make of it without keyword arguments, in float32. In ``bfloat16`` the
    weight is rounded, and x too where the processor has tile registers, for they multiply such; elsewhere, and in
    ``float32``, the weight is in panels, and x is multiplied as it is. It is laid out when first used, all rows or
    those that were taken, and again once an operation of torch's has changed its numbers. Whatever else is done to the
    weight is done to a plain tensor. A copy is the weight itself.
    """

    whole: Tensor  # the weight that this is, or is a part of
    start: int  # its first row here
    width: int  # of a product
    depth: int  # inner
    turned: bool  # whether this is weightᵀ
    kind: torch.dtype  # its own; asking torch takes as long as a sum
    way: Way
    views: dict[tuple[int, int, bool, torch.dtype], TiledWeight]  # of some rows, turned or rounded, once taken
    tiles: Any = None
    version: int = -1  # of the whole that was laid out
    filled_bias: tuple[Tensor, int, Tensor] | None = None  # a bias, its count of changes, and what it is filled up to

    @staticmethod
    def of(weight: Tensor, precision: Precision = "bfloat16") -> TiledWeight:
        way = Way.of(precision)
        made = _view(weight.detach(), 0, len(weight), {}, turned=False, kind=weight.dtype, way=way)
        made.views[0, len(weight), False, weight.dtype] = made
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not kwargs:
            bias = args[2] if func is functional.linear and len(args) > 2 else None
            if func is functional.linear and _ours(args[1], args[0], bias, turned=False):
                return args[1].product(args[0], bias)
            if func in (torch.mm, torch.addmm) and _ours(args[-1], args[-2], None, turned=True):
                weight = args[-1].view_of(turned=False)
                return weight.product(args[-2]) if func is torch.mm else weight.added(args[0], args[-2])
            if func in SEEN:
                found = SEEN[func](*args)
                if found is not None:
                    return found
        with NOTHING():
            return func(*args, **(kwargs or {}))

    def __deepcopy__(self, memo: dict[int, Any]) -> TiledWeight:
        return self

    def view_of(
        self, start: int = 0, stop: int | None = None, *, turned: bool, kind: torch.dtype | None = None
    ) -> TiledWeight:
        """Rows of the weight, or all that this has, perhaps as weightᵀ or rounded; what was taken before is kept."""
        first, last = self.start + start, self.start + (self.width if stop is None else stop)
        key = (first, last, turned, kind or self.kind)
        if key not in self.views:
            self.views[key] = _view(self.whole, first, last, self.views, turned=turned, kind=key[-1], way=self.way)
        return self.views[key]

    @property
    def in_loops(self) -> bool:
        """Whether compiled loops may multiply with it as it is laid out: weightᵀ, in the type of their products."""
        return self.turned and self.kind is self.way.given and self.width % self.way.columns == 0

    def product(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """x [..., inner] · weightᵀ + bias → [..., width], float32."""
        whole = None if bias is None else self.filled(bias, self.laid_out().width)
        first = 0 if whole is None else whole.data_ptr()
        if x.dim() == 2:
            return self._multiplied(x, first).contiguous()
        *outer, size = x.shape
        return self._multiplied(x.reshape(x.numel() // size, size), first).reshape(*outer, self.width)

    def rows(self, x: Tensor, bias: Tensor) -> Tensor:
        """`product` of x [rows, inner], rows perhaps further apart than they are wide: wide ones cost less so."""
        if not _ours(self, x, bias, turned=False) or x.dim() != 2:
            return functional.linear(x, self, bias)
        whole = self.filled(bias, self.laid_out().width)
        return self._multiplied(x, whole.data_ptr())

    def added(self, total: Tensor, x: Tensor) -> Tensor:
        """total [rows, width] + x [rows, inner] · weightᵀ → a tensor of its own, float32."""
        tiles = self.laid_out()
        wide = total.dim() == 2 and total.shape == (len(x), tiles.width) and total.stride(1) == 1
        if not wide or type(total) is not Tensor or total.dtype is not torch.float32:
            return self.product(x).add_(total)
        return self._multiplied(x, total.data_ptr(), total.stride(0))

    def _multiplied(self, x: Tensor, first: int, apart: int = 0) -> Tensor:
        """x [rows, inner] · weightᵀ and what stands at the address ``first``, there rows ``apart`` numbers apart.

        Of a width that is filled up the rows lie further apart than they are wide.
        """
        from unrolled.layers.kernels.compiled.arrays import multiply_at

        tiles = self.laid_out()
        given = x.to(self.way.given)
        given = given if given.stride(1) == 1 else given.contiguous()
        out = multiply_at(given, tiles, given.new_empty(len(x), tiles.width, dtype=torch.float32), first, apart)
        return out if tiles.width == self.width else out[:, : self.width]

    def laid_out(self) -> Any:
        """The weight's tiles or panels, or those of weightᵀ's weight, of a width that is filled up with zeros."""
        whole = self.whole
        version = _changes(whole)
        if self.tiles is not None and self.version == version:
            return self.tiles
        if self.turned or self.kind is not torch.float32:
            tiles = self.view_of(turned=False, kind=torch.float32).laid_out()
        else:
            from unrolled.layers.kernels.compiled.arrays import laid_out

            plain = whole[self.start : self.start + self.width].to(self.way.kept)
            filled = functional.pad(plain, (0, 0, 0, -len(plain) % self.way.columns))
            tiles = laid_out(filled.contiguous().t(), in_tiles=self.way.given is torch.bfloat16)
        self.tiles, self.version = tiles, version
        return tiles

    def filled(self, bias: Tensor, width: int) -> Tensor:
        """The bias in float32, filled up with zeros; the last one is kept, whole, for other threads may replace it."""
        kept, changes = self.filled_bias, _changes(bias)
        if kept is None or kept[0] is not bias or kept[1] != changes:
            kept = bias, changes, functional.pad(bias.detach().float(), (0, width - len(bias))).contiguous()
            self.filled_bias = kept
        return kept[2]


def as_it_is(weight: Tensor) -> Tensor:
    """A module's weight for who does not multiply with it, a plain tensor: its way through torch is shorter."""
    return weight.whole if type(weight) is TiledWeight else weight


def _changes(tensor: Tensor) -> int:
    """How often torch has changed its numbers; of one that was made for inference it does not count."""
    return 0 if tensor.is_inference() else tensor._version


def _ours(weight: Any, x: Any, bias: Tensor | None, *, turned: bool) -> bool:
    """Whether weight, x and bias are of a product that goes through tiles; of all others torch says what is wrong."""
    if not isinstance(weight, TiledWeight) or weight.turned is not turned or type(x) is not Tensor or x.requires_grad:
        return False
    if x.dim() == 0 or (turned and x.dim() != 2) or x.dtype not in (torch.float32, torch.bfloat16):
        return False
    few = x.shape[-1] == weight.depth and x.numel() <= weight.way.most_rows * weight.depth
    return few and (bias is None or tuple(bias.shape) == (weight.width,))


def _view(
    whole: Tensor,
    start: int,
    stop: int,
    views: dict[tuple[int, int, bool, torch.dtype], TiledWeight],
    *,
    turned: bool,
    kind: torch.dtype,
    way: Way,
) -> TiledWeight:
    plain = whole[start:stop].to(kind)
    view = Tensor._make_subclass(TiledWeight, plain.t() if turned else plain, False)
    view.whole, view.start, view.views, view.turned = whole, start, views, turned
    view.kind, view.way = kind, way
    view.width, view.depth = plain.shape
    return view


def _rows(weight: TiledWeight, place: Any) -> TiledWeight | None:
    if not isinstance(place, slice) or weight.turned:
        return None
    start, stop, step = place.indices(weight.width)
    return weight.view_of(start, max(start, stop), turned=False) if step == 1 else None


def _to(weight: TiledWeight, *asked: Any) -> TiledWeight | None:
    """In its own type, or rounded."""
    known = len(asked) == 1 and asked[0] in (weight.kind, torch.bfloat16)
    return weight.view_of(turned=weight.turned, kind=asked[0]) if known else None


SEEN: dict[Any, Callable[..., Any]] = {
    Tensor.t: lambda weight: weight.view_of(turned=not weight.turned),
    Tensor.chunk: lambda weight, count, *_: (weight,) if count == 1 else None,
    Tensor.__getitem__: _rows,
    Tensor.to: _to,
}
"""What is done to a weight and leaves it one, or None where it does not; what is done in every step."""

compiled.KINDS.add(TiledWeight)
