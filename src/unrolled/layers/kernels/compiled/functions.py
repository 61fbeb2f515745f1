"""How functions become machine code, and when machine code that was kept is good."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

FAST = {"contract", "nsz"}  # a·b + c as one operation; nothing that would lose a NaN

UNCOUNTED: Any = {"forceinline": True, "_nrt": False}  # the second of which numba's types do not know

row_function = njit(fastmath=FAST, error_model="numpy", **UNCOUNTED)
"""A function of one row. Its loops read and write few arrays each, or they are not worked on many numbers at once.

It makes no array and gives none back, so that nobody has to count who still has one: counting is a write that all of a
processor's cores must see, which takes as long as the work on sixty numbers.

It is always put into the loop that calls it. As a function of its own it would be made twice, once for itself and once
within the loop, and rounded otherwise in each; the process that makes machine code would link the one, a process that
finds it kept the other, and the same seed would train two different models.
"""

SOURCE = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()
"""Of all these modules: machine code has in it what it calls from the others."""


def loop_function(function: Callable[..., Any]) -> Any:
    """A function of all rows of all steps; the machine code is kept beside the module, or in the user's cache folder.

    Where neither can be written it is made anew in every process.
    """
    compiled: Any = njit(fastmath=FAST, error_model="numpy", nogil=True)(function)
    _keep(compiled)
    return compiled


def c_function(function: Callable[..., Any], signature: Any) -> Any:
    """A function that others call by its ``address``, made once for all of them and kept as `loop_function` keeps."""
    compiled: Any = CFunc(function, normalize_signature(signature), {}, {"fastmath": FAST, "error_model": "numpy"})
    _keep(compiled)
    compiled.compile()
    return compiled


def by_address(function: Callable[..., Any], signature: Any) -> Any:
    """A `c_function` as Python calls it: where it wants pointers it is given addresses, and nobody looks at arrays."""
    called = c_function(function, signature).ctypes
    called.argtypes = [
        ctypes.c_void_p if isinstance(kind, types.CPointer) else wanted
        for kind, wanted in zip(signature.args, called.argtypes, strict=True)
    ]
    return called


def _keep(compiled: Any) -> None:
    try:
        compiled.enable_caching()
    except RuntimeError:
        return
    kept = compiled._cache._cache_file  # which asks for its own module's age only
    kept._source_stamp = (kept._source_stamp, SOURCE)
    kept._load_index = _or_else(kept._load_index, dict)
    kept._load_data = _or_else(kept._load_data, lambda: None)
    save = compiled._cache.save_overload

    def save_if_possible(*made: Any) -> None:
        with contextlib.suppress(OSError):  # a full disk: the code is there, and made anew in the next process
            save(*made)

    compiled._cache.save_overload = save_if_possible


def _or_else(load: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    """``load``, or ``nothing`` of a file that cannot be read: half a one, or another version's, whose class is gone."""

    def load_if_possible(*told: Any) -> Any:
        try:
            return load(*told)
        except Exception:  # pickle raises whatever what it finds there does
            return nothing()

    return load_if_possible


step_function = njit(fastmath=FAST, error_model="numpy", forceinline=True)
"""A function of the rows of one step, which may make arrays. Of an option that the cell does not have, None, no code is
made."""

summing = njit(fastmath=FAST | {"reassoc"}, error_model="numpy", **UNCOUNTED)


def _pointed(_context: Any, builder: Any, _: Any, given: Any) -> Any:
    return builder.inttoptr(given[0], ir.IntType(8).as_pointer())


pointer: Any = intrinsic(lambda _, _address: (types.voidptr(types.intp), _pointed))
"""What is at an address that came as a number."""
