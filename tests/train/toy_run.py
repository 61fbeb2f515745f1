"""A small corpus, model and loss; as a script it trains and prints every report as a line of JSON.

python toy_run.py FOLDER '{"settings": {…}, "resume": true, "dropout": 0.1}'
python toy_run.py        reads lines [FOLDER, {…}]; each runs in a fork of its own, so that torch is read in once
"""

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from unrolled.base.errors import UnrolledError
from unrolled.base.protocol import Loss
from unrolled.train.devices import leave
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer


class Toy:
    """``rows`` sequences of 2 to 7 numbers, added up as they go; batches of ``size`` rows, the last smaller."""

    def __init__(self, rows=23, size=5):
        draw = np.random.default_rng(7)
        self.lengths = draw.integers(2, 8, rows)
        self.values = [draw.standard_normal((length, 3)).astype(np.float32) for length in self.lengths]
        self.size = size
        self.loaded = []

    def plan(self, epoch):
        order = np.random.default_rng((1, epoch)).permutation(len(self.lengths))
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]

    def load(self, rows):
        self.loaded.append(rows.tolist())
        x = torch.zeros(len(rows), int(self.lengths[rows].max()), 3)
        mask = torch.zeros(x.shape[:2], dtype=torch.bool)
        for place, row in enumerate(rows):
            x[place, : self.lengths[row]] = torch.from_numpy(self.values[row])
            mask[place, : self.lengths[row]] = True
        return {"x": x, "mask": mask, "y": x.sum(-1).cumsum(1)}

    def places(self, rows):
        return [f"pairs.tsv:{row + 1}" for row in rows]

    def longest(self):
        return max(self.plan(0), key=lambda rows: self.lengths[rows].max() * len(rows))


class Net(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.recurrent = nn.GRU(3, 7, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(7, 1)

    def forward(self, x):
        return self.out(self.dropout(self.recurrent(x)[0]))[..., 0]


def loss(model, batch):
    error = (model(batch["x"]).float() - batch["y"]) ** 2
    return Loss(error[batch["mask"]].sum(), int(batch["mask"].sum()))


def score(model):
    """A validation that draws random numbers, which training must not notice."""
    torch.rand(3)
    np.random.rand()
    everything = Toy().load(np.arange(23))
    total, count = loss(model, everything)
    return {"loss": float(total) / count}


def plain(report):
    return {"report": type(report).__name__, **report._asdict()}


def build(dropout=0.1, seed=3):
    torch.manual_seed(seed)
    return Net(dropout)


def main(folder, options):
    model = build(options.get("dropout", 0.1))
    settings = TrainSettings(**{"precision": "float32", "device": "cpu", **options["settings"]})
    try:
        trainer = Trainer(model, loss, settings, folder=folder)
        for report in trainer.fit(Toy(options.get("rows", 23)), score, resume=options.get("resume", False)):
            if trainer.world.first:
                print(json.dumps(plain(report), default=str), flush=True)
    except UnrolledError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    finally:
        leave()
    if trainer.world.first:
        print(json.dumps({"report": "Weights", "sum": digest(model)}), flush=True)
    return 130 if report.reason == "interrupted" else 0


def digest(model):
    """All weights to the last bit."""
    return [tensor.detach().numpy().tobytes().hex() for tensor in model.state_dict().values()]


def serve():
    """Each run in a fork of this process, which has computed nothing; its number comes first, its exit code last."""
    importlib.import_module("torch._dynamo")  # every optimizer asks for it

    for line in sys.stdin:
        folder, options = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(main(Path(folder), options))
        print(json.dumps({"report": "Started", "pid": child}), flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"report": "Ended", "code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    else:
        sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
