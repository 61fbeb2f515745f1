"""A processor's tile registers (Intel AMX) for compiled functions: each instruction as one function.

Eight registers hold a tile each, up to 16 rows of 64 bytes. One instruction multiplies a tile of x [16 rows, 32 numbers
of bfloat16] with one of a weight [32, 16 columns] and adds the result to a tile of float32 [16, 16]:

    total[m, n] += Σ_k x[m, 2k] weight[2k, n] + x[m, 2k + 1] weight[2k + 1, n]        k = 0 .. 15

For it a tile of the weight holds two rows woven into one: weight[2k, n] and weight[2k + 1, n] stand side by side. Intel
64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and volume 2, TDPBF16PS.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

SIDE = 16  # rows of a tile, and numbers of float32 in one
DEEP = 2 * SIDE  # numbers of bfloat16 in a row of a tile
BYTES = 64  # of a row of a tile
TILE = SIDE * BYTES  # bytes

_ARCH_PRCTL, _ASK_FOR_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""The system call by which a process asks Linux for the room that eight tiles take when it is interrupted."""


@cache
def found() -> bool:
    """Whether this processor has tiles of bfloat16 and the system lets us use them: so far, Linux on x86-64."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    features = binding.get_host_cpu_features()
    if not (features.get("amx-tile") and features.get("amx-bf16")):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK_FOR_PERMISSION, _TILE_DATA) == 0


# --- instructions -----------------------------------------------------------------------------------------------------

_BYTE, _WORD = ir.IntType(8), ir.IntType(32)
_POINTER = _BYTE.as_pointer()


def _instruction(name: str, *tiles: int, address: bool = False, stride: bool = False) -> Any:
    """A compiled function that is one instruction on these registers; of an address, and bytes from row to row."""
    signature = types.void(*[types.intp] * (address + stride))

    def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
        operands = [ir.Constant(_BYTE, tile) for tile in tiles]
        if address:
            operands += [builder.inttoptr(given[0], _POINTER), *given[1:]]
        kinds = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
        builder.call(cgutils.get_or_insert_function(builder.module, kinds, f"llvm.x86.{name}"), operands)
        return context.get_dummy_value()

    if stride:
        return intrinsic(lambda _, _address, _stride: (signature, generate))
    return (
        intrinsic(lambda _, _address: (signature, generate)) if address else intrinsic(lambda _: (signature, generate))
    )


configure = _instruction("ldtilecfg", address=True)
release = _instruction("tilerelease")
LOAD = [_instruction("tileloadd64", tile, address=True, stride=True) for tile in range(8)]
STORE = [_instruction("tilestored64", tile, address=True, stride=True) for tile in range(4)]
CLEAR = [_instruction("tilezero", tile) for tile in range(4)]
MULTIPLY = [_instruction("tdpbf16ps", total, 4 + total // 2, 6 + total % 2) for total in range(4)]
"""Registers 0 to 3 hold the total: upper left, upper right, lower left, lower right; 4 and 5 x, 6 and 7 the weight."""


def _shapes() -> Any:
    """What `configure` is told for 1 to 32 rows of x: bytes of a row from byte 16 on, rows from byte 48 on."""
    shapes = np.zeros((DEEP + 1, BYTES), np.uint8)
    shapes[:, 0] = 1
    for rows in range(1, DEEP + 1):
        upper, lower = min(rows, SIDE), max(rows - SIDE, 1)
        shapes[rows, 16:32:2] = BYTES
        shapes[rows, 48:56] = (upper, upper, lower, lower, upper, lower, SIDE, SIDE)
    return shapes


SHAPES = _shapes()


# --- a tile turned or woven in registers ------------------------------------------------------------------------------


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """Sixteen vectors of sixteen words, rows as columns: in four rounds, blocks of 1, 2, 4 and 8 change places."""
    for step in (1, 2, 4, 8):
        for row in range(SIDE):
            if row & step:
                continue
            upper, lower = rows[row], rows[row + step]
            kept = [j if not j & step else SIDE + j - step for j in range(SIDE)]
            given = [j + step if not j & step else SIDE + j for j in range(SIDE)]
            rows[row], rows[row + step] = (
                builder.shuffle_vector(upper, lower, ir.Constant(ir.VectorType(_WORD, SIDE), mask))
                for mask in (kept, given)
            )
    return rows


def _turn(context: Any, builder: Any, _: Any, given: Any) -> Any:
    (source, stride, target, below), vector = given, ir.VectorType(_WORD, SIDE).as_pointer()
    rows = []
    for row in range(SIDE):
        at = builder.add(source, builder.mul(stride, ir.Constant(stride.type, row)))
        rows.append(builder.load(builder.inttoptr(at, vector), align=2))
    for row, value in enumerate(_turned(builder, rows)):
        at = builder.add(target, builder.mul(below, ir.Constant(below.type, row)))
        builder.store(value, builder.inttoptr(at, vector), align=4)
    return context.get_dummy_value()


turn_words: Any = intrinsic(lambda _, _source, _stride, _target, _below: (types.void(*[types.intp] * 4), _turn))
"""(from, bytes from row to row, to, bytes from row to row): 16 rows of 16 words, whose columns become the rows."""


def _weave(context: Any, builder: Any, _: Any, given: Any) -> Any:
    upper, lower, target = given
    row, kind = ir.VectorType(ir.IntType(16), SIDE).as_pointer(), ir.VectorType(_WORD, DEEP)
    rows = [builder.load(builder.inttoptr(at, row), align=2) for at in (upper, lower)]
    woven = builder.shuffle_vector(*rows, ir.Constant(kind, [j // 2 + SIDE * (j % 2) for j in range(DEEP)]))
    builder.store(woven, builder.inttoptr(target, woven.type.as_pointer()), align=4)
    return context.get_dummy_value()


weave_words: Any = intrinsic(lambda _, _upper, _lower, _target: (types.void(*[types.intp] * 3), _weave))
"""(from, from, to): 16 numbers of each of two rows become 16 words, one of each row side by side."""
