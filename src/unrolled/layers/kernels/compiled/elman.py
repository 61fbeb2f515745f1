"""The simple recurrent network's loop, compiled: see kernels/elman.py."""

from __future__ import annotations

from typing import Any

from unrolled.layers.kernels.compiled.functions import loop_function, row_function
from unrolled.layers.kernels.compiled.hearing import hear, hear_back
from unrolled.layers.kernels.compiled.rows import arrive, deliver, either, hand_on, last_seen
from unrolled.layers.kernels.compiled.scalars import ONE, F, put, tanh


@loop_function
def forward(
    begin: int, end: int, steps: Any, weight: Any, first: Any, total: Any, output: Any, rectified: Any, outside: Any
) -> None:
    """Steps ``begin`` to ``end``: ``total`` becomes h; ``output`` is h in the products' type, or None for the same."""
    n = total.shape[1]
    for step in range(begin, end):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        if step or not steps.fresh:
            seen = last_seen(either(total, output), step, steps, first)
            hear(seen, weight, total[start:stop], 0, n, None, None, start)
        for row in range(start, stop):
            squash(total[row], rectified)
        hand_on(total, output, start, stop)
        deliver(total, outside, start, stop)


@row_function
def squash(total: Any, rectified: Any) -> None:
    """h = tanh(a), or with ``rectified`` max(a, 0)."""
    for j in range(len(total)):
        if rectified is None:
            total[j] = tanh(total[j])
        else:
            total[j] = F(0) if total[j] < F(0) else total[j]


@loop_function
def backward(
    begin: int,
    end: int,
    steps: Any,
    weight: Any,
    total: Any,
    grad_output: Any,
    hidden: Any,
    grad: Any,
    rectified: Any,
    outside: Any,
) -> None:
    """Steps ``end`` - 1 down to ``begin``; ``hidden`` is the gradient of the state."""
    for step in range(end - 1, begin - 1, -1):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        h = hidden[: stop - start]
        arrive(h, grad_output, outside, start)
        for row in range(stop - start):
            squash_back(h[row], total[start + row], grad[start + row], rectified)
        if step or not steps.fresh:
            hear_back(grad[start:stop], 0, grad.shape[1], weight, h, False, None, None, start)


@row_function
def squash_back(h: Any, y: Any, grad: Any, rectified: Any) -> None:
    """da = dh g'(a), from y = g(a)."""
    for j in range(len(h)):
        if rectified is None:
            put(grad, j, h[j] * (ONE - y[j] * y[j]))
        else:
            put(grad, j, h[j] if y[j] > F(0) else F(0) * h[j])
