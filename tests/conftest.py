"""What many tests share: the command line called in this process, and one small model trained once."""

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("unrolled", deadline=None)  # how long an example takes is the machine's affair
hypothesis.settings.load_profile("unrolled")

if not torch.cuda.is_available():  # kernels in Triton are then run by its interpreter, before anything loads it
    os.environ.setdefault("TRITON_INTERPRET", "1")

SMALL = """
text: {source: word, target: word}
model:
  kind: seq2seq
  embedding_size: 24
  dropout: 0.0
  encoder: {kind: rnn, cell: {kind: gru, hidden_size: 24}}
  decoder: {kind: query_before, cell: {kind: gru, hidden_size: 32}}
train: {epochs: 20, validate_every: 250, batch_tokens: 400, learning_rate: 0.01, precision: float32}
search: {beam: 2}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages of the documentation first: they take longest, and what comes last is done by one worker alone."""
    items.sort(key=lambda item: item.path.name != "test_documents.py")


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Trained(NamedTuple):
    folder: Path
    data: Path  # train.tsv
    valid: Path
    config: Path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """``run("predict", folder, file)`` calls the command line in this process."""
    from unrolled.cli.main import main

    def call(*words: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["unrolled", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Words and their translation word by word: learnt in a second, with a diagonal to look at."""
    draw = random.Random(seed)
    words = {"one": "un", "two": "deux", "red": "rouge", "cat": "chat", "dog": "chien", "sees": "voit"}
    rows = []
    for _ in range(count):
        source = draw.choices(list(words), k=draw.randint(1, 6))
        rows.append((" ".join(source), " ".join(words[word] for word in source)))
    return rows


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A small attention model, trained by the command itself."""
    from unrolled.runs import train

    folder = tmp_path_factory.mktemp("trained")
    config = folder / "small.yaml"
    config.write_text(SMALL)
    for name, count, seed in (("train", 600, 1), ("valid", 30, 2)):
        rows = pairs(count, seed)
        (folder / f"{name}.tsv").write_text("".join(f"{left}\t{right}\n" for left, right in rows))
    train(
        folder / "train.tsv",
        preset="bahdanau-small",
        config=config,
        settings={"train": {"seed": 1}},
        out=folder / "model",
        quiet=True,
    )
    return Trained(folder / "model", folder / "train.tsv", folder / "valid.tsv", config)
