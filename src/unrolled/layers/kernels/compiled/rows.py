"""What a compiled loop does with the rows of a step of any cell: additions, zoneout, what comes in and goes out."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types
from numba.extending import overload

from unrolled.layers.kernels.compiled.functions import row_function, step_function, summing
from unrolled.layers.kernels.compiled.scalars import put, take


class Steps(NamedTuple):
    """Rows of each step, where each begins in a packed array, and whether the first state is zero."""

    counts: Any
    starts: Any
    fresh: bool


class Outside(NamedTuple):
    """Where others have the rows of the loop: rows ``places`` of a packed array, columns from ``at`` on.

    ``output`` is that array for the loop's outputs.
    """

    places: Any
    at: int
    output: Any


@row_function
def add(total: Any, x: Any) -> None:
    """total += x."""
    for j in range(len(total)):
        total[j] += x[j]


@row_function
def add_times(total: Any, x: Any, factor: Any) -> None:
    """total += factor · x."""
    for j in range(len(total)):
        total[j] += factor * x[j]


@summing
def dot(x: Any, y: Any) -> Any:
    """x · y."""
    total = x[0] - x[0]
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@row_function
def times(x: Any, factor: Any, out: Any) -> None:
    """out = x · factor, in the type of products."""
    for j in range(len(out)):
        put(out, j, take(x, j) * factor[j])


@row_function
def scale(x: Any, factor: Any) -> None:
    """x *= factor."""
    for j in range(len(x)):
        x[j] *= factor[j]


@row_function
def copy(x: Any, out: Any) -> None:
    """out = x, in the type of ``out``."""
    for j in range(len(out)):
        put(out, j, take(x, j))


@row_function
def mix(new: Any, old: Any, kept: Any, out: Any) -> None:
    """Zoneout: out = kept · old + (1 - kept) · new."""
    for j in range(len(out)):
        x = take(new, j)
        put(out, j, x + kept[j] * (take(old, j) - x))


@row_function
def mix_in(new: Any, old: Any, kept: Any) -> None:
    """`mix`, into ``new``: an array that is given for two is worked on number by number."""
    for j in range(len(new)):
        x = take(new, j)
        put(new, j, x + kept[j] * (take(old, j) - x))


@row_function
def part(grad: Any, kept: Any, stays: Any) -> None:
    """Zoneout's derivative: what of ``grad`` goes straight to the old state; ``grad`` keeps what goes to the new."""
    for j in range(len(grad)):
        stays[j] = grad[j] * kept[j]
        grad[j] -= stays[j]


@row_function
def zone(new: Any, old: Any, kept: Any, start: int, out: Any) -> None:
    """Zoneout of a step's rows, where the cell has it."""
    if kept is not None:
        for row in range(len(new)):
            mix(new[row], old[row], kept[start + row], out[row])


@row_function
def zone_in(new: Any, old: Any, kept: Any, start: int) -> None:
    """`zone`, into ``new``."""
    if kept is not None:
        for row in range(len(new)):
            mix_in(new[row], old[row], kept[start + row])


@row_function
def zone_back(grad: Any, kept: Any, start: int, stays: Any) -> None:
    """`part` of a step's rows, where the cell has zoneout."""
    if kept is not None:
        for row in range(len(grad)):
            part(grad[row], kept[start + row], stays[row])


@row_function
def rejoin(grad: Any, kept: Any, stays: Any) -> None:
    """What went straight to the old state comes to the rest of its gradient."""
    if kept is not None:
        for row in range(len(grad)):
            add(grad[row], stays[row])


@row_function
def arrive(grad: Any, given: Any, outside: Any, start: int) -> None:
    """The state's gradient, and what the step's output was told: by ``given``, in the loop's order or ``outside``'s."""
    n = grad.shape[1]
    for row in range(len(grad)):
        if outside is None:
            _arrive(grad[row], given[start + row])
        else:
            _arrive(grad[row], given[outside.places[start + row], outside.at : outside.at + n])


@row_function
def _arrive(grad: Any, given: Any) -> None:
    for j in range(len(grad)):
        grad[j] += take(given, j)


def either(first: Any, other: Any) -> Any:
    """``other``, or ``first`` where that is None: as h is in the type of products, where it has another."""
    raise TypeError(first)


@overload(either)
def _either(first: Any, other: Any) -> Any:
    def the_first(first: Any, other: Any) -> Any:
        return first

    def the_other(first: Any, other: Any) -> Any:
        return other

    return the_first if other is types.none else the_other


@row_function
def hand_on(h: Any, output: Any, start: int, stop: int) -> None:
    """The state of a step in the type of products, where it has another."""
    if output is not None:
        for row in range(start, stop):
            copy(h[row], output[row])


@step_function
def last_seen(packed: Any, step: int, steps: Any, first: Any) -> Any:
    """The rows of the step before that are still there at ``step``; before the first of all, those of ``first``."""
    rows = steps.counts[step]
    if step == 0:
        return first[:rows]
    before = steps.starts[step - 1]
    return packed[before : before + rows]


@row_function
def deliver(output: Any, outside: Any, start: int, stop: int) -> None:
    """A step's outputs, for others."""
    if outside is not None:
        n = output.shape[1]
        for row in range(start, stop):
            copy(output[row], outside.output[outside.places[row], outside.at : outside.at + n])
