"""What an update frees the next one asks for: memory stays with the process in between."""

from __future__ import annotations

import ctypes
import os
from functools import cache

KEPT = 1 << 30
"""Bytes that glibc's allocator may hold back from the system at the end of its memory."""

APART = 1 << 25
"""Bytes from which a piece has pages of its own, which go back at once when it is freed: the most that glibc takes."""

_KEEP, _APART = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_SAID = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@cache
def keep_freed() -> bool:
    """Let the C library keep what this process frees, up to a GiB; whether it does.

    Else it gives freed memory back and the system clears every page of it before the next update gets it: a tenth of
    an update's time. Where the environment says how much is kept, or the library is not glibc's, nothing changes.
    """
    if any(name in os.environ for name in _SAID) or "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", {}):
        return False
    library = ctypes.CDLL(None)
    return bool(library.mallopt(_KEEP, KEPT) and library.mallopt(_APART, APART))
