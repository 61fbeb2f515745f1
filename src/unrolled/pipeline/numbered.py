"""One row of a file, named on the command line: ``signals.ts#3``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from unrolled.base.errors import DataError, UsageError

T = TypeVar("T")


class Named(NamedTuple):
    """What rows are called in messages, and a file of them."""

    noun: str
    example: str


def nth(verb: str, line: str, named: Named, rows: Callable[[str], Iterable[T]], said: list[str]) -> T:
    """The row that ``line`` names: a file and after a # the number of the row in it, from 1; the first without, which
    ``said`` gets a sentence about where there are more.

    A file whose own name holds a # is taken as it is. UsageError for what is no number, DataError for a row that there
    is not.
    """
    file, mark, number = line.rpartition("#")
    if not mark or Path(line).exists():
        file, mark, number = line, "", "1"
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(
            f"{verb}: '{line}': after # the number of a {named.noun} is expected, from 1: {named.example}#3"
        )
    count, given = 0, iter(rows(file))
    for count, row in enumerate(given, start=1):
        if count == int(number):
            if not mark and next(given, None) is not None:
                said.append(f"This is {named.noun} 1 of {file}; another: '{file}#2'.")
            return row
    raise DataError(f"{file}: there is no {named.noun} {number} in it, it has {count}.")
