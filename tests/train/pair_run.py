"""Two processes together through everything that they must agree on; the last thing is that one of them dies.

python pair_run.py FOLDER          one of the processes; a launcher gives it its rank
python pair_run.py 2 FOLDER        both
"""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

from unrolled.base.errors import DataError, UnrolledError
from unrolled.base.protocol import Loss
from unrolled.train.launch import launch
from unrolled.train.reports import Saved, Step
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

FULL = {"epochs": 2, "learning_rate": 0.01, "precision": "float32", "device": "cpu", "average": "exponential"}
ROWS = 21  # the fifth batch has one row: one of two processes has none


def load_toy():
    spec = importlib.util.spec_from_file_location("toy_run", Path(__file__).with_name("toy_run.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def say(kind, **what):
    if os.environ["RANK"] == "0":
        print(json.dumps({"part": kind, **what}, default=str), flush=True)


def numbers(toy, folder):
    """What one process would give."""
    model = toy.build(0.0)
    trainer = Trainer(model, toy.loss, TrainSettings(**FULL), folder=folder)
    say("trial", rows=trainer.dry_run(toy.Toy(ROWS)).rows)
    for report in trainer.fit(toy.Toy(ROWS), toy.score):
        say("numbers", **toy.plain(report))
    sums = trainer.world.collect(toy.digest(model))
    say("weights", sum=sums[0], same=sums[0] == sums[1])


def splits(toy):
    """One process is short of memory; the numbers are the same."""

    def loss(model, batch):
        if os.environ["RANK"] == "1" and len(batch["x"]) > 1:
            raise MemoryError
        return toy.loss(model, batch)

    for report in Trainer(toy.build(0.0), loss, TrainSettings(**FULL)).fit(toy.Toy(ROWS)):
        say("splits", **toy.plain(report))


def bits(toy, folder):
    """Cut off and taken up, with dropout: random numbers of both processes go on."""
    settings = TrainSettings(**{**FULL, "save_every": 3})
    digests = []
    for name, stop in (("whole", None), ("cut", 3), ("cut", None)):
        model = toy.build(0.3)
        reports = Trainer(model, toy.loss, settings, folder=folder / name).fit(toy.Toy(ROWS), resume=True)
        for report in reports:
            if isinstance(report, Saved) and report.step == stop:
                break
        reports.close()
        digests.append(toy.digest(model))
    say("bits", whole_is_cut=digests[0] == digests[2], last=report.step)


def signals(toy):
    """One is asked to stop, both stop."""
    trainer = Trainer(toy.build(), toy.loss, TrainSettings(**FULL))
    for report in trainer.fit(toy.Toy(ROWS)):
        if isinstance(report, Step) and report.step == 2 and trainer.world.rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
    say("signals", found=trainer.world.collect([report.reason, report.step]))
    return trainer.world


def errors(world):
    """What the first finds wrong, all find wrong."""

    def fail():
        raise DataError("pairs.tsv: damaged.")

    try:
        world.first_does(fail)
        found = None
    except DataError as error:
        found = str(error)
    say("errors", found=world.collect(found))


def bad_numbers(toy, world):
    """A loss that is no number in one process stops both."""

    def loss(model, batch):
        total, count = toy.loss(model, batch)
        return Loss(total * (float("nan") if world.rank == 1 else 1.0), count)

    try:
        list(Trainer(toy.build(), loss, TrainSettings(**FULL)).fit(toy.Toy(ROWS)))
        found = None
    except UnrolledError as error:
        found = str(error)[:40]
    say("bad numbers", found=world.collect(found))


def death(toy):
    trainer = Trainer(toy.build(), toy.loss, TrainSettings(**{**FULL, "epochs": 10**6}))
    for report in trainer.fit(toy.Toy(ROWS)):
        if report.step == 3 and trainer.world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder):
    toy = load_toy()
    numbers(toy, folder / "numbers")
    splits(toy)
    bits(toy, folder)
    world = signals(toy)
    errors(world)
    bad_numbers(toy, world)
    death(toy)


if __name__ == "__main__":
    try:
        if sys.argv[1].isdigit():
            sys.exit(launch([__file__, *sys.argv[2:]], int(sys.argv[1])))
        main(Path(sys.argv[1]))
    except UnrolledError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
