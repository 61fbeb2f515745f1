"""Several processes: the numbers of one, and an end with a message where one of them dies."""

import json
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

from unrolled.base.errors import SettingsError, UnrolledError, UsageError
from unrolled.train import devices
from unrolled.train.corpus import Corpus
from unrolled.train.launch import _code, first, launch, launched
from unrolled.train.reports import Step, Validated
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

WAIT = 240
"""Seconds for a run of a few processes on a busy machine; they need about five."""

FULL = {"epochs": 2, "learning_rate": 0.01, "precision": "float32", "device": "cpu", "average": "exponential"}
OPTIONS = {"settings": FULL, "dropout": 0.0, "rows": 21}
"""As in ``pair_run.py``."""


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
        left = [report for report in found if report.get("report") == kind.__name__]
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


@pytest.fixture(scope="module")
def pair(toy_command, quiet_environment, tmp_path_factory):
    """Two processes, started by our launcher: what they print, how they end, what is on disk."""
    folder = tmp_path_factory.mktemp("pair")
    command = [toy_command[0], toy_command[1].replace("toy_run", "pair_run"), "2", str(folder)]
    done = subprocess.run(command, env=quiet_environment, capture_output=True, text=True, timeout=WAIT)
    return read(done.stdout), done, folder


def part(pair, name):
    return [line for line in pair[0] if line["part"] == name]


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(pair, alone, toy):
    (weights,) = part(pair, "weights")
    assert weights["same"]
    check_same_numbers([*part(pair, "numbers"), weights], alone, toy)
    kept = sorted(path.name for path in (pair[2] / "numbers").iterdir())
    assert kept == ["best-00000010", "step-00000005", "step-00000010"]
    assert part(pair, "trial") == [{"part": "trial", "rows": 5}]


def test_one_process_short_of_memory_changes_no_number(pair, alone, toy):
    steps = [report for report in alone[0] if isinstance(report, Step)]
    found = [line for line in part(pair, "splits") if line["report"] == "Step"]
    assert [line["loss"] for line in found] == pytest.approx([step.loss for step in steps], rel=1e-5)
    assert len(found) == 10


def test_two_processes_go_on_to_the_same_bits(pair):
    assert part(pair, "bits") == [{"part": "bits", "whole_is_cut": True, "last": 10}]


def test_one_process_asked_to_stop_stops_both(pair):
    assert part(pair, "signals") == [{"part": "signals", "found": [["interrupted", 3]] * 2}]


def test_an_error_of_the_first_is_an_error_of_all(pair):
    assert part(pair, "errors") == [{"part": "errors", "found": ["pairs.tsv: damaged."] * 2}]


def test_a_bad_number_in_one_stops_both(pair):
    assert part(pair, "bad numbers") == [
        {"part": "bad numbers", "found": ["step 1: the loss of this batch is not a "] * 2}
    ]


def test_one_dead_process_ends_the_run_with_a_message(pair):
    _, done, _ = pair
    assert done.returncode == 1
    assert "error: process 1 of 2 was killed by SIGKILL (out of memory?). The others were stopped." in done.stderr
    assert "Traceback" not in done.stderr


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
    with pytest.raises(UnrolledError, match="process 1 of 2 was killed by SIGSEGV"):
        _code({0: -signal.SIGTERM, 1: -signal.SIGSEGV}, 2)
    with pytest.raises(UsageError, match="--devices 1 was given; several processes are 2 or more"):
        launch(["x.py"], 1)


def test_a_signal_to_the_launcher_is_told_by_the_exit_code(monkeypatch):
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.launcher import api

    class Agent:
        def __init__(self, config, entrypoint):
            assert (config.nproc_per_node, entrypoint, config.max_restarts) == (3, sys.executable, 0)

        def __call__(self, script):
            raise SignalException(script, signal.SIGTERM)

    monkeypatch.setattr(api, "elastic_launch", Agent)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert launch(["x.py"], 3) == 130
