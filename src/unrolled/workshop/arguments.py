"""What is given to a model from Python, checked where it is given: a wrong argument is a sentence, not a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unrolled.base.errors import UsageError


def texts(verb: str, name: str, given: Any) -> list[str]:
    """``given`` as a list of texts; UsageError for one text, or for anything that is not texts."""
    if isinstance(given, str):
        raise UsageError(f"{verb}: {name} is one text, {given[:40]!r}; a list of texts is wanted: [{given[:40]!r}].")
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{verb}: {name} is {_kind(given)}; a list of texts is wanted.")
    found = list(given)
    for place, one in enumerate(found):
        if not isinstance(one, str):
            raise UsageError(f"{verb}: {name}[{place}] is {_kind(one)}; a text is wanted, '' where there is none.")
    return found


def text(verb: str, name: str, given: Any) -> str:
    """``given``, which must be one text."""
    if not isinstance(given, str):
        raise UsageError(f"{verb}: {name} is {_kind(given)}; one text is wanted.")
    return given


def pairs(verb: str, sources: Any, targets: Any, second: str = "targets") -> tuple[list[str], list[str]]:
    """Two lists of equally many texts."""
    left, right = texts(verb, "sources", sources), texts(verb, second, targets)
    if len(left) != len(right):
        raise UsageError(f"{verb}: {len(left)} sources and {len(right)} {second}; give as many of both.")
    return left, right


def count(verb: str, name: str, given: Any) -> int:
    """``given``, which must be a whole number of at least 1."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        shown = given if isinstance(given, int | float) else _kind(given)
        raise UsageError(f"{verb}: {name} is {shown}; a whole number of at least 1 is wanted.")
    return given


def place(verb: str, name: str, given: Any) -> str:
    """``given``, which must be a path: text or `os.PathLike`."""
    import os

    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{verb}: {name} is {_kind(given)}; a path is wanted.")
    return os.fspath(given)


def _kind(given: Any) -> str:
    return "None" if given is None else f"of type {type(given).__name__}"
