"""Work that torch's threads share: of a loop over time some rows each, of a product some columns.

They are the threads of the OpenMP library that torch brings along, so there are never more of them than torch was told
to use (`torch.set_num_threads`), and they wait as those of torch's own operations do. Where torch has another library
one thread works alone. What a row or a weight gets is the same for any number of them; what is added up over rows as a
loop goes (gradients of a normalisation's weights and of the bias of a vocabulary) is rounded otherwise.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def libraries() -> list[Path]:
    """The files in which what torch calls may lie, with the libraries that it brings along."""
    folder = Path(torch.__file__).parent / "lib"
    return sorted(path for pattern in ("libtorch_cpu.*", "torch_cpu.dll") for path in folder.glob(pattern))


NAMES = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""What a library of OpenMP's is asked for: GNU's, or one that can be called as it."""


def _find() -> ctypes.CDLL | None:
    for path in libraries():
        library = ctypes.CDLL(str(path))
        if all(hasattr(library, name) for name in NAMES):
            return library
    return None


_LIBRARY = _find()


def available() -> int:
    """How many threads may work at once, this one among them."""
    return 1 if _LIBRARY is None else torch.get_num_threads()


def worthwhile(operations: int) -> int:
    """How many threads share work of so many multiply-adds, each of which Python calls."""
    return max(1, min(available(), operations // LEAST))


LEAST = 1 << 23
"""Multiply-adds for a thread that are worth its call from Python: they take about as long as two."""


def portions(count: int, threads: int, whole: int = 1) -> list[slice]:
    """Of so many rows or columns those of each thread, in multiples of ``whole``, but for the last ones'."""
    blocks = -(-count // whole)
    ends = [min(count, whole * (blocks * number // threads)) for number in range(threads + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends) if start < stop] or [slice(0, 0)]


# --- shared by Python -------------------------------------------------------------------------------------------------


class _Jobs(NamedTuple):
    left: Iterator[Callable[[], object]]
    raised: list[BaseException]


def together(jobs: Sequence[Callable[[], object]]) -> None:
    """Do all at once, each on a thread of its own; what one of them raises is raised here, when none is at work.

    Only what lets other threads of Python's run, as compiled loops and functions by address do, gains by it.
    """
    if len(jobs) == 1 or _PARALLEL is None:
        for job in jobs:
            job()
        return
    told = _Jobs(iter(jobs), [])
    with _interrupts_later():
        _PARALLEL(_WORK, id(told), len(jobs), 0)  # which ``told`` outlives
    if told.raised:
        raise told.raised[0]


def _work(address: int) -> None:
    told: _Jobs = ctypes.cast(address, ctypes.py_object).value
    try:
        for job in told.left:
            job()
    except BaseException as error:  # nothing may be raised into a library
        told.raised.append(error)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Where Ctrl-C raises, it does so after the block: what is raised as a library calls Python is lost."""
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handler: Any = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    for number, frame in came[:1]:
        handler(number, frame)


_CALLED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_WORK = _CALLED(_work)
_PARALLEL: Any = None if _LIBRARY is None else _LIBRARY[NAMES[0]]
if _PARALLEL is not None:
    _PARALLEL.restype, _PARALLEL.argtypes = None, [_CALLED, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]


# --- shared by compiled code ------------------------------------------------------------------------------------------


def _add_symbols() -> None:
    for name in NAMES:
        function = _one_thread if _LIBRARY is None else getattr(_LIBRARY, name)
        binding.add_symbol(f"unrolled_{name}", ctypes.cast(function, ctypes.c_void_p).value)


_one_thread = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)  # compiled code wants the names; it never calls them
_add_symbols()

thread_number: Any = types.ExternalFunction("unrolled_omp_get_thread_num", types.int32())
"""Of those that share the work, from 0 on."""
thread_count: Any = types.ExternalFunction("unrolled_omp_get_num_threads", types.int32())
"""How many share it: those that were asked for, or fewer."""


def sharing(symbol: str) -> Any:
    """(address, threads): the C function ``symbol`` called with the address by each of so many threads at once."""

    def call(_context: Any, builder: Any, _: Any, given: Any) -> Any:
        pointer, count = ir.IntType(8).as_pointer(), ir.IntType(32)
        work = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [pointer]), symbol)
        kind = ir.FunctionType(ir.VoidType(), [work.type, pointer, count, count])
        parallel = cgutils.get_or_insert_function(builder.module, kind, f"unrolled_{NAMES[0]}")
        threads = builder.trunc(given[1], count)
        builder.call(parallel, [work, builder.inttoptr(given[0], pointer), threads, ir.Constant(count, 0)])
        return ir.Constant(pointer, None)

    def share(_: Any, address: Any, threads: Any) -> Any:
        return types.void(types.intp, types.intp), call

    return intrinsic(share)
