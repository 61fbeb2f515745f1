"""What is given to a model from Python, checked where it is given: a wrong argument is a sentence, not a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def pairs(
    verb: str, given: Any, targets: Any, second: str = "targets", *, read: Any = None
) -> tuple[list[str], list[str]]:
    """Two lists of equally many texts, the first as ``sources`` takes them."""
    left, right = sources(verb, "sources", given, read), texts(verb, second, targets)
    if len(left) != len(right):
        raise UsageError(f"{verb}: {len(left)} sources and {len(right)} {second}; give as many of both.")
    return left, right


def sentences(verb: str, name: str, given: Any) -> list[list[str]]:
    """``given`` as a list of lists of words; UsageError for one sentence, for texts, and for anything else."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{verb}: {name} is {_shown(given)}; a list of sentences is wanted, each a list of words.")
    found = list(given)
    for place, one in enumerate(found):
        if isinstance(one, str):
            raise UsageError(
                f"{verb}: {name}[{place}] is the text {one[:40]!r}; a list of words is wanted: {one.split()[:3]}."
            )
        found[place] = texts(verb, f"{name}[{place}]", one)
    return found


def tagged(verb: str, given: Any, tags: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences and their tags, one a word."""
    left, right = sentences(verb, "sentences", given), sentences(verb, "tags", tags)
    if len(left) != len(right):
        raise UsageError(f"{verb}: {len(left)} sentences and {len(right)} rows of tags; give as many of both.")
    for place, (words, row) in enumerate(zip(left, right, strict=True)):
        if len(words) != len(row):
            raise UsageError(f"{verb}: sentence {place} has {len(words)} words and {len(row)} tags; give one a word.")
    return left, right


def sources(verb: str, name: str, given: Any, read: Any) -> list[str]:
    """Sources as lines of a table. ``read`` is what reads them: a tokenizer, then they are texts; or `Featured`, then
    each is a row (text, features, …), or a line with tabs between these."""
    from unrolled.text.featured import Featured, joined

    if not isinstance(read, Featured):
        return texts(verb, name, given)
    wanted = len(read.features) + 1
    rows = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else given
    if isinstance(rows, list):
        for place, row in enumerate(rows):
            if isinstance(row, Sequence) and not isinstance(row, str | bytes):
                cells = texts(verb, f"{name}[{place}]", row)
                if len(cells) != wanted:
                    raise UsageError(f"{verb}: {name}[{place}] has {len(cells)} texts; {_row_of(wanted)} are wanted.")
                rows[place] = joined(cells)
    lines = texts(verb, name, rows)
    for place, line in enumerate(lines):
        if line.strip() and line.count("\t") < wanted - 1:
            raise UsageError(f"{verb}: {name}[{place}] is {line[:40]!r}; a row of {_row_of(wanted)} is wanted.")
    return lines


def _row_of(count: int) -> str:
    return f"{count} texts, the source and its {'features' if count == 2 else f'{count - 1} columns of features'},"


def references(verb: str, given: Any, wanted: int) -> list[str | list[str]]:
    """``given`` as a list with one reference or several for each of ``wanted`` sources."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        texts(verb, "references", given)
    found: list[str | list[str]] = []
    for place, one in enumerate(given):
        several = isinstance(one, Sequence) and not isinstance(one, str | bytes)
        found.append(texts(verb, f"references[{place}]", one) if several else text(verb, f"references[{place}]", one))
    if len(found) != wanted:
        raise UsageError(f"{verb}: {wanted} sources and {len(found)} references; give as many of both.")
    return found


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
    if os.fspath(given) == "":
        raise UsageError(f"{verb}: {name} is ''; a path is wanted.")
    return os.fspath(given)


def _shown(given: Any) -> str:
    return f"the text {given[:40]!r}" if isinstance(given, str) else _kind(given)


def _kind(given: Any) -> str:
    return "None" if given is None else f"of type {type(given).__name__}"
