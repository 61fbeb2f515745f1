"""A block of a product on a processor's vectors: a few rows of x with a few panels, whose totals stay in registers.

    total[m, :] += x[m, k] panel[k, :]        k = 0 .. steps - 1

Sums are made in the order of k, and what is there already is added last. A panel's row is a vector of sixteen numbers:
float32; bfloat16, half the memory that has to be read, which is widened as it is read; or, where the processor has
AVX-512's instruction for them (VDPBF16PS), pairs of bfloat16, two rows of the weight woven into one, and x is bfloat16:

    total[m, n] += x[m, 2k] weight[2k, n] + x[m, 2k + 1] weight[2k + 1, n]        k = 0 .. inner / 2 - 1

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from unrolled.layers.kernels.compiled import SIDE

BYTES = 64  # of sixteen float32, or pairs of bfloat16
HALF = 32  # of sixteen bfloat16
UPPER = 16  # bits below bfloat16 in the float32 that it is the upper half of
WORD = 4  # bytes of a float32, or of a pair
ROWS = 6  # of x at a time

SINGLE, WIDENED, PAIRS = 1, 2, 3
"""What a panel holds: float32; bfloat16, widened as it is read, of float32 x; pairs of bfloat16, of bfloat16 x."""

FETCHING = 4
"""Of a block: pairs, while another panel is fetched into the second cache."""

_FEATURES = binding.get_host_cpu_features()
HAS_LONG = bool(_FEATURES.get("avx512f"))
HAS_PAIRS = bool(_FEATURES.get("avx512bf16"))
LIBRARY_LAGS = HAS_LONG and binding.get_host_cpu_name().startswith("znver")
"""Whether MKL, which torch multiplies float32 with, takes vectors of half the length: on another maker's processor."""

WIDE = (0, 4, 4, 4, 4, 4, 4) if HAS_LONG else (0, 4, 2, 2, 1, 1, 1)
"""Panels at a time for so many rows: as many totals as there are registers, 32 of sixteen numbers or 16 of eight."""


class _Brain(ir.Type):
    """bfloat16 as LLVM knows it."""

    def __str__(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Brain)

    def __hash__(self) -> int:
        return hash(_Brain)


_FLOAT, _LONG = ir.FloatType(), ir.IntType(64)
_VECTOR, _WORDS = ir.VectorType(_FLOAT, SIDE), ir.VectorType(ir.IntType(32), SIDE)
_HALVES, _TWOS = ir.VectorType(ir.IntType(16), SIDE), ir.VectorType(_Brain(), 2 * SIDE)


class _Block(NamedTuple):
    """Addresses, and bytes from row to row or panel to panel; all numbers of 64 bits."""

    x: Any
    apart: Any
    along: Any
    panel: Any
    panel_apart: Any
    steps: Any
    out: Any
    below: Any
    first: Any
    first_below: Any
    ahead: Any


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


widen: Any = intrinsic(lambda _, _source, _target: (types.void(types.intp, types.intp), _widened))
"""(from, to): sixteen numbers of bfloat16 as float32."""


def _everywhere(builder: Any, number: Any) -> Any:
    """A vector of sixteen times a number."""
    nowhere = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(nowhere, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nowhere, ir.Constant(_WORDS, [0] * SIDE))


def _at(builder: Any, start: Any, apart: Any, row: int, more: int) -> Any:
    moved = builder.add(start, builder.mul(apart, ir.Constant(_LONG, row)))
    return builder.add(moved, ir.Constant(_LONG, more))


def _summed(builder: Any, total: Any, number: Any, weight: Any, kind: int) -> Any:
    """total + number · weight."""
    if kind not in (PAIRS, FETCHING):
        product = builder.fmul(number, weight, flags=("contract",))
        return builder.fadd(total, product, flags=("contract",))
    name, signature = "llvm.x86.avx512bf16.dpbf16ps.512", ir.FunctionType(_VECTOR, [_VECTOR, _TWOS, _TWOS])
    instruction = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(instruction, [total, builder.bitcast(number, _TWOS), builder.bitcast(weight, _TWOS)])


def _emit(builder: Any, given: _Block, rows: int, panels: int, kind: int) -> None:
    """The loop over k for ``rows`` rows of x and so many panels of a kind."""
    half = kind == WIDENED
    places = [(row, panel) for row in range(rows) for panel in range(panels)]
    zero = ir.Constant(_VECTOR, [0.0] * SIDE)
    xs = [_at(builder, given.x, given.apart, row, 0) for row in range(rows)]
    starts = [_at(builder, given.panel, given.panel_apart, panel, 0) for panel in range(panels)]
    before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, totals = builder.phi(_LONG), [builder.phi(_VECTOR) for _ in places]
    k.add_incoming(ir.Constant(_LONG, 0), before)
    here = builder.mul(k, ir.Constant(_LONG, HALF if half else BYTES))
    there = builder.mul(k, given.along)
    weights = [_weight_row(builder, builder.add(start, here), half) for start in starts]
    numbers = [_everywhere(builder, _load(builder, builder.add(x, there), _FLOAT, 4)) for x in xs]
    for total, (row, panel) in zip(totals, places, strict=True):
        total.add_incoming(zero, before)
        total.add_incoming(_summed(builder, total, numbers[row], weights[panel], kind), loop)
    if kind == FETCHING:
        _fetch(builder, builder.add(given.ahead, here))
    following = builder.add(k, ir.Constant(_LONG, 1))
    k.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, given.steps), loop, after)
    builder.position_at_end(after)
    sums = [(total.incomings[-1][0], *place) for total, place in zip(totals, places, strict=True)]
    with builder.if_else(builder.icmp_signed("!=", given.first, ir.Constant(_LONG, 0))) as (more, alone):
        with more:
            for value, row, panel in sums:
                kept = _load(builder, _at(builder, given.first, given.first_below, row, BYTES * panel), _VECTOR, 4)
                _store(builder, builder.fadd(kept, value), given, row, panel)
        with alone:
            for value, row, panel in sums:
                _store(builder, value, given, row, panel)


def _fetch(builder: Any, at: Any) -> None:
    """Ask for what lies at an address to be brought into the second cache; what is no address does no harm."""
    small, anything = ir.IntType(32), ir.IntType(8).as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [anything, small, small, small])
    instruction = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
    read, second, data = (ir.Constant(small, word) for word in (0, 2, 1))
    builder.call(instruction, [builder.inttoptr(at, anything), read, second, data])


def _store(builder: Any, value: Any, given: _Block, row: int, panel: int) -> None:
    at = _at(builder, given.out, given.below, row, BYTES * panel)
    builder.store(value, builder.inttoptr(at, _VECTOR.as_pointer()), align=4)


def _blocks(_context: Any, builder: Any, _: Any, given: Any) -> Any:
    """A loop for each kind of panels, number of rows and number of panels; one of them is run."""
    kind, rows, panels, *addresses = given
    end = builder.append_basic_block("end")
    digits = (kind, rows, panels)  # of the number of a case: each below ten
    key = digits[0]
    for digit in digits[1:]:
        key = builder.add(builder.mul(key, ir.Constant(_LONG, 10)), digit)
    switch = builder.switch(key, end)
    kinds = (SINGLE, WIDENED, *((PAIRS, FETCHING) if HAS_PAIRS else ()))
    for one, some in itertools.product(kinds, range(1, ROWS + 1)):
        for many in sorted({1, WIDE[some]}):
            case = builder.append_basic_block(f"rows{some}panels{many}")
            switch.add_case(ir.Constant(_LONG, 100 * one + 10 * some + many), case)
            builder.position_at_end(case)
            _emit(builder, _Block(*addresses), some, many, one)
            builder.branch(end)
    builder.position_at_end(end)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


def _block_of(
    _: Any, kind: Any, rows: Any, panels: Any, x: Any, apart: Any, along: Any, panel: Any, panel_apart: Any,
    steps: Any, out: Any, below: Any, first: Any, first_below: Any, ahead: Any,
) -> Any:  # fmt: skip
    """out = x · panels for so many rows and panels, plus what stands at ``first``; ``ahead`` is a panel to fetch.

    Rows of x are ``apart`` bytes apart, and its words for one step over k and the next ``along``.
    """
    return types.void(*[types.intp] * 14), _blocks


block: Any = intrinsic(_block_of)


def _copied(_: Any, builder: Any, __: Any, given: Any) -> Any:
    kind = ir.VectorType(ir.IntType(8), HALF).as_pointer()
    source, target = (builder.inttoptr(at, kind) for at in given)
    builder.store(builder.load(source, align=2), target, align=2)
    return ir.Constant(ir.IntType(8).as_pointer(), None)


copy: Any = intrinsic(lambda _, _source, _target: (types.void(types.intp, types.intp), _copied))
"""(from, to): 32 bytes."""
