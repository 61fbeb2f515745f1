"""``unrolled check``: the data doctor."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.base.errors import UsageError

if TYPE_CHECKING:
    from unrolled.data.table import Table

FILES = "Data"


def check(
    data: Annotated[
        str | None,
        typer.Argument(
            help="TSV, CSV, JSON lines, Parquet, text (also .gz), a folder with train/valid/test, or a data set's name."
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Parallel text instead: the sources.", rich_help_panel=FILES)
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Parallel text instead: the targets.", rich_help_panel=FILES)
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns by name or number, e.g. 2,1.", rich_help_panel=FILES)
    ] = None,
    valid: Annotated[str | None, typer.Option(help="Validation table.", rich_help_panel=FILES)] = None,
    valid_source: Annotated[str | None, typer.Option(help="Validation sources.", rich_help_panel=FILES)] = None,
    valid_target: Annotated[str | None, typer.Option(help="Validation targets.", rich_help_panel=FILES)] = None,
    test: Annotated[str | None, typer.Option(help="Test table.", rich_help_panel=FILES)] = None,
    test_source: Annotated[str | None, typer.Option(help="Test sources.", rich_help_panel=FILES)] = None,
    test_target: Annotated[str | None, typer.Option(help="Test targets.", rich_help_panel=FILES)] = None,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(help="Also train this kind on train and measure its unknown symbols, e.g. bpe. Can be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The report as one line of JSON.")] = False,
) -> None:
    """Look for what is wrong with data: unreadable lines, duplicates, overlap, lengths, unknown symbols.

    Exit code 0, or 3 when something must be repaired; each finding has its file and line.
    """
    from unrolled.cli import findings
    from unrolled.cli.output import tell_json
    from unrolled.data.doctor import examine

    tables = _tables(data, source, target, columns)
    for split, whole, left, right in (
        ("valid", valid, valid_source, valid_target),
        ("test", test, test_source, test_target),
    ):
        if whole or left or right:
            tables[split] = _one(split, whole, left, right, columns)
    _refuse_unknown(tokenizer or [])
    with findings.waiting(f"reading {', '.join(tables)}"):
        report = examine(tables, tokenizers=tokenizer or [])
    if as_json:
        tell_json(report.tree())
    elif findings.is_terminal(sys.stdout):
        findings.draw(report)
    else:
        findings.write(report)
    if not report.ok:
        raise typer.Exit(3)


def _tables(data: str | None, source: str | None, target: str | None, columns: str | None) -> dict[str, Table]:
    from unrolled.data.readers import splits
    from unrolled.data.table import cut

    if data and (source or target):
        raise UsageError("give a table (DATA) or parallel files (--source and --target), not both.")
    if data:
        return {split: cut(table, _PAIR) for split, table in splits(data, columns=columns).items()}
    if source or target:
        return {"train": _one("train", None, source, target, columns)}
    raise UsageError("no data: give a table (DATA), or parallel files with --source and --target.")


_PAIR = ("source", "target")


def _one(split: str, whole: str | None, left: str | None, right: str | None, columns: str | None) -> Table:
    """A split given by its own flags."""
    from unrolled.data.readers import open_parallel, open_table
    from unrolled.data.table import cut

    dash = "--" if split == "train" else f"--{split}-"
    if whole:
        if left or right:
            raise UsageError(
                f"--{split} is a table and {dash}source/{dash}target are parallel files: give one of them."
            )
        return cut(open_table(whole, columns=columns), _PAIR)
    if not left or not right:
        raise UsageError(f"{dash}{'source' if not left else 'target'} is missing: parallel files come in pairs.")
    return open_parallel(left, right)


def _refuse_unknown(kinds: list[str]) -> None:
    """SettingsError for a kind of tokenizer that there is not, before anything is read."""
    if kinds:
        from unrolled.text import TOKENIZERS

        for kind in kinds:
            TOKENIZERS.complete(kind, "--tokenizer")
