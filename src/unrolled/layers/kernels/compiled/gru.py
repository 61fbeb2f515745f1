"""The gated recurrent unit's loops, compiled, for either place of the reset gate: see kernels/gru.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, step_function
from unrolled.layers.kernels.compiled.hearing import hear, hear_back
from unrolled.layers.kernels.compiled.rows import (
    arrive,
    deliver,
    either,
    hand_on,
    last_seen,
    rejoin,
    zone_back,
    zone_in,
)
from unrolled.layers.kernels.compiled.scalars import ONE, put, sigmoid, tanh


class Weights(NamedTuple):
    """The matrices of the products of update and reset gate, of the candidate, and of all three."""

    ask: Any
    recall: Any
    all: Any


class Packed(NamedTuple):
    """The kernel's packed buffers; ``output`` is ``hidden`` in the type of products, or None for the same."""

    total: Any
    past: Any
    hidden: Any
    output: Any


class Options(NamedTuple):
    """What the cell adds to the plain equations."""

    seen: Any
    ask_norm: Any
    recall_norm: Any
    kept: Any


@loop_function
def before(
    begin: int, end: int, steps: Any, weights: Any, first: Any, operand: Any, packed: Any, options: Any, outside: Any
) -> None:
    """The reset gate before the product; ``first`` is h before all steps, ``operand`` that in the products' type."""
    n = packed.hidden.shape[1]
    for step in range(begin, end):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        total, past, new = packed.total[start:stop], packed.past[start:stop], packed.hidden[start:stop]
        old = last_seen(packed.hidden, step, steps, first)
        told = step or not steps.fresh
        if told:
            heard = last_seen(either(packed.hidden, packed.output), step, steps, operand)
            hear(heard, weights.ask, total, 0, 2 * n, options.seen, options.ask_norm, start)
        for row in range(stop - start):
            reset(total[row], old[row], past[row])
        if told:
            hear(past, weights.recall, total, 2 * n, n, options.seen, options.recall_norm, start)
        for row in range(stop - start):
            update(total[row], old[row], new[row])
        zone_in(new, old, options.kept, start)
        hand_on(packed.hidden, packed.output, start, stop)
        deliver(packed.hidden, outside, start, stop)


@row_function
def reset(total: Any, old: Any, past: Any) -> None:
    """z = σ(z), r = σ(r), and r * h in the type of products."""
    n = len(old)
    for j in range(2 * n):
        total[j] = sigmoid(total[j])
    for j in range(n):
        put(past, j, total[n + j] * old[j])


@row_function
def update(total: Any, old: Any, new: Any) -> None:
    """n = tanh(n), h' = h + z (n - h)."""
    n = len(old)
    for j in range(n):
        candidate = tanh(total[2 * n + j])
        total[2 * n + j] = candidate
        new[j] = old[j] + total[j] * (candidate - old[j])


@loop_function
def before_back(
    begin: int,
    end: int,
    steps: Any,
    weights: Any,
    first: Any,
    packed: Any,
    grad_output: Any,
    hidden: Any,
    grads: Any,
    options: Any,
    outside: Any,
) -> None:
    """Steps ``end`` - 1 down to ``begin``; ``hidden`` is the gradient of the state."""
    n = packed.hidden.shape[1]
    stays, recalled = np.empty_like(hidden), np.empty_like(hidden)
    for step in range(end - 1, begin - 1, -1):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        h, total, grad = hidden[: stop - start], packed.total[start:stop], grads[start:stop]
        old, p = last_seen(packed.hidden, step, steps, first), recalled[: stop - start]
        arrive(h, grad_output, outside, start)
        zone_back(h, options.kept, start, stays)
        for row in range(stop - start):
            update_back(h[row], total[row], old[row], grad[row])
        rejoin(h, options.kept, stays)
        if step or not steps.fresh:
            hear_back(grad, 2 * n, n, weights.recall, p, False, options.seen, options.recall_norm, start)
            for row in range(stop - start):
                reset_back(p[row], total[row], old[row], h[row], grad[row])
            hear_back(grad, 0, 2 * n, weights.ask, h, True, options.seen, options.ask_norm, start)
        else:
            grad[:, n : 2 * n] = 0


@row_function
def update_back(h: Any, total: Any, old: Any, grad: Any) -> None:
    """dz = dh (n - h) σ'(z), dn = dh z tanh'(n), dh ← dh (1 - z)."""
    n = len(h)
    for j in range(n):
        z, candidate = total[j], total[2 * n + j]
        put(grad, j, h[j] * (candidate - old[j]) * (z * (ONE - z)))
        put(grad, 2 * n + j, h[j] * z * (ONE - candidate * candidate))
    for j in range(n):
        h[j] -= h[j] * total[j]


@row_function
def reset_back(p: Any, total: Any, old: Any, h: Any, grad: Any) -> None:
    """dr = p h σ'(r), dh += p r."""
    n = len(h)
    for j in range(n):
        r = total[n + j]
        put(grad, n + j, p[j] * old[j] * (r * (ONE - r)))
        h[j] += p[j] * r


@loop_function
def after(
    begin: int, end: int, steps: Any, weights: Any, first: Any, operand: Any, packed: Any, options: Any, outside: Any
) -> None:
    """The reset gate after the product; ``packed.past`` comes with the inner bias in it."""
    n = packed.hidden.shape[1]
    for step in range(begin, end):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        total, past, new = packed.total[start:stop], packed.past[start:stop], packed.hidden[start:stop]
        old = last_seen(packed.hidden, step, steps, first)
        if step or not steps.fresh:
            heard = last_seen(either(packed.hidden, packed.output), step, steps, operand)
            hear(heard, weights.ask, total, 0, 2 * n, options.seen, options.ask_norm, start)
            hear(heard, weights.recall, past, 0, n, options.seen, options.recall_norm, start)
        for row in range(stop - start):
            recall(total[row], past[row])
            update(total[row], old[row], new[row])
        zone_in(new, old, options.kept, start)
        hand_on(packed.hidden, packed.output, start, stop)
        deliver(packed.hidden, outside, start, stop)


@row_function
def recall(total: Any, past: Any) -> None:
    """z = σ(z), r = σ(r), and what the candidate is squashed from: x + r p."""
    n = len(past)
    for j in range(2 * n):
        total[j] = sigmoid(total[j])
    for j in range(n):
        total[2 * n + j] += total[n + j] * past[j]


@loop_function
def after_back(
    begin: int,
    end: int,
    steps: Any,
    weights: Any,
    first: Any,
    packed: Any,
    grad_output: Any,
    hidden: Any,
    grads: Any,
    options: Any,
    outside: Any,
) -> None:
    """Steps ``end`` - 1 down to ``begin``; the columns of ``grads`` are dz, dr, dp, dn."""
    n = packed.hidden.shape[1]
    stays = np.empty_like(hidden)
    for step in range(end - 1, begin - 1, -1):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        h, total, grad, past = (
            hidden[: stop - start],
            packed.total[start:stop],
            grads[start:stop],
            packed.past[start:stop],
        )
        old = last_seen(packed.hidden, step, steps, first)
        arrive(h, grad_output, outside, start)
        zone_back(h, options.kept, start, stays)
        for row in range(stop - start):
            recall_back(h[row], total[row], past[row], old[row], grad[row])
        rejoin(h, options.kept, stays)
        if step or not steps.fresh:
            all_back(grad, n, weights, h, options.seen, options.ask_norm, options.recall_norm, start)


@row_function
def recall_back(h: Any, total: Any, past: Any, old: Any, grad: Any) -> None:
    """dn = dh z tanh'(n), dz = dh (n - h) σ'(z), dr = dn p σ'(r), dp = dn r, dh ← dh (1 - z)."""
    n = len(h)
    for j in range(n):
        z, r, candidate = total[j], total[n + j], total[2 * n + j]
        new = h[j] * z * (ONE - candidate * candidate)
        put(grad, j, h[j] * (candidate - old[j]) * (z * (ONE - z)))
        put(grad, n + j, new * past[j] * (r * (ONE - r)))
        put(grad, 2 * n + j, new * r)
        put(grad, 3 * n + j, new)
        h[j] -= h[j] * z


@step_function
def all_back(grad: Any, n: int, weights: Any, h: Any, seen: Any, ask_norm: Any, recall_norm: Any, start: int) -> None:
    """dh += [dz, dr, dp] U: one product, or two where each is normalised by itself."""
    if ask_norm is None:
        hear_back(grad, 0, 3 * n, weights.all, h, True, seen, None, start)
    else:
        hear_back(grad, 0, 2 * n, weights.ask, h, True, seen, ask_norm, start)
        hear_back(grad, 2 * n, n, weights.recall, h, True, seen, recall_norm, start)
