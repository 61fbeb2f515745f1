"""The LSTM's loop, compiled. Equations, options and buffers are those of kernels/lstm.py.

An option that a cell does not have is None here, and no code is made for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, step_function
from unrolled.layers.kernels.compiled.hearing import hear, hear_back
from unrolled.layers.kernels.compiled.norms import keep_moments, normalise, normalise_row_back
from unrolled.layers.kernels.compiled.products import multiply
from unrolled.layers.kernels.compiled.rows import (
    add,
    arrive,
    copy,
    deliver,
    last_seen,
    rejoin,
    zone,
    zone_back,
    zone_in,
)
from unrolled.layers.kernels.compiled.scalars import ONE, put, sigmoid, take, tanh


class Weights(NamedTuple):
    """The matrices of the products: turned for the way forward, [input, output], and as the cell has them for back."""

    hidden: Any
    early: Any  # full peepholes of the gates that see the old memory, and of the one that sees the new
    late: Any
    projection: Any


class Packed(NamedTuple):
    """The kernel's packed buffers."""

    total: Any
    made: Any
    squashed: Any
    memory: Any
    read: Any
    output: Any


class Gradients(NamedTuple):
    """Of the totals, of what is projected, and of the state, which changes from step to step."""

    total: Any
    projected: Any
    hidden: Any
    memory: Any


class Options(NamedTuple):
    """What the cell adds to the plain equations."""

    coupled: Any
    diagonal: Any
    seen: Any
    norm: Any
    memory_norm: Any
    kept_hidden: Any
    kept_memory: Any


@loop_function
def forward(
    begin: int, end: int, steps: Any, weights: Any, hidden: Any, memory: Any, packed: Any, options: Any, outside: Any
) -> None:
    """Steps ``begin`` to ``end`` from the state (``hidden``, ``memory``) before the first of all."""
    n, width = packed.made.shape[1], packed.total.shape[1]
    early, late = width - 2 * n, width - n
    for step in range(begin, end):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        total, made = packed.total[start:stop], packed.made[start:stop]
        h, old = last_seen(packed.output, step, steps, hidden), last_seen(packed.memory, step, steps, memory)
        if step or not steps.fresh:
            hear(h, weights.hidden, total, 0, width, options.seen, options.norm, start)
        look(old, weights.early, total[:, :early], h)
        for row in range(stop - start):
            remember(total[row], old[row], made[row], options.coupled, options.diagonal)
        look(made, weights.late, total[:, late:], h)
        show_all(total, late, made, packed.squashed, packed.read, options.diagonal, options.memory_norm, start)
        project(packed.read[start:stop], weights.projection, packed.output[start:stop], made)
        zone_in(packed.output[start:stop], h, options.kept_hidden, start)
        zone(made, old, options.kept_memory, start, packed.memory[start:stop])
        deliver(packed.output, outside, start, stop)


@row_function
def remember(total: Any, old: Any, made: Any, coupled: Any, diagonal: Any) -> None:
    """C' = f C + i g; with ``coupled`` f C + (1 - f) g."""
    n = len(made)
    for j in range(n):
        if coupled is None:
            write, keep, candidate = total[j], total[n + j], tanh(total[2 * n + j])
            if diagonal is not None:
                write += diagonal[0, j] * old[j]
                keep += diagonal[1, j] * old[j]
            write, keep = sigmoid(write), sigmoid(keep)
            total[j], total[n + j], total[2 * n + j] = write, keep, candidate
            made[j] = keep * old[j] + write * candidate
        else:
            keep, candidate = total[j], tanh(total[n + j])
            if diagonal is not None:
                keep += diagonal[0, j] * old[j]
            keep = sigmoid(keep)
            total[j], total[n + j] = keep, candidate
            made[j] = candidate + keep * (old[j] - candidate)


@step_function
def look(memory: Any, weight: Any, total: Any, like: Any) -> None:
    """total += P C, the full peephole; ``like`` has the type of products."""
    if weight is not None:
        operand = np.empty(memory.shape, like.dtype)
        for row in range(len(memory)):
            copy(memory[row], operand[row])
        multiply(operand, weight, total, True)


@row_function
def show_all(total: Any, late: int, made: Any, squashed: Any, read: Any, diagonal: Any, norm: Any, start: int) -> None:
    """h = o tanh(C'), C' normalised with ``norm``."""
    for row in range(len(made)):
        place = start + row
        if norm is None:
            show(total[row, late:], made[row], squashed[place], read[place], diagonal, None)
        else:
            mean, spread = keep_moments(made[row], norm, place)
            normalise(made[row], norm.gain, mean, spread, squashed[place])
            show(total[row, late:], made[row], squashed[place], read[place], diagonal, norm.shift)


@row_function
def show(gate: Any, made: Any, squashed: Any, read: Any, diagonal: Any, shift: Any) -> None:
    """h = o tanh(C'); with ``shift`` the normalised C' waits in ``squashed``."""
    n = len(made)
    for j in range(n):
        if diagonal is not None:
            gate[j] += diagonal[len(diagonal) - 1, j] * made[j]
        gate[j] = sigmoid(gate[j])
        if shift is None:
            squashed[j] = tanh(made[j])
        else:
            squashed[j] = tanh(squashed[j] + shift[j])
    for j in range(len(read)):
        put(read, j, gate[j] * squashed[j])


@step_function
def project(read: Any, weight: Any, output: Any, like: Any) -> None:
    """h = W_p (o tanh(C')), where the cell has a projection; ``like`` has the type of sums."""
    if weight is not None:
        product = np.empty(output.shape, like.dtype)
        multiply(read, weight, product, False)
        for row in range(len(read)):
            copy(product[row], output[row])


@loop_function
def backward(
    begin: int,
    end: int,
    steps: Any,
    weights: Any,
    memory: Any,
    packed: Any,
    grad_output: Any,
    grads: Any,
    options: Any,
    outside: Any,
) -> None:
    """Steps ``end`` - 1 down to ``begin``."""
    n, width = packed.made.shape[1], packed.total.shape[1]
    early, late = width - 2 * n, width - n
    stays_hidden, stays_memory = np.empty_like(grads.hidden), np.empty_like(grads.memory)
    room = np.empty((2, n), stays_memory.dtype)
    for step in range(end - 1, begin - 1, -1):
        start, stop = steps.starts[step], steps.starts[step] + steps.counts[step]
        total, grad, old = (
            packed.total[start:stop],
            grads.total[start:stop],
            last_seen(packed.memory, step, steps, memory),
        )
        h, c = grads.hidden[: stop - start], grads.memory[: stop - start]
        arrive(h, grad_output, outside, start)
        zone_back(h, options.kept_hidden, start, stays_hidden)
        zone_back(c, options.kept_memory, start, stays_memory)
        y = project_back(h, weights.projection, grads.projected, start, c)
        show_all_back(y, total, late, packed.squashed, c, grad, options.diagonal, options.memory_norm, start, room)
        look_back(grad[:, late:], weights.late, c)
        for row in range(stop - start):
            remember_back(total[row], old[row], c[row], grad[row], options.coupled)
            keep_back(c[row], total[row, early - n : early], grad[row, :early], options.diagonal)
        look_back(grad[:, :early], weights.early, c)
        if step or not steps.fresh:
            hear_back(grad, 0, width, weights.hidden, h, False, options.seen, options.norm, start)
        rejoin(h, options.kept_hidden, stays_hidden)
        rejoin(c, options.kept_memory, stays_memory)


@step_function
def project_back(h: Any, weight: Any, projected: Any, start: int, like: Any) -> Any:
    """The gradient of o tanh(C') from that of h, which is kept in the type of products for the weight's."""
    if weight is None:
        return h
    own = projected[start : start + len(h)]
    for row in range(len(h)):
        copy(h[row], own[row])
    y = np.empty(like.shape, like.dtype)
    multiply(own, weight, y, False)
    return y


@row_function
def show_all_back(
    y: Any, total: Any, late: int, squashes: Any, c: Any, grad: Any, diagonal: Any, norm: Any, start: int, room: Any
) -> None:
    """do and dC += dy o tanh'(C'), through the normalisation where there is one; a peephole adds p do."""
    into, wanted = room[0], room[1]
    for row in range(len(y)):
        place = start + row
        if norm is None:
            show_back(y[row], total[row, late:], squashes[place], grad[row, late:], into)
        else:
            show_back(y[row], total[row, late:], squashes[place], grad[row, late:], wanted)
            normalise_row_back(wanted, norm, place, into)
        add(c[row], into)
        if diagonal is not None:
            see_back(c[row], grad[row, late:], diagonal[len(diagonal) - 1])


@row_function
def show_back(y: Any, gate: Any, squashed: Any, grad: Any, into: Any) -> None:
    """do = dy tanh(C') σ'(o), and what dy is to what was squashed: dy o tanh'."""
    for j in range(len(y)):
        shown, level = gate[j], squashed[j]
        put(grad, j, y[j] * level * (shown * (ONE - shown)))
        into[j] = y[j] * shown * (ONE - level * level)


@row_function
def remember_back(total: Any, old: Any, c: Any, grad: Any, coupled: Any) -> None:
    """di = dC g σ'(i), df = dC C σ'(f), dg = dC i tanh'(g); with ``coupled`` df = dC (C - g) σ'(f)."""
    n = len(c)
    for j in range(n):
        if coupled is None:
            write, keep, candidate = total[j], total[n + j], total[2 * n + j]
            put(grad, j, c[j] * candidate * (write * (ONE - write)))
            put(grad, n + j, c[j] * old[j] * (keep * (ONE - keep)))
            put(grad, 2 * n + j, c[j] * write * (ONE - candidate * candidate))
        else:
            keep, candidate = total[j], total[n + j]
            put(grad, j, c[j] * (old[j] - candidate) * (keep * (ONE - keep)))
            put(grad, n + j, c[j] * (ONE - keep) * (ONE - candidate * candidate))


@row_function
def keep_back(c: Any, keep: Any, grad: Any, diagonal: Any) -> None:
    """dC ← dC f, and p dx for each gate that sees the old C."""
    for j in range(len(c)):
        c[j] *= keep[j]
    if diagonal is not None:
        for gate in range(len(diagonal) - 1):
            see_back(c, grad[gate * len(c) : (gate + 1) * len(c)], diagonal[gate])


@row_function
def see_back(c: Any, grad: Any, weight: Any) -> None:
    """dC += p dx."""
    for j in range(len(c)):
        c[j] += weight[j] * take(grad, j)


@step_function
def look_back(grad: Any, weight: Any, c: Any) -> None:
    """dC += dx P, through a full peephole."""
    if weight is not None:
        multiply(grad, weight, c, True)
