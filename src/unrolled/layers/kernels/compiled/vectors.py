"""Products in float32 on a processor's vectors, with a weight that was laid out for them once.

A library's product lays out its weight in each call, which few rows do not pay for. Here sixteen columns of a weight
lie together, a panel, down all its rows, and each row of a panel is a vector:

    total[m, :] += x[m, k] panel[k, :]        k = 0 .. inner - 1, for up to six rows m and four panels at a time

(Goto & van de Geijn 2008, Anatomy of High-Performance Matrix Multiplication, section 4). The totals stay in registers.
Every sum is made in the order of k, so that what a row of a result is does not depend on the rows beside it. A weight
may be kept in bfloat16, half the memory that has to be read, and is widened as it is read; x and sums are float32.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import binding, ir
from numba import cfunc, types
from numba.extending import intrinsic

from unrolled.layers.kernels.compiled import SIDE
from unrolled.layers.kernels.compiled.amx import turn_words
from unrolled.layers.kernels.compiled.functions import FAST, loop_function

BYTES = 64  # of sixteen float32
HALF = 32  # of sixteen bfloat16
UPPER = 16  # bits below bfloat16 in the float32 that it is the upper half of
WHOLE = 4  # bytes of a float32
ROWS = 6  # of x at a time

HAS_LONG = bool(binding.get_host_cpu_features().get("avx512f"))
WIDE = (0, 4, 4, 4, 4, 4, 4) if HAS_LONG else (0, 4, 2, 2, 1, 1, 1)
"""Panels at a time for so many rows: as many totals as there are registers, 32 of sixteen numbers or 16 of eight."""

MOST_ROWS = 48 if HAS_LONG else 1024
"""Up to how many rows a product of one thread is faster than a library's, which lays out its weight in each call."""

FEW_BLOCKS = 2
"""Up to how many blocks of rows bfloat16 is widened as it is read; for more it is written down."""

WIDEST = 4
"""Panels that all rows are multiplied with before the next ones come."""


class Panels(NamedTuple):
    """A weight [inner, width] in panels of sixteen columns."""

    numbers: Any  # [width / 16, inner, 16] of float32, or of bfloat16 as uint16
    size: int  # bytes of a number
    at: int  # address of the numbers
    columns: int  # panels
    inner: int

    @property
    def width(self) -> int:
        return self.columns * SIDE


def laid_out(weight: Any, turned: bool) -> Panels:
    """``weight`` [inner, width], float32 or uint16, in panels; ``turned``: it comes as [width, inner]."""
    inner, width = weight.shape[::-1] if turned else weight.shape
    kind = torch.float32 if weight.dtype == np.float32 else torch.bfloat16
    numbers = torch.empty(width // SIDE, inner, SIDE, dtype=kind)  # torch's memory begins where a vector may
    panels = (numbers if kind is torch.float32 else numbers.view(torch.uint16)).numpy()
    (_turn if turned else _split)(weight, panels)
    return Panels(panels, panels.itemsize, panels.ctypes.data, *panels.shape[:2])


@loop_function
def _split(weight: Any, panels: Any) -> None:
    """Of all panels of a group, row by row: what is read lies together."""
    count, inner, size = len(panels), panels.shape[1], SIDE * panels.itemsize
    for group in range(0, count, WIDEST):
        given = weight.ctypes.data + group * size
        for k in range(inner):
            for panel in range(min(WIDEST, count - group)):
                from_, to = given + panel * size, panels.ctypes.data + ((group + panel) * inner + k) * size
                for half in range(0, size, HALF):
                    _copy(from_ + half, to + half)
            given += weight.strides[0]


def _copied(_: Any, builder: Any, __: Any, given: Any) -> Any:
    kind = ir.VectorType(ir.IntType(8), HALF).as_pointer()
    source, target = (builder.inttoptr(at, kind) for at in given)
    builder.store(builder.load(source, align=2), target, align=2)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


_copy: Any = intrinsic(lambda _, _source, _target: (types.void(types.intp, types.intp), _copied))
"""(from, to): 32 bytes."""


@loop_function
def _turn(weight: Any, panels: Any) -> None:
    inner, size = panels.shape[1], panels.itemsize
    whole = inner // SIDE if size == 4 else 0
    for panel in range(len(panels)):
        rows, into = weight.ctypes.data + SIDE * panel * weight.strides[0], panels[panel].ctypes.data
        for block in range(whole):
            turn_words(rows + block * BYTES, weight.strides[0], into + block * SIDE * BYTES)
        for k in range(whole * SIDE, inner):
            for j in range(SIDE):
                panels[panel, k, j] = weight[SIDE * panel + j, k]


# --- products ---------------------------------------------------------------------------------------------------------

_SIGNATURE = types.void(*[types.intp] * 11)
_PRODUCT: Any = types.ExternalFunction("unrolled_product_panels", _SIGNATURE)


@loop_function
def multiply_panels(x: Any, weight: Any, out: Any, keep: bool) -> None:
    """out = x · weight, plus what ``out`` held with ``keep``; see `products.multiply`."""
    into, below = out.ctypes.data, out.strides[0]
    _PRODUCT(
        weight.size, weight.at, weight.columns, weight.inner,
        len(x), x.ctypes.data, x.strides[0], into, below, into if keep else 0, below,
    )  # fmt: skip


@loop_function
def project_panels(x: Any, weight: Any, bias: Any, out: Any) -> None:
    """out = x · weight + bias [width]."""
    _PRODUCT(
        weight.size, weight.at, weight.columns, weight.inner,
        len(x), x.ctypes.data, x.strides[0], out.ctypes.data, out.strides[0], bias.ctypes.data, 0,
    )  # fmt: skip


def multiply_at(
    rows: int, x: int, apart: int, weight: Panels, out: int, below: int, first: int, first_below: int
) -> None:
    """out = x · weight, plus what stands at the address ``first``; as `tiles.multiply_at`, of float32 x."""
    called(*weight[1:], rows, x, apart, out, below, first, first_below)


def product(
    size: int, panels: int, count: int, inner: int,
    rows: int, x: int, apart: int, out: int, below: int, first: int, first_below: int,
) -> None:  # fmt: skip
    """What `multiply_at` says, of ``count`` panels [inner, 16] of ``size`` bytes a number.

    Rows are shared out evenly: seven are four and three. For many rows a group of bfloat16 panels is widened once.
    """
    blocks = (rows + ROWS - 1) // ROWS
    widened = size < WHOLE and blocks > FEW_BLOCKS
    room = np.empty(WIDEST * inner * SIDE if widened else 0, np.float32)
    used = WHOLE if widened else size
    panel = inner * SIDE * used
    for group in range(0, count, WIDEST):
        stop, row = min(group + WIDEST, count), 0
        start = panels + group * inner * SIDE * size
        if widened:
            for k in range((stop - group) * inner):
                _widen(start + k * HALF, room.ctypes.data + k * BYTES)
            start = room.ctypes.data
        for block in range(blocks):
            some = (rows + block) // blocks
            wide, column = WIDE[some], group
            while column < stop:
                many = wide if column + wide <= stop else 1
                at = column * BYTES
                _block(
                    used, some, many, x + row * apart, apart, start + (column - group) * panel, panel, inner,
                    out + row * below + at, below, first + row * first_below + at if first else 0, first_below,
                )  # fmt: skip
                column += many
            row += some


# --- a block: its totals in registers ---------------------------------------------------------------------------------

_FLOAT, _LONG = ir.FloatType(), ir.IntType(64)
_VECTOR, _WORDS = ir.VectorType(_FLOAT, SIDE), ir.VectorType(ir.IntType(32), SIDE)
_HALVES = ir.VectorType(ir.IntType(16), SIDE)


class _Block(NamedTuple):
    """Addresses, and bytes from row to row or panel to panel; all numbers of 64 bits."""

    x: Any
    apart: Any
    panel: Any
    panel_apart: Any
    inner: Any
    out: Any
    below: Any
    first: Any
    first_below: Any


def _load(builder: Any, at: Any, kind: Any, align: int) -> Any:
    return builder.load(builder.inttoptr(at, kind.as_pointer()), align=align)


def _weight_row(builder: Any, at: Any, half: bool) -> Any:
    """Sixteen numbers of a panel's row."""
    if not half:
        return _load(builder, at, _VECTOR, 4)
    words = builder.zext(_load(builder, at, _HALVES, 2), _WORDS)
    upper = builder.shl(words, ir.Constant(_WORDS, [UPPER] * SIDE))
    return builder.bitcast(upper, _VECTOR)


def _widened(_context: Any, builder: Any, _: Any, given: Any) -> Any:
    source, target = given
    builder.store(_weight_row(builder, source, True), builder.inttoptr(target, _VECTOR.as_pointer()), align=4)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


_widen: Any = intrinsic(lambda _, _source, _target: (types.void(types.intp, types.intp), _widened))
"""(from, to): sixteen numbers of bfloat16 as float32."""


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector of sixteen times a number."""
    nowhere = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(nowhere, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nowhere, ir.Constant(_WORDS, [0] * SIDE))


def _beginnings(builder: Any, given: _Block, places: list[tuple[int, int]]) -> list[Any]:
    """What is added to: at ``first``, or zeros where that is no address."""
    zero, before = ir.Constant(_VECTOR, [0.0] * SIDE), builder.block
    found = []
    with builder.if_then(builder.icmp_signed("!=", given.first, ir.Constant(_LONG, 0))):
        for row, panel in places:
            found.append(_load(builder, _at(builder, given.first, given.first_below, row, BYTES * panel), _VECTOR, 4))
        inside = builder.block
    totals = []
    for value in found:
        total = builder.phi(_VECTOR)
        total.add_incoming(zero, before)
        total.add_incoming(value, inside)
        totals.append(total)
    return totals


def _at(builder: Any, start: Any, apart: Any, row: int, more: int) -> Any:
    moved = builder.add(start, builder.mul(apart, ir.Constant(_LONG, row)))
    return builder.add(moved, ir.Constant(_LONG, more))


def _emit(builder: Any, given: _Block, rows: int, panels: int, half: bool) -> None:
    """The loop over k for ``rows`` rows of x and so many panels."""
    places = [(row, panel) for row in range(rows) for panel in range(panels)]
    beginnings = _beginnings(builder, given, places)
    xs = [_at(builder, given.x, given.apart, row, 0) for row in range(rows)]
    starts = [_at(builder, given.panel, given.panel_apart, panel, 0) for panel in range(panels)]
    before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, totals = builder.phi(_LONG), [builder.phi(_VECTOR) for _ in places]
    k.add_incoming(ir.Constant(_LONG, 0), before)
    here = builder.mul(k, ir.Constant(_LONG, 2 * SIDE if half else BYTES))
    there = builder.mul(k, ir.Constant(_LONG, 4))
    weights = [_weight_row(builder, builder.add(start, here), half) for start in starts]
    numbers = [_everywhere(builder, _load(builder, builder.add(x, there), _FLOAT, 4)) for x in xs]
    for total, begin, (row, panel) in zip(totals, beginnings, places, strict=True):
        product = builder.fmul(numbers[row], weights[panel], flags=("contract",))
        total.add_incoming(begin, before)
        total.add_incoming(builder.fadd(total, product, flags=("contract",)), loop)
    following = builder.add(k, ir.Constant(_LONG, 1))
    k.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, given.inner), loop, after)
    builder.position_at_end(after)
    for total, (row, panel) in zip(totals, places, strict=True):
        at = _at(builder, given.out, given.below, row, BYTES * panel)
        builder.store(total.incomings[-1][0], builder.inttoptr(at, _VECTOR.as_pointer()), align=4)


def _blocks(_context: Any, builder: Any, _: Any, given: Any) -> Any:
    """A loop for each size of the weight's numbers, number of rows and number of panels; one of them is run."""
    size, rows, panels, *block = given
    end = builder.append_basic_block("end")
    digits = (size, rows, panels)  # of the number of a case: each below ten
    key = digits[0]
    for digit in digits[1:]:
        key = builder.add(builder.mul(key, ir.Constant(_LONG, 10)), digit)
    switch = builder.switch(key, end)
    for half, some in itertools.product((False, True), range(1, ROWS + 1)):
        for many in sorted({1, WIDE[some]}):
            case = builder.append_basic_block(f"rows{some}panels{many}")
            number = 100 * (WHOLE // 2 if half else WHOLE) + 10 * some + many
            switch.add_case(ir.Constant(_LONG, number), case)
            builder.position_at_end(case)
            _emit(builder, _Block(*block), some, many, half)
            builder.branch(end)
    builder.position_at_end(end)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


def _block_of(
    _: Any, size: Any, rows: Any, panels: Any, x: Any, apart: Any, panel: Any, panel_apart: Any, inner: Any,
    out: Any, below: Any, first: Any, first_below: Any,
) -> Any:  # fmt: skip
    """out = x · panels for so many rows and panels, plus what stands at ``first``."""
    return types.void(*[types.intp] * 12), _blocks


_block: Any = intrinsic(_block_of)


# --- one function for all callers -------------------------------------------------------------------------------------


def _made() -> Any:
    """`product` as machine code: made once, not again within each loop that calls it."""
    how: dict[str, Any] = {"fastmath": FAST, "error_model": "numpy"}
    try:
        return cfunc(_SIGNATURE, cache=True, **how)(product)
    except RuntimeError:  # nowhere to keep it
        return cfunc(_SIGNATURE, **how)(product)


_code = _made()
called = _code.ctypes
binding.add_symbol("unrolled_product_panels", _code.address)
