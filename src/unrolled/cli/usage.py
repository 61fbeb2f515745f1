"""A wrong call ends like every other mistake: one sentence with the nearest name, and exit code 2."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from unrolled.base.errors import UsageError, known, nearest

WrongCall: type[Any] = typer.BadParameter.__mro__[1]
"""What the library raises for any wrong call. It has a copy of click's class, or click's own, by its version."""


class Verbs(TyperGroup):
    """The commands; an unknown one is refused with the nearest."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise UsageError(f"no command is called '{args[0]}'. {known(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


TEXTS = frozenset(["prompt", "features", "target"])
"""Options that may be empty: texts, as the answer to a question that has none, and what goes with one."""


class Verb(TyperCommand):
    """A command; an option that is given and empty is refused: no file, model or name is called so."""

    def invoke(self, ctx: Any) -> Any:
        for option in self.params:
            if option.param_type_name == "option" and ctx.params.get(option.name) == "" and option.name not in TEXTS:
                raise UsageError(f"{option.opts[0]}: '' was given. Give a value, or leave the option out.")
        return super().invoke(ctx)


def sentence(error: Any, words: Sequence[str]) -> str:
    """A wrong call (``words`` after the program's name) in ours: ``predict: there is no option --bem. Did you mean
    --beam? See: unrolled predict --help``."""
    verb = words[0] if words and not words[0].startswith("-") else ""
    if hasattr(error, "possibilities"):
        options = [name for each in error.ctx.command.params for name in (*each.opts, *each.secondary_opts)]
        near = nearest(error.option_name, [name for name in [*options, "--help"] if name.startswith("-")])
        said = f"there is no option {error.option_name}.{f' Did you mean {near}?' if near else ''}"
    else:
        message = " ".join(error.format_message().split())
        said = f"{message[:1].lower()}{message[1:].rstrip('.')}{_given(error, words)}."
    return f"{verb}: {said} See: unrolled {verb} --help" if verb else f"{said} See: unrolled --help"


def _given(error: Any, words: Sequence[str]) -> str:
    """The value that was refused, where it can be found among the words."""
    names = getattr(getattr(error, "param", None), "opts", ())
    found = [value for word, value in pairwise([*words, ""]) if word in names]
    found += [word.partition("=")[2] for word in words if word.partition("=")[0] in names and "=" in word]
    return f" ({found[-1]!r} was given)" if found and found[-1] not in error.message else ""
