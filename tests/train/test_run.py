"""Taking up a run: the same to the bit, wherever it was cut off."""

import json
import os
import random
import signal
import subprocess

import pytest
import torch
from torch import nn

from unrolled.base.errors import DataError, UsageError
from unrolled.train.reports import Difference, Resumed, Saved, Step, Stopped, Validated
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

FULL = {
    "epochs": 8,
    "save_every": 3,
    "average": "exponential",
    "optimizer": "adamw",
    "learning_rate": 0.01,
    "accumulate": 2,
    "schedule": {"kind": "plateau", "wait": 1},
}


def settings(**given):
    return TrainSettings(**{"precision": "float32", "device": "cpu", **FULL, **given})


@pytest.fixture(scope="module")
def nursery(toy_command, quiet_environment):
    """Runs the toy in processes of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(toy_command, env=quiet_environment, **pipes) as process:

        def run(folder, options, kill_after=None):
            """The reports of a run; killed when ``kill_after`` of them have come."""
            process.stdin.write(json.dumps([str(folder), options]) + "\n")
            process.stdin.flush()
            reports, child = [], None
            for line in process.stdout:
                report = json.loads(line)
                if report["report"] == "Started":
                    child = report["pid"]
                elif report["report"] == "Ended":
                    break
                else:
                    reports.append(report)
                if child is not None and kill_after is not None and len(reports) >= kill_after:
                    os.kill(child, signal.SIGKILL)
            assert report["code"] == (0 if kill_after is None else -signal.SIGKILL)
            return reports

        yield run
        process.stdin.close()


def of(kind, reports):
    return [report for report in reports if report["report"] == kind]


def test_a_killed_run_goes_on_to_the_same_bits(nursery, tmp_path):
    """SIGKILL at random moments, in updates and while saving, then once to the end."""
    options = {"settings": FULL, "dropout": 0.3, "resume": True}
    expected = nursery(tmp_path / "whole", options)
    draw, found = random.Random(4), []
    for _ in range(6):
        found += nursery(tmp_path / "cut", options, kill_after=draw.randrange(3, 9))
    rest = nursery(tmp_path / "cut", options)
    assert rest[0]["report"] == "Resumed"
    assert rest[0]["differences"] == []
    assert rest[-1] == expected[-1]
    assert rest[-1]["report"] == "Weights"
    losses = [
        {(r["step"], r["epoch"], r["loss"], r["gradient_norm"], r["learning_rate"]) for r in of("Step", reports)}
        for reports in (expected, found + rest)
    ]
    assert losses[0] == losses[1]
    kept = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("whole", "cut")]
    assert kept[0] == kept[1]
    for file in ("weights", "optimizer", "average"):
        contents = [(tmp_path / name / kept[0][-1] / f"{file}.safetensors").read_bytes() for name in ("whole", "cut")]
        assert contents[0] == contents[1]


@pytest.mark.parametrize("average", ["none", "last", "exponential"])
@pytest.mark.parametrize("schedule", ["one_cycle", "plateau"])
def test_cut_off_after_every_report_and_taken_up(toy, tmp_path, average, schedule):
    """In one process: a new trainer goes on where the last one was left."""
    chosen = settings(epochs=3, average=average, schedule=schedule, save_every=1)
    whole = toy.build(0.3)
    expected = list(Trainer(whole, toy.loss, chosen, folder=tmp_path / "whole").fit(toy.Toy(), toy.score))
    found = []
    for attempt in range(100):
        model = toy.build(0.3, seed=3 if attempt == 0 else 9)
        reports = Trainer(model, toy.loss, chosen, folder=tmp_path / "cut").fit(toy.Toy(), toy.score, resume=True)
        for report in reports:
            found.append(report)
            if isinstance(report, Saved) and not report.best:
                break
        reports.close()
        if isinstance(report, Stopped):
            break
    for kind in (Step, Validated):
        left, right = ([r[:4] for r in reports if isinstance(r, kind)] for reports in (expected, found))
        assert left == right
    assert found[-1][:4] == expected[-1][:4]
    assert toy.digest(model) == toy.digest(whole)


def test_differing_settings_are_reported_and_the_new_ones_win(toy, tmp_path):
    record = {"model": {"encoder": {"kind": "rnn", "hidden_size": 7}}, "columns": (1, 2)}
    list(Trainer(toy.build(), toy.loss, settings(steps=3), folder=tmp_path, record=record).fit(toy.Toy()))
    now = settings(steps=5, learning_rate=0.5, optimizer={"kind": "adamw", "weight_decay": 0.1})
    trainer = Trainer(toy.build(), toy.loss, now, folder=tmp_path, record={**record, "data": "b.tsv"})
    reports = list(trainer.fit(toy.Toy(), resume=True))
    assert reports[0] == Resumed(
        3,
        tmp_path / "step-00000003",
        (
            Difference("data", None, "b.tsv"),
            Difference("train.learning_rate", 0.01, 0.5),
            Difference("train.optimizer.weight_decay", 0.01, 0.1),
            Difference("train.steps", 3, 5),
        ),
    )
    assert [report.learning_rate for report in reports if isinstance(report, Step)] == [0.5, 0.5]


def test_a_run_is_not_overwritten(toy, tmp_path):
    list(Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy()))
    with pytest.raises(UsageError, match=r"holds a run already \(up to step-00000002\). Go on with it by --resume"):
        list(Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy()))


def test_a_finished_run_is_over_and_a_longer_one_goes_on(toy, tmp_path):
    list(Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy(), toy.score))
    reports = list(
        Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy(), toy.score, resume=True)
    )
    assert [type(report).__name__ for report in reports] == ["Resumed", "Stopped"]
    reports = list(
        Trainer(toy.build(), toy.loss, settings(steps=3), folder=tmp_path).fit(toy.Toy(), toy.score, resume=True)
    )
    assert [report.step for report in reports if isinstance(report, Step)] == [3]


def test_the_time_used_is_part_of_a_checkpoint(toy, tmp_path):
    first = list(Trainer(toy.build(), toy.loss, settings(minutes=0.005, epochs=None), folder=tmp_path).fit(toy.Toy()))
    reports = list(
        Trainer(toy.build(), toy.loss, settings(minutes=0.005, epochs=None), folder=tmp_path).fit(
            toy.Toy(), resume=True
        )
    )
    assert reports[-1][:2] == ("minutes", first[-1].step)
    assert reports[-1].seconds >= 0.3


def test_another_model_is_refused(toy, tmp_path):
    list(Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy()))
    model = toy.build()
    model.out = nn.Linear(7, 2)
    with pytest.raises(
        DataError, match=r"'out.weight' has the shape \(1, 7\) in the checkpoint and \(2, 7\) in the model"
    ):
        list(Trainer(model, toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy(), resume=True))


def test_a_checkpoint_that_lacks_something_is_refused(toy, tmp_path):
    list(Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy()))
    from unrolled.train import checkpoint

    state, tensors = checkpoint.read(tmp_path / "step-00000002")
    del state["position"], state["format"]
    checkpoint.write(tmp_path, "step-00000003", tensors, state)
    with pytest.raises(
        DataError, match=r"step-00000003: the checkpoint is not one of this version \(KeyError\('position'\)"
    ):
        list(Trainer(toy.build(), toy.loss, settings(steps=2), folder=tmp_path).fit(toy.Toy(), resume=True))


def test_best_weights_that_were_removed_are_not_compared_with(toy, tmp_path):
    import shutil

    list(Trainer(toy.build(), toy.loss, settings(steps=4), folder=tmp_path).fit(toy.Toy(), lambda model: {"loss": 1.0}))
    shutil.rmtree(next(tmp_path.glob("best-*")))
    trainer = Trainer(toy.build(), toy.loss, settings(steps=6), folder=tmp_path)
    reports = list(trainer.fit(toy.Toy(), lambda model: {"loss": 2.0}, resume=True))
    assert [report.best for report in reports if isinstance(report, Validated)] == [True]
    assert trainer.restore_best() == 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_update_saves_and_stops(toy, tmp_path, number):
    before = signal.getsignal(number)
    found = []
    for report in Trainer(toy.build(), toy.loss, settings(save_every=None), folder=tmp_path).fit(toy.Toy(), toy.score):
        found.append(report)
        if isinstance(report, Step) and report.step == 2:
            os.kill(os.getpid(), number)
    assert [type(report).__name__ for report in found] == ["Step", "Step", "Saved", "Stopped"]
    assert found[-1].reason == "interrupted"
    assert found[-2].path.name == "step-00000002"
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("average", ["last", "exponential"])
def test_a_signal_breaks_off_a_validation_which_is_repeated(toy, tmp_path, average):
    chosen = settings(steps=8, average=average, validate_every=2)
    whole = toy.build(0.3)
    expected = list(Trainer(whole, toy.loss, chosen, folder=tmp_path / "whole").fit(toy.Toy(), toy.score))
    calls = []

    def interrupted(model):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return toy.score(model)

    model = toy.build(0.3)
    cut = list(Trainer(model, toy.loss, chosen, folder=tmp_path / "cut").fit(toy.Toy(), interrupted))
    assert cut[-1][:2] == ("interrupted", 4)
    model = toy.build(0.3, seed=9)
    rest = list(Trainer(model, toy.loss, chosen, folder=tmp_path / "cut").fit(toy.Toy(), toy.score, resume=True))
    assert isinstance(rest[1], Validated)
    left, right = ([r[:4] for r in reports if isinstance(r, Validated)] for reports in (expected, cut + rest))
    assert left == right
    assert toy.digest(model) == toy.digest(whole)


def test_a_second_ctrl_c_stops_at_once(toy):
    def loss(model, batch):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return toy.loss(model, batch)

    with pytest.raises(KeyboardInterrupt):
        list(Trainer(toy.build(), loss, settings()).fit(toy.Toy()))
    assert torch.is_grad_enabled()
