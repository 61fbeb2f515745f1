"""``unrolled check``: the data doctor."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.base.errors import UsageError
from unrolled.cli import options

if TYPE_CHECKING:
    from unrolled.data.table import Table

PAIR = ("source", "target")


def check(
    data: options.Data = None,
    source: options.Source = None,
    target: options.Target = None,
    columns: options.Columns = None,
    valid: options.Valid = None,
    valid_source: options.ValidSource = None,
    valid_target: options.ValidTarget = None,
    test: options.Test = None,
    test_source: options.TestSource = None,
    test_target: options.TestTarget = None,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(help="Also train this kind on train and measure its unknown symbols, e.g. bpe. Can be repeated."),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(
            help="What stands between the labels of a cell, as train is told with --set text.separator=SIGN; where not "
            "given, a comma, a semicolon or a bar where the labels show it."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Look for what is wrong with data: unreadable lines, duplicates, overlap, lengths, unknown symbols.

    Exit code 0, or 3 when something must be repaired; each finding has its file and line.
    """
    from unrolled.cli import findings
    from unrolled.cli.output import tell_json
    from unrolled.data.doctor import examine
    from unrolled.data.table import wanted
    from unrolled.workshop.sources import Sources, tables_of

    sources = Sources(
        data=data, source=source, target=target, valid=valid, valid_source=valid_source, valid_target=valid_target,
        test=test, test_source=test_source, test_target=test_target,
    )  # fmt: skip
    tables = _as_a_task_reads(tables_of(sources, wanted(columns)))
    _refuse_unknown(tokenizer or [])
    if separator is not None and not separator.strip(" "):
        raise UsageError("--separator: it is empty. Give what stands between two labels, e.g. a comma.")
    with findings.waiting(f"reading {', '.join(tables)}"):
        report = examine(tables, tokenizers=tokenizer or [], separator=separator)
    if as_json:
        tell_json(report.tree())
    elif findings.is_terminal(sys.stdout):
        findings.draw(report)
    else:
        findings.write(report)
    if not report.ok:
        raise typer.Exit(3)


def _as_a_task_reads(given: Mapping[str, Table]) -> Mapping[str, Table]:
    """The tables as the task would read them that their columns or files speak of; else their first two columns."""
    from unrolled.data.sentences import sentences_first
    from unrolled.data.table import cut
    from unrolled.tasks.feature_columns import pairs_first
    from unrolled.tasks.files_first import files_first
    from unrolled.tasks.forecast import series_first
    from unrolled.tasks.handwriting import drawings_first
    from unrolled.tasks.reading import questions_first
    from unrolled.tasks.signals import frames_first

    found = files_first(given) or drawings_first(frames_first(given))
    return (
        series_first(found)
        or sentences_first(found)
        or questions_first(found)
        or pairs_first(found)
        or {name: cut(table, PAIR) for name, table in found.items()}
    )


def _refuse_unknown(kinds: list[str]) -> None:
    """SettingsError for a kind of tokenizer that there is not, before anything is read."""
    if kinds:
        from unrolled.text import TOKENIZERS

        for kind in kinds:
            TOKENIZERS.complete(kind, "--tokenizer")
