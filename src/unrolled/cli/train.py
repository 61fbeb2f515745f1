"""``unrolled train``: from a file to a trained, scored and saved model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unrolled.base.errors import UsageError
from unrolled.cli import options

if TYPE_CHECKING:
    from unrolled.runs import Run


def train(
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
    vectors: options.Vectors = None,
    out: options.Out = None,
    preset: options.Preset = None,
    task: options.TaskName = None,
    config: options.Config = None,
    set_: options.Settings = None,
    minutes: options.Minutes = None,
    seed: options.Seed = None,
    devices: options.Devices = 1,
    start: options.From = None,
    resume: options.Resume = False,
    replace: options.Replace = False,
    dry_run: options.DryRun = False,
    explain_settings: options.ExplainSettings = False,
    as_json: options.Json = False,
) -> None:
    """Train a model on your own data and save it, scored and with its card.

    What is not told is concluded from the data, and said. Settings: flag > file > resumed run > preset > default.
    """
    from unrolled.workshop.sources import Sources

    sources = Sources(
        data=data, source=source, target=target, valid=valid, valid_source=valid_source, valid_target=valid_target,
        test=test, test_source=test_source, test_target=test_target, vectors=vectors,
    )  # fmt: skip
    if resume and out is None and not sources.files():
        raise UsageError("--resume: say which run with --out, or repeat its data.")
    if devices > 1 and "WORLD_SIZE" not in os.environ:
        from unrolled.train.launch import launch

        raise typer.Exit(launch(["-m", "unrolled", *sys.argv[1:]], devices))
    from unrolled.data.table import wanted
    from unrolled.runs import Run, default_name, place

    flags = _flags(task, minutes, seed, wanted(columns))
    folder = Path(out) if out else Path("runs") / default_name(sources)
    if not (resume or replace or dry_run or explain_settings):
        place.refuse_finished(folder)
    run = Run(
        sources, folder, preset=preset, config=config, flags=flags, assignments=set_ or [], resume=resume, start=start
    )
    if explain_settings:
        _explain(run, as_json=as_json)
    elif dry_run:
        _dry_run(run, as_json=as_json)
    else:
        _train(run, as_json=as_json)


def _flags(task: str | None, minutes: float | None, seed: int | None, columns: Any) -> dict[str, Any]:
    flags: dict[str, Any] = {"task": task.replace("-", "_")} if task else {}
    training = {name: value for name, value in (("minutes", minutes), ("seed", seed)) if value is not None}
    if training:
        flags["train"] = training
    if columns is not None:
        flags["data"] = {"columns": tuple(columns)}
    return flags


def _explain(run: Run, *, as_json: bool) -> None:
    from unrolled.cli.output import table, tell_json

    if as_json:
        tell_json({name: {"value": value, "origin": origin} for name, value, origin in run.plan.table()})
        return
    rows = [(name, "–" if value is None else str(value), origin) for name, value, origin in run.plan.table()]
    table(("setting", "value", "from"), rows)


def _prepare(run: Run, *, keep: bool = True) -> None:
    from unrolled.progress import say
    from unrolled.train.launch import first

    if not first():
        run.prepare(keep=keep)
        return
    for sentence in run.said:
        say(sentence)
    run.prepare(keep=keep)
    parameters = sum(tensor.numel() for tensor in run.network.parameters())
    rows = [len(run.corpus.store(name)) for name in ("train", "valid")]
    read = "; ".join(f"{name}: {how}" for name, how in run.text.about().items())
    say(f"{rows[0]:,} training and {rows[1]:,} validation rows; {read}; {parameters:,} parameters.")
    for remark in [*run.corpus.remarks(), *run.corpus.batches().remarks()]:
        say(remark)


def _dry_run(run: Run, *, as_json: bool) -> None:
    from unrolled.cli.output import size, tell, tell_json

    _prepare(run, keep=False)
    trial = run.dry_run()
    if as_json:
        tell_json(trial._asdict())
        return
    pieces = "in one piece" if trial.pieces == 1 else f"split into {trial.pieces} pieces"
    tell(
        f"The longest batch ({trial.rows} rows, {trial.symbols} predicted symbols) runs {pieces}: "
        f"{trial.seconds:.2f} s an update, {size(trial.memory)} of memory at the peak."
    )


def _train(run: Run, *, as_json: bool) -> None:
    from unrolled.cli.output import number, table, tell, tell_json
    from unrolled.progress import Progress, duration, say

    _prepare(run)
    progress = Progress(quiet=not run.world.first, unit=run.task.unit)
    for report in run.fit():
        progress.show(report)
    if run.stopped.reason == "interrupted":
        say(f"Saved. Go on with: unrolled train --resume --out {run.out}")
        raise typer.Exit(130)
    if not run.world.first:
        return
    say("scoring …")
    model = run.finish()
    where = model.record["scored_on"]
    if as_json:
        tell_json(
            {
                "model": str(run.out),
                "train_seconds": run.seconds,
                "steps": run.stopped.step,
                "scored_on": where,
                "scores": {score.name: score.value for score in model.scores},
            }
        )
        return
    rows = [(score.name, number(score.value), score.protocol) for score in model.scores]
    table(("score", "value", "protocol"), rows, title=f"{where['rows']} {where['part']} rows", right=(1,))
    tell(f"Trained for {duration(run.seconds)}. Model and card: {run.out}")
