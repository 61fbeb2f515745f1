"""The harness beside others: what it makes of answers, and of peers and data that are not there."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import environments, work


def test_a_peer_that_is_not_there_is_skipped_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    assert "make bench-peers" in peers.ask(peers.CONTENDERS["eole"], {})["skipped"]
    (tmp_path / "eole.failed").write_text("it could not be installed: no such release\n")
    assert peers.ask(peers.CONTENDERS["eole"], {}) == {"skipped": "it could not be installed: no such release"}


def test_absent_data_are_a_reason_not_a_failure(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "--json", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "give the folder of Multi30k with --data" in json.loads(ran.stdout)["skipped"]


def test_batches_are_of_like_length_and_rare_words_are_one(tmp_path: Path) -> None:
    lines = [" ".join(f"w{place % 7}" for place in range(1 + line % 20)) for line in range(300)]
    for name in ("train.en.gz", "train.de.gz"):
        (tmp_path / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    found = peers.corpus(tmp_path)
    assert [len(sources) for sources, _ in found["batches"]] == [peers.BATCH] * 4
    longest = [max(map(len, sources)) for sources, _ in found["batches"]]
    assert longest == sorted(longest) and longest[0] < longest[-1]
    assert {len(sentence) for sentence in found["sentences"]} == {work.WORDS}
    numbers = {word for sources, _ in found["batches"] for row in sources for word in row}
    assert numbers == set(range(7))


def test_rates_are_compared_like_for_like() -> None:
    found = {
        ("unrolled", False): {"tokens_per_second": 300.0, "alone": 8.0},
        ("eole", False): {"tokens_per_second": 100.0, "alone": 4.0},
        ("joeynmt", False): {"tokens_per_second": 50.0, "alone": 5.0},
        ("yoyodyne", False): {"skipped": "it feeds"},
        ("eole", True): {"tokens_per_second": 900.0},
    }
    single = {**found, ("eole", False): {"tokens_per_second": 40.0, "alone": 2.0}}
    made = {
        (row["rate"], row["feeding"]): (row["fastest peer"], row["ratio"], row["as they come"])
        for row in peers.ratios(found, single)
    }
    assert made == {("tokens_per_second", "without"): ("eole", 3.0, 6.0), ("alone", "without"): ("joeynmt", 1.6, 1.6)}
    told = {key: {"settings": {}, **answer} for key, answer in found.items()}
    assert {"who": "yoyodyne", "feeding": "without", "skipped": "it feeds"} in peers.rows(
        {key: answer if "skipped" in answer else told[key] for key, answer in found.items()}
    )


def test_the_best_of_two_answers_and_of_an_answer_and_none() -> None:
    slow = {"tokens_per_second": 1, "alone": 3, "settings": {"tokens_per_second": "float32", "alone": "float32"}}
    fast = {"tokens_per_second": 2, "alone": 2, "settings": {"tokens_per_second": "bfloat16", "alone": "bfloat16"}}
    assert peers.best(slow, fast) == {
        "tokens_per_second": 2, "alone": 3, "settings": {"tokens_per_second": "bfloat16", "alone": "float32"}
    }  # fmt: skip
    assert peers.best({"skipped": "no"}, slow) == slow
    assert peers.best(slow, {"skipped": "no"}) == slow


def test_a_row_says_what_its_best_were_measured_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"float32": (1.0, 4.0), "bfloat16": (2.0, 3.0)}

    def ask(contender: peers.Contender, request: dict[str, Any]) -> dict[str, Any]:
        training, alone = rates[request["precision"]]
        if contender.script == "with_keras.py":
            return {"version": "3", "settings": request["precision"], "tokens_per_second": training}
        settings = f"{request['precision']}; as it is"
        return {"version": "1", "settings": settings, "tokens_per_second": training, "alone": alone}

    monkeypatch.setattr(peers, "corpus", lambda folder: {})
    monkeypatch.setattr(peers, "ask", ask)
    made = peers.measure(tmp_path, 1.0, 1, ["eole", "joeynmt", "keras on jax"])["rows"]
    assert {row["who"]: row["settings"] for row in made} == {
        "eole": "tokens_per_second: bfloat16; as it is · alone: float32; as it is",
        "joeynmt": "float32; as it is",
        "keras on jax": "bfloat16",
    }


def test_a_rate_is_the_best_round_and_the_first_is_not_counted() -> None:
    calls: list[int] = []
    assert work.rate(calls.append, [1, 2], amount=10, seconds=0) > 0
    assert calls == [1, 2, 1, 2]
