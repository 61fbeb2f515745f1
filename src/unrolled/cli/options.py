"""The options that several commands take, and those of training, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

FILES = "Data"
HOW = "Model and training"

Model = Annotated[str, typer.Argument(help="Folder of a saved model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda …")]
Precision = Annotated[
    str | None, typer.Option(help="Of searches: float32, or bfloat16: faster for many lines, last bits may differ.")
]
Json = Annotated[bool, typer.Option("--json", help="The result as JSON, in one line.")]
Ensemble = Annotated[
    list[str] | None,
    typer.Option(help="Another model of the same symbols: the mean of their probabilities. Can be repeated."),
]
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

Vectors = Annotated[
    str | None,
    typer.Option(
        help="Words that are read start from the vectors in this file (word2vec, GloVe, fastText) and learn on.",
        rich_help_panel=FILES,
    ),
]

Out = Annotated[str | None, typer.Option(help="Folder of the model; runs/NAME if not given.")]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Settings to start from: default, bahdanau, language-model, …; `unrolled describe PRESET` shows one.",
        rich_help_panel=HOW,
    ),
]
TaskName = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="What is learnt: translate, language-model, word-vectors, …; where not given, what the data look like.",
        rich_help_panel=HOW,
    ),
]
Config = Annotated[str | None, typer.Option(help="A settings file (YAML).", rich_help_panel=HOW)]
Minutes = Annotated[
    float | None, typer.Option(help="Fit schedule and stopping into so many minutes.", rich_help_panel=HOW)
]
Seed = Annotated[int | None, typer.Option(min=0, help="Another seed, another model.", rich_help_panel=HOW)]
Devices = Annotated[int, typer.Option(min=1, help="Processes on this machine, one a device.", rich_help_panel=HOW)]
From = Annotated[
    str | None,
    typer.Option("--from", help="Go on from a saved model, with its own vocabulary.", rich_help_panel=HOW),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")]
Replace = Annotated[bool, typer.Option("--replace", help="Train anew where --out holds a trained model already.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="The longest batch through one step: memory and time.")]
ExplainSettings = Annotated[
    bool, typer.Option("--explain-settings", help="Every setting and where it comes from; no training.")
]
