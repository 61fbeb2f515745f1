"""Every mistake that a user can make ends in one of these: a sentence, and the exit code of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class UnrolledError(Exception):
    """Something failed; the message says where, what was given and what to do. Exit code 1."""

    exit_code = 1


class UsageError(UnrolledError):
    """The call itself is wrong: a flag, a setting, a name. Exit code 2."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting is unknown or has a value that is not allowed."""


class DataError(UnrolledError):
    """The user's data cannot be used; names file and line. Exit code 3."""

    exit_code = 3


class GateError(UnrolledError):
    """A quality gate was missed. Exit code 4."""

    exit_code = 4


class MissingPartError(UnrolledError):
    """An optional part is not installed; names the extra to install. Exit code 5."""

    exit_code = 5


def known(name: str, names: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest one, then all of them.

    >>> known("lstn", ["lstm", "gru"])
    "Did you mean 'lstm'? Known: gru, lstm."
    """
    every = sorted(names)
    near = nearest(name, every)
    hint = f"Did you mean '{near}'? " if near else ""
    return f"{hint}Known: {', '.join(every) if every else 'none'}."


def within(where: str, message: str) -> str:
    """``message`` with the place ``where`` before it, or before the place inside that it names itself.

    >>> within("model.decoder", "[attention] no attention is called 'dott'.")
    "[model.decoder.attention] no attention is called 'dott'."
    >>> within("model.decoder.attention", "the sizes must be equal.")
    '[model.decoder.attention] the sizes must be equal.'
    """
    if not where or message.startswith((f"[{where}]", f"[{where}.")):
        return message
    return f"[{where}.{message[1:]}" if message.startswith("[") else f"[{where}] {message}"


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The one of ``names`` that is most like ``name``, or begins with it; None where none is."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6) or [k for k in names if k.startswith(name) and name]
    return near[0] if near else None


def require(module: str, extra: str) -> None:
    """Refuse with the extra to install where an optional ``module`` is missing (MissingPartError)."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingPartError(f"{module} is not installed. Install it with: pip install 'unrolled[{extra}]'")
