"""The options that several commands take, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

FILES = "Data"

Model = Annotated[str, typer.Argument(help="Folder of a saved model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda …")]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON, in one line.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="One setting, e.g. --set model.encoder.layers=2. Can be repeated.")
]

Data = Annotated[
    str | None,
    typer.Argument(
        help="TSV, CSV, JSON lines, Parquet, text (also .gz), a folder with train/valid/test, or a data set's name."
    ),
]
Source = Annotated[str | None, typer.Option(help="Parallel text instead: the sources.", rich_help_panel=FILES)]
Target = Annotated[str | None, typer.Option(help="Parallel text instead: the targets.", rich_help_panel=FILES)]
Columns = Annotated[str | None, typer.Option(help="Columns by name or number, e.g. 2,1.", rich_help_panel=FILES)]
Valid = Annotated[
    str | None,
    typer.Option(help="Validation table; where there is none, train holds some rows out.", rich_help_panel=FILES),
]
ValidSource = Annotated[str | None, typer.Option(help="Validation sources.", rich_help_panel=FILES)]
ValidTarget = Annotated[str | None, typer.Option(help="Validation targets.", rich_help_panel=FILES)]
Test = Annotated[str | None, typer.Option(help="Test table; train scores the model on it.", rich_help_panel=FILES)]
TestSource = Annotated[str | None, typer.Option(help="Test sources.", rich_help_panel=FILES)]
TestTarget = Annotated[str | None, typer.Option(help="Test targets.", rich_help_panel=FILES)]
