"""Several processes: the numbers of one, and an end with a message where one of them dies."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from unrolled.base.errors import SettingsError, UsageError
from unrolled.train import devices
from unrolled.train.corpus import Corpus
from unrolled.train.launch import _code, first, launch, launched
from unrolled.train.reports import Step, Validated
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

WAIT = 240
"""Seconds for a run of a few processes on a busy machine; they need about five."""

FULL = {"epochs": 2, "learning_rate": 0.01, "precision": "float32", "device": "cpu", "average": "exponential"}
OPTIONS = {"settings": FULL, "dropout": 0.0, "rows": 21}  # the fifth batch has one row: one process has none


@pytest.fixture(scope="module")
def alone(toy):
    """The reports of one process, and its weights."""
    model = toy.build(0.0)
    return list(Trainer(model, toy.loss, TrainSettings(**FULL)).fit(toy.Toy(21), toy.score)), model


def read(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def check_same_numbers(found, alone, toy):
    expected, model = alone
    for kind in (Step, Validated):
        left = [report for report in found if report["report"] == kind.__name__]
        right = [report for report in expected if isinstance(report, kind)]
        assert len(left) == len(right)
        for mine, theirs in zip(left, right, strict=True):
            assert (mine["step"], mine["epoch"]) == (theirs.step, theirs.epoch)
            if kind is Step:
                assert mine["symbols"] == theirs.symbols
                assert mine["learning_rate"] == pytest.approx(theirs.learning_rate)
                assert mine["loss"] == pytest.approx(theirs.loss, rel=1e-5)
                assert mine["gradient_norm"] == pytest.approx(theirs.gradient_norm, rel=1e-4)
            else:
                assert mine["scores"]["loss"] == pytest.approx(theirs.scores["loss"], rel=1e-5)
    weights = found[-1]["sum"]
    for mine, theirs in zip(weights, model.state_dict().values(), strict=True):
        mine = np.frombuffer(bytes.fromhex(mine), dtype=np.float32)
        np.testing.assert_allclose(mine, theirs.numpy().ravel(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(toy, toy_command, quiet_environment, alone, tmp_path):
    done = subprocess.run(
        [*toy_command, "2", str(tmp_path), json.dumps(OPTIONS)],
        env=quiet_environment,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0, done.stderr
    check_same_numbers(read(done.stdout), alone, toy)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best-00000010", "step-00000005", "step-00000010"]


@pytest.mark.slow
def test_two_nodes_on_one_host_give_the_numbers_of_one(toy, toy_command, quiet_environment, alone, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *place]
    nodes = [
        subprocess.Popen(
            [*torchrun, f"--node-rank={node}", toy_command[1], str(tmp_path / str(node)), json.dumps(OPTIONS)],
            env=quiet_environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node in range(2)
    ]
    try:
        outputs = [node.communicate(timeout=WAIT) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], outputs
    check_same_numbers(read(outputs[0][0]), alone, toy)
    assert read(outputs[1][0]) == []
    assert not (tmp_path / "1").exists()  # only the first process writes


@pytest.mark.slow
def test_one_dead_process_ends_the_run_with_a_message(toy_command, quiet_environment, tmp_path):
    options = {**OPTIONS, "settings": {**FULL, "save_every": 1, "epochs": 1000}, "kill_rank": 1, "kill_step": 3}
    started = time.monotonic()
    done = subprocess.run(
        [*toy_command, "2", str(tmp_path), json.dumps(options)],
        env=quiet_environment,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert time.monotonic() - started < WAIT / 2
    assert done.returncode == 1
    assert "error: process 1 of 2 was killed by SIGKILL (out of memory?). The others were stopped." in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.glob("step-*")]


@pytest.mark.slow
def test_a_signal_to_the_launcher_saves_and_two_processes_go_on(toy_command, quiet_environment, tmp_path):
    options = {**OPTIONS, "dropout": 0.3, "settings": {**FULL, "steps": 12}, "resume": True}
    endless = {**options, "settings": {**FULL, "epochs": None, "steps": 10**6}}
    command = [*toy_command, "2"]
    with subprocess.Popen(
        [*command, str(tmp_path / "cut"), json.dumps(endless)],
        env=quiet_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if len(lines) == 3:
                process.send_signal(signal.SIGTERM)
        errors = process.stderr.read()
    assert process.returncode == 130, errors
    kinds = [line["report"] for line in lines]
    assert kinds[-3:] == ["Saved", "Stopped", "Weights"]
    assert lines[-2]["reason"] == "interrupted"


def test_alone_there_is_no_group():
    world = devices.join("cpu")
    assert (world.rank, world.size, world.first) == (0, 1, True)
    assert world.add([1.5, 2.0]) == [1.5, 2.0]
    tensors = [torch.ones(2), torch.zeros(3)]
    assert all(left is right for left, right in zip(world.add_tensors(tensors), tensors, strict=True))
    assert world.tell("x") == world.first_does(lambda: "x") == "x"
    assert world.collect(3) == [3]
    assert not launched()
    assert first()


@pytest.mark.parametrize("name", ["cuda:99", "mps:7", "gpu", "cpu:3"])
def test_a_device_that_is_not_there_is_an_error(name):
    with pytest.raises(SettingsError, match=rf"\[train.device\] .*'{name}'"):
        devices.join(name)


def test_every_row_is_in_one_share(toy):
    corpus = toy.Toy(21)
    for epoch in range(2):
        seen = []
        for rank in range(3):
            world = devices.World(torch.device("cpu"), rank, 1)
            world.size = 3
            shares = Corpus(corpus, world)
            corpus.loaded.clear()
            assert shares.size(epoch) == 5
            for portion in shares.take(epoch, 0, 99):
                batch = portion.load()
                assert (batch is None) == (portion.mine() == [])
            seen += [row for rows in corpus.loaded for row in rows]
        assert sorted(seen) == list(range(21))


def test_the_exit_code_that_says_most():
    assert _code({0: 1, 1: 3}, 2) == 1
    assert _code({0: -signal.SIGTERM, 1: 3}, 2) == 3
    assert _code({0: -signal.SIGTERM}, 2) == 1
    with pytest.raises(UsageError, match="--devices 1 was given; several processes are 2 or more"):
        launch(["x.py"], 1)
    assert os.environ.get("TORCHELASTIC_RUN_ID") is None
