"""The scalar functions of the cells' equations, written so that a compiler can work on many numbers at once.

No branches and no calls of a library, for float32; float64 is left to the C library, exact and slow. A number that is
not one stays not one. Matrices in bfloat16 come as uint16, the upper halves of float32 (NumPy knows no bfloat16).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from unrolled.layers.kernels.compiled.functions import FAST

F = np.float32
ONE = F(1)
LOWEST, HIGHEST = F(-87.0), F(88.0)  # of exp in float32
LOG2_E, ROUND = F(1.44269504), F(12582912.0)  # 3 · 2²²: adding it rounds to a whole number, in the lowest bits
LN2_HIGH, LN2_LOW = F(0.693359375), F(-2.12194440e-4)
EXP = tuple(map(F, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)))
TANH = tuple(map(F, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)))
SMALL = F(0.625)


def exp(x: Any) -> Any:
    """e^x. In float32 e^x = 2^n e^r with |r| ≤ ½ ln 2 and a polynomial for e^r (Cephes, expf): error ≤ 1.2e-7."""
    raise TypeError(x)


@overload(exp, jit_options={"fastmath": FAST, "error_model": "numpy", "forceinline": True})
def _exp(x: Any) -> Any:
    def double(x: Any) -> Any:
        return math.exp(x)

    def single(x: Any) -> Any:
        x = LOWEST if x < LOWEST else x
        x = HIGHEST if x > HIGHEST else x
        rounded = x * LOG2_E + ROUND
        n = rounded - ROUND
        r = x - n * LN2_HIGH - n * LN2_LOW
        p = ((((EXP[0] * r + EXP[1]) * r + EXP[2]) * r + EXP[3]) * r + EXP[4]) * r + EXP[5]
        power = (F(rounded).view(np.int32) << np.int32(23)) + np.int32(0x3F800000)  # the bits of 2^n
        return (p * r * r + r + ONE) * np.int32(power).view(np.float32)

    return double if x is types.float64 else single


@njit(fastmath=FAST, error_model="numpy", forceinline=True)
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    return ONE / (ONE + exp(-x))


def tanh(x: Any) -> Any:
    """tanh x. In float32 a polynomial near 0, else 1 - 2 / (e^2x + 1) (Cephes, tanhf): error ≤ 1.4e-7."""
    raise TypeError(x)


@overload(tanh, jit_options={"fastmath": FAST, "error_model": "numpy", "forceinline": True})
def _tanh(x: Any) -> Any:
    def double(x: Any) -> Any:
        return math.tanh(x)

    def single(x: Any) -> Any:
        size, square = abs(x), x * x
        p = (((TANH[0] * square + TANH[1]) * square + TANH[2]) * square + TANH[3]) * square + TANH[4]
        near = p * square * x + x
        far = ONE - F(2) / (exp(size + size) + ONE)
        far = -far if x < F(0) else far
        return near if size < SMALL else far

    return double if x is types.float64 else single


def put(row: Any, place: int, x: Any) -> None:
    """row[place] = x, rounded to the nearest, ties to even, where the row is in bfloat16."""
    raise TypeError(row)


@overload(put, jit_options={"fastmath": FAST, "forceinline": True})
def _put(row: Any, place: Any, x: Any) -> Any:
    def whole(row: Any, place: Any, x: Any) -> Any:
        row[place] = x

    def half(row: Any, place: Any, x: Any) -> Any:
        bits = F(x).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        row[place] = np.uint16(0x7FC0) if x != x else np.uint16(rounded)

    return half if row.dtype is types.uint16 else whole


def take(row: Any, place: int) -> Any:
    """row[place] as a number to count with."""
    raise TypeError(row)


@overload(take, jit_options={"forceinline": True})
def _take(row: Any, place: Any) -> Any:
    def whole(row: Any, place: Any) -> Any:
        return row[place]

    def half(row: Any, place: Any) -> Any:
        return np.uint32(np.uint32(row[place]) << np.uint32(16)).view(np.float32)

    return half if row.dtype is types.uint16 else whole
