"""The command line: one file a command, and one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated

import typer

from unrolled.base.errors import UnrolledError
from unrolled.cli import (
    check,
    demo,
    describe,
    embed,
    evaluate,
    explain,
    generate,
    predict,
    score,
    selfcheck,
    train,
    usage,
)

app = typer.Typer(
    name="unrolled",
    cls=usage.Verbs,
    help="Train, see through and ship recurrent and attention sequence models, from your own file.",
    epilog="Start with: unrolled demo. Every command has --help, and --json for machines. "
    "Exit codes: 0 done, 1 failed, 2 usage, 3 data, 4 a gate missed, 5 a part missing, 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (demo, check, train, predict, score, evaluate, explain, generate, embed, describe, selfcheck):
    name = command.__name__.rsplit(".", 1)[-1]
    app.command(name, cls=usage.Verb)(getattr(command, name))


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show:
        from importlib.metadata import version as installed

        typer.echo(f"unrolled {installed('unrolled')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def main() -> None:
    """Run the command line and leave with its exit code; a user's mistake never shows a traceback."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    # Waiting threads spin for a moment, then sleep: beside other work, endless spinning costs a factor of ten.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        code = app(standalone_mode=False)
    except usage.WrongCall as error:
        leave(usage.sentence(error, sys.argv[1:]), error.exit_code)
    except UnrolledError as error:
        leave(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        leave("interrupted.", 130)
    except BrokenPipeError:
        # The reader of a pipe went away (`unrolled predict … | head`): nothing more to say.
        _let_go_of_stdout()
        sys.exit(0)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        leave(f"{place}{error.strerror or error}.", 1)
    except MemoryError:
        leave("out of memory. Use a smaller batch (--set train.batch_tokens=…) or a smaller model.", 1)
    else:
        if code:
            sys.exit(code)


def leave(message: str, code: int) -> None:
    """Print the error as one sentence on stderr and exit with ``code``."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # what is left cannot be written: that may be the very mistake that is told here
        _let_go_of_stdout()
    typer.echo(f"error: {message}".encode("utf-8", "backslashreplace").decode("utf-8"), err=True)
    sys.exit(code)


def _let_go_of_stdout() -> None:
    """Send what is still to be written to nowhere, or leaving would fail once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
