"""Rows that are taken from others and put back, in one pass, whatever type each side has."""

from __future__ import annotations

from typing import Any

from unrolled.layers.kernels.compiled.functions import loop_function, row_function, summing
from unrolled.layers.kernels.compiled.rows import copy
from unrolled.layers.kernels.compiled.scalars import put, take


@loop_function
def gather(given: Any, places: Any, out: Any) -> Any:
    """out = rows ``places`` of ``given``; gives back the sum of their numbers, which tells whether all are finite."""
    total = take(given[0], 0) - take(given[0], 0)
    for row in range(len(places)):
        total += copy_summed(given[places[row]], out[row])
    return total


@summing
def copy_summed(given: Any, out: Any) -> Any:
    total = take(given, 0) - take(given, 0)
    for j in range(len(out)):
        x = take(given, j)
        total += x
        put(out, j, x)
    return total


@loop_function
def scatter(given: Any, places: Any, out: Any, keep: bool) -> None:
    """Rows ``places`` of ``out`` become those of ``given``, or with ``keep`` get them added."""
    for row in range(len(places)):
        if keep:
            add_taken(given[row], out[places[row]])
        else:
            copy(given[row], out[places[row]])


@loop_function
def leave(packed: Any, last: Any, out: Any) -> None:
    """Each row's last step, in the type of ``out``."""
    for row in range(len(last)):
        copy(packed[last[row]], out[row])


@row_function
def add_taken(given: Any, out: Any) -> None:
    for j in range(len(out)):
        put(out, j, take(out, j) + take(given, j))


@loop_function
def clear_padding(out: Any, lengths: Any, time: int) -> None:
    """Rows of ``out`` [batch * time, size] that are none of the batch's symbols become 0."""
    for row in range(len(lengths)):
        for step in range(lengths[row], time):
            clear(out[row * time + step])


@row_function
def clear(out: Any) -> None:
    for j in range(len(out)):
        out[j] = 0
